package report

import (
	"errors"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestMachineIsWhatLinuxSays(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"proc/cpuinfo": {Data: []byte("processor\t: 0\nmodel name\t: Analytical: " +
			"Engine\n\nprocessor\t: 1\nmodel name\t: Other\n")},
		"proc/meminfo": {Data: []byte("MemFree:  1 kB\n" +
			"MemTotal:       24684096 kB\n")},
		"proc/sys/kernel/osrelease": {Data: []byte("7.1.0-9-someones-cloud\n")},
		"etc/os-release": {Data: []byte("NAME=\"Debian\"\nPRETTY_NAME=\"Debian " +
			"GNU/Linux 15\"\n")},
		"proc/self/mountinfo": {Data: []byte("1 0 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n" +
			"2 1 0:5 / /var/lib rw - overlay overlay rw\n3 1 0:6 / /var/lib rw master:1 - xfs " +
			"/dev/sdb rw\n4 1 0:7 / /var/lib/postgres rw - tmpfs tmpfs rw\n")},
	}
	want := []Fact{
		{"processor", "Analytical: Engine"}, {"cores", cores()}, {"memory", "23.5 GiB"},
		{"system", "Debian GNU/Linux 15, Linux 7.1.0"}, {"file system of the data", "xfs"},
	}
	if got := machine(files, "/var/lib/postgresql/data"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for directory, want := range map[string]string{
		"/var/lib/postgres": "tmpfs", "/var/library": "ext4", "/": "ext4", "": "",
	} {
		if got := fileSystem(files, directory); got != want {
			t.Errorf("file system of %q: got %q, want %q", directory, got, want)
		}
	}
}

func TestFailureIsShortAndNamesNoFolder(t *testing.T) {
	t.Parallel()
	long := "bench: " + strings.Repeat("é", 300)
	for text, want := range map[string]string{
		"bench: River: drain: 3 of 99": "bench: River: drain: 3 " +
			"of 99",
		"bench: the first line\nthe second": "bench: the first line",
		"bench: open /tmp/bench12/record: no such file": "bench: open record: no " +
			"such file",
		`bench: read "/home/who/a.yaml" (/etc/x/y), TMPDIR=/var/tmp/`: `bench: read "a.yaml" ` +
			`(y), TMPDIR=`,
		"/usr/local/go/bin/go build -o /tmp/b/out ./...: exit 1": "go build -o out ./...: " +
			"exit 1",
		"github.com/jackc/pgx: 10 events/s of https://example.org/a/": "github.com/jackc/pgx: 10 " +
			"events/s of https://example.org/a/",
		long: string([]rune(long)[:199]) + "…",
	} {
		if got := failure(errors.New(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestMachineElsewhereIsWhatGoKnows(t *testing.T) {
	t.Parallel()
	for _, f := range machine(fstest.MapFS{}, "/data") {
		if f.Value == "" || !slices.Contains([]string{"processor", "cores", "system"}, f.Name) {
			t.Errorf("got %v, want only what is known", f)
		}
	}
}

func TestVersionsAreThoseOfWhatIsCompared(t *testing.T) {
	t.Parallel()
	build := &debug.BuildInfo{
		Deps: []*debug.Module{
			{Path: "github.com/google/uuid", Version: "v1.2.3"},
			{Path: "github.com/jackc/pgx/v5", Version: "v5.99.0"},
			{Path: "github.com/nats-io/nats.go", Version: "v1.99.0"},
			{Path: "github.com/nats-io/nkeys", Version: "v0.99.0"},
			{
				Path:    "github.com/riverqueue/river",
				Version: "v0.99.0",
				Replace: &debug.Module{Path: "../river"},
			},
		},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "c0ffee"}, {Key: "vcs.modified", Value: "true"},
		},
	}
	got := versions(build, "21.3")
	want := []Fact{
		{"outboxgen", "revision c0ffee, with changes"}, got[1], {"PostgreSQL", "21.3"},
		{"github.com/jackc/pgx/v5", "v5.99.0"}, {"github.com/nats-io/nats.go", "v1.99.0"},
		{"github.com/riverqueue/river", "v0.99.0, replaced by a copy"},
	}
	if !reflect.DeepEqual(got, want) || !strings.HasPrefix(got[1].Value, "go") {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, build := range []*debug.BuildInfo{nil, {}} {
		if got := versions(build, "21.3"); len(got) != 2 {
			t.Errorf("got %v, want only Go and PostgreSQL where the build says nothing", got)
		}
	}
}

func TestTicksEncloseTheValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		least, most float64
		want        []float64
	}{
		{3_100, 61_000, []float64{2_000, 5_000, 10_000, 20_000, 50_000, 100_000}},
		{1_000, 1_000, []float64{1_000, 2_000}},
		{1_000, 10_000, []float64{1_000, 2_000, 5_000, 10_000}},
		{0.3, 0.31, []float64{0.2, 0.5}},
	} {
		got := ticks(c.least, c.most)
		equal := func(a, b float64) bool { return a/b > 0.999 && a/b < 1.001 }
		if !slices.EqualFunc(got, c.want, equal) {
			t.Errorf("ticks(%v, %v): got %v, want %v", c.least, c.most, got, c.want)
		}
	}
}

func TestSpreadKeepsLabelsApartAndWithinTheFrame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ given, want []float64 }{
		{[]float64{10, 50, 90}, []float64{10, 50, 90}},
		{[]float64{10, 12, 14}, []float64{10, 30, 50}},
		{[]float64{10, 95, 99}, []float64{10, 80, 100}},
		{[]float64{70, 97, 98, 99}, []float64{40, 60, 80, 100}},
		{nil, nil},
	} {
		got := slices.Clone(c.given)
		spread(got, 20, 100)
		if !slices.Equal(got, c.want) {
			t.Errorf("spread(%v): got %v, want %v", c.given, got, c.want)
		}
	}
}
