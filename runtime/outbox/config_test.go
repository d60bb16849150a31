package outbox

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"
)

func TestConfigDefaultsAreValid(t *testing.T) {
	for _, c := range []Config{{}, {Lease: time.Second}, {Lease: 100 * time.Millisecond},
		{MinRetryDelay: time.Hour}} {
		if err := c.withDefaults(nil).validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestConfigRefusesContradictions(t *testing.T) {
	for field, c := range map[string]Config{
		"Lease": {Lease: time.Millisecond},
		// it could outlast the lease
		"PublishTimeout":   {Lease: 10 * time.Second, PublishTimeout: 6 * time.Second},
		"Concurrency":      {Concurrency: -1},
		"MaxInFlight":      {MaxInFlight: 10},
		"MaxInFlightBytes": {MaxInFlightBytes: -1},
		"PollInterval":     {PollInterval: -1},
		"MaxAttempts":      {MaxAttempts: Unlimited - 1},
		"DrainTimeout":     {DrainTimeout: -1},
		"MinRetryDelay":    {MinRetryDelay: time.Minute, MaxRetryDelay: time.Second},
	} {
		err := c.withDefaults(nil).validate()
		if err == nil || !strings.Contains(err.Error(), field+" is") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestConfigRefusesWhatDoesNotFit(t *testing.T) {
	for field, c := range map[string]Config{
		"MaxAttempts": {MaxAttempts: math.MaxInt32 + 1},
		"Lease":       {Lease: math.MaxInt64},
	} {
		err := c.withDefaults(nil).validate()
		if err == nil || !strings.Contains(err.Error(), field+" is") ||
			!strings.Contains(err.Error(), "at most") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestTheLargestValuesAreTakenAsTheyAre(t *testing.T) {
	c := Config{
		MaxAttempts: math.MaxInt32, Concurrency: math.MaxInt, MaxInFlight: math.MaxInt,
		MaxInFlightBytes: math.MaxInt,
		MinRetryDelay:    math.MaxInt64 - 1, MaxRetryDelay: math.MaxInt64,
		PollInterval: math.MaxInt64,
	}.withDefaults(nil)
	if err := c.validate(); err != nil {
		t.Fatal(err)
	}
}

// publishing publishes nothing.
type publishing struct{}

func (publishing) Publish(context.Context, *Message) error { return nil }

func (publishing) PublishBatch(_ context.Context, batch []*Message) []error {
	return make([]error, len(batch))
}

func TestABatchPublisherIsCalledByAFewWorkers(t *testing.T) {
	for _, test := range []struct {
		publisher Publisher
		config    Config
		want      int
	}{
		{nil, Config{}, 64}, {publishing{}, Config{}, 4},
		{publishing{}, Config{Concurrency: 7}, 7},
	} {
		if got := test.config.withDefaults(test.publisher).Concurrency; got != test.want {
			t.Errorf("%T, %d: got %d, want %d", test.publisher, test.config.Concurrency, got,
				test.want)
		}
	}
}

func TestErrorTextFitsATextColumn(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                          "plain",
		"nul \x00 and \xff":              "nul � and �",
		strings.Repeat("ä", 600):         strings.Repeat("ä", 500) + "…",
		"x" + strings.Repeat("ä", 600):   "x" + strings.Repeat("ä", 499) + "…",
		strings.Repeat("a", 1000):        strings.Repeat("a", 1000),
		strings.Repeat("a", 1000) + "bc": strings.Repeat("a", 1000) + "…",
	} {
		if got := errorText(textError(in)); got != want {
			t.Errorf("%.20q: got %.20q (%d bytes), want %d", in, got, len(got), len(want))
		}
	}
}

type textError string

func (e textError) Error() string { return string(e) }
