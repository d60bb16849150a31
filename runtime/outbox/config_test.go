package outbox

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestConfigDefaultsAreValid(t *testing.T) {
	for _, c := range []Config{{}, {Lease: time.Second}, {Lease: 100 * time.Millisecond}, {MinRetryDelay: time.Hour}} {
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
		"MaxAttempts":      {MaxAttempts: Unlimited - 1},
		"DrainTimeout":     {DrainTimeout: -1},
		"MinRetryDelay":    {MinRetryDelay: time.Minute, MaxRetryDelay: time.Second},
	} {
		err := c.withDefaults().validate()
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
		err := c.withDefaults().validate()
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
		MinRetryDelay:    math.MaxInt64 - 1, MaxRetryDelay: math.MaxInt64, PollInterval: math.MaxInt64,
	}.withDefaults()
	if err := c.validate(); err != nil {
		t.Fatal(err)
	}
	l := newLedger(c)
	l.own([]Ownership{{Shard: 1}}, 0, 0)
	p, ok := l.plan(time.Now())
	if !ok || p.reads[0].Limit < 1 || p.reads[0].Limit > readMost || p.due[0].Limit < 1 {
		t.Errorf("got a plan with limits %+v and %+v", p.reads, p.due)
	}
	if l.staff(time.Now()) < 1 || l.share < 1 {
		t.Errorf("got %d workers and a share of %d", l.staff(time.Now()), l.share)
	}
}

func TestBackoffDoesNotOverflow(t *testing.T) {
	for _, first := range []time.Duration{1, time.Second, math.MaxInt64/2 + 1, math.MaxInt64} {
		for _, n := range []int{-1, 0, 1, 2, 62, 63, 64, 65, math.MaxInt32, math.MaxInt} {
			if d := backoff(n, first, math.MaxInt64); d <= 0 {
				t.Errorf("failure %d from %v: got %v", n, first, d)
			}
		}
	}
}

// TestAttemptsEndAtTheTopOfTheirRange refuses an event for good measure: with a limit it is dead,
// without one it is tried again, and its attempts do not begin anew.
func TestAttemptsEndAtTheTopOfTheirRange(t *testing.T) {
	for most, want := range map[int]verdict{Unlimited: retry, 12: dead, math.MaxInt32: dead} {
		l := newLedger(Config{MaxAttempts: most}.withDefaults())
		l.own([]Ownership{{Shard: 0}}, 0, 0)
		now := time.Now()
		p, _ := l.plan(now)
		l.accept(p, []Message{{Type: "x", Version: 1, Topic: "t", Key: "a", Attempts: math.MaxInt32,
			Position: Position{Seq: 1}}}, nil)
		l.mu.Lock()
		e := l.next(now)
		l.finish(e, errors.New("refused"), now)
		l.mu.Unlock()
		if e.verdict != want || e.Attempts != math.MaxInt32 {
			t.Errorf("MaxAttempts %d: got verdict %d with %d attempts, want %d", most, e.verdict,
				e.Attempts, want)
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
