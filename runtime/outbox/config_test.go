package outbox

import (
	"strings"
	"testing"
	"time"
)

func TestConfigDefaultsAreValid(t *testing.T) {
	for _, c := range []Config{{}, {Lease: time.Second}, {Lease: 100 * time.Millisecond}, {BackoffMin: time.Hour}} {
		if err := c.withDefaults().validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestConfigRefusesContradictions(t *testing.T) {
	for field, c := range map[string]Config{
		"Lease":            {Lease: time.Millisecond},
		"PublishTimeout":   {Lease: 10 * time.Second, PublishTimeout: 6 * time.Second}, // it could outlast the lease
		"Concurrency":      {Concurrency: -1},
		"MaxInFlight":      {MaxInFlight: 10},
		"MaxInFlightBytes": {MaxInFlightBytes: -1},
		"PollInterval":     {PollInterval: -1},
		"MaxAttempts":      {MaxAttempts: -1},
		"BackoffMin":       {BackoffMin: time.Minute, BackoffMax: time.Second},
	} {
		err := c.withDefaults().validate()
		if err == nil || !strings.Contains(err.Error(), field+" is") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestBackoffIsFullJitterWithinItsBound(t *testing.T) {
	for n, bound := range map[int]time.Duration{1: 1, 2: 2, 5: 16, 7: 60, 100: 60} {
		least, most := time.Hour, time.Duration(0)
		for range 2000 {
			d := backoff(n, time.Second, time.Minute)
			least, most = min(least, d), max(most, d)
		}
		if limit := bound * time.Second; most > limit || most < limit*9/10 || least > limit/10 {
			t.Errorf("attempt %d: got between %v and %v, want 0 to %v", n, least, most, limit)
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
