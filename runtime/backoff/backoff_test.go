package backoff_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/backoff"
)

func TestBoundsDoubleUpToTheLimit(t *testing.T) {
	for n, want := range map[int]time.Duration{
		-1: 1, 0: 1, 1: 1, 2: 2, 5: 16, 6: 32, 7: 60, 8: 60, 100: 60,
	} {
		if got := backoff.Bound(n, time.Second, time.Minute); got != want*time.Second {
			t.Errorf("failure %d: got %v, want %v", n, got, want*time.Second)
		}
	}
	if got := backoff.Bound(1, time.Hour, time.Minute); got != time.Minute {
		t.Errorf("a first bound above the limit: got %v, want the limit", got)
	}
}

func TestDelaysAreFullJitterWithinTheirBound(t *testing.T) {
	for n, bound := range map[int]time.Duration{1: 1, 2: 2, 5: 16, 7: 60, 100: 60} {
		least, most := time.Hour, time.Duration(0)
		for range 2000 {
			d := backoff.Delay(n, time.Second, time.Minute)
			least, most = min(least, d), max(most, d)
		}
		if limit := bound * time.Second; most > limit || most < limit*9/10 || least > limit/10 {
			t.Errorf("failure %d: got between %v and %v, want 0 to %v", n, least, most, limit)
		}
	}
}

func TestDelaysDoNotOverflow(t *testing.T) {
	for _, first := range []time.Duration{0, 1, time.Second, math.MaxInt64/2 + 1, math.MaxInt64} {
		for _, n := range []int{-1, 0, 1, 2, 62, 63, 64, 65, math.MaxInt32, math.MaxInt} {
			if d := backoff.Delay(n, first, math.MaxInt64); d <= 0 {
				t.Errorf("failure %d from %v: got %v", n, first, d)
			}
		}
	}
}

func ExampleBound() {
	for n := 1; n <= 6; n++ {
		fmt.Print(backoff.Bound(n, time.Second, 20*time.Second), " ")
	}
	// Output: 1s 2s 4s 8s 16s 20s
}
