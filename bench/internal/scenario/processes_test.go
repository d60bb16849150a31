package scenario

import (
	"os"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/bench/internal/child"
	"github.com/outboxgen/outboxgen/bench/internal/rival"
)

func TestMain(m *testing.M) {
	child.Main()
	// No relay may lose its lease, however busy the machine is.
	sharing.Lease = 20 * time.Second
	os.Exit(m.Run())
}

func TestRelayProcessesPublishABacklogOnceBetweenThem(t *testing.T) {
	t.Parallel()
	rate, strays, err := drainTogether(t.Context(), newLab(t), 2, rival.Uniform(2000).Orders())
	if err != nil || rate <= 0 || strays != 0 {
		t.Errorf("got %v events/s, %d strays and error %v, want all events once", rate, strays, err)
	}
}

func TestStraysAreLostOrPublishedTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		records [][]int64
		want    int
	}{
		"each once":          {[][]int64{{2, 1}, {3}}, 0},
		"one lost":           {[][]int64{{1}, {3}}, 1},
		"one twice":          {[][]int64{{1, 2}, {2, 3}}, 1},
		"one lost, one more": {[][]int64{{1, 2, 4}}, 2},
		"nothing":            {nil, 3},
	} {
		if got := countStrays([]int64{1, 2, 3}, c.records); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

func TestShardsAreSharedOutWhenEveryRelayHasAsMany(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shards []int
		want   bool
	}{
		{[]int{16}, true}, {[]int{8, 8}, true}, {[]int{16, 0}, false}, {[]int{8, 7}, false},
		{[]int{4, 4, 4, 4}, true},
	} {
		var all []child.Progress
		for _, n := range c.shards {
			all = append(all, child.Progress{Shards: n})
		}
		if got := sharedOut(all); got != c.want {
			t.Errorf("%v: got %v, want %v", c.shards, got, c.want)
		}
	}
}
