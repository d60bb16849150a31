package report

import (
	"cmp"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// machine returns what Linux says about itself in its files, and what the Go runtime knows on other
// systems. The directory is the server's; it returns no file system for "".
func machine(files fs.FS, directory string) []Fact {
	facts := []Fact{
		{"processor", cmp.Or(lookup(files, "proc/cpuinfo", "model name", ":"), runtime.GOARCH)},
		{"cores", cores()},
		{"memory", memory(lookup(files, "proc/meminfo", "MemTotal", ":"))},
		{"system", system(files)},
		{"file system of the data", fileSystem(files, directory)},
	}
	return slices.DeleteFunc(facts, func(f Fact) bool { return f.Value == "" })
}

// cores returns how many there are, and how many of them Go uses if a container is allowed fewer.
func cores() string {
	all, used := runtime.NumCPU(), runtime.GOMAXPROCS(0)
	if all == used {
		return strconv.Itoa(all)
	}
	return fmt.Sprintf("%d, of which Go uses %d", all, used)
}

// memory converts "24684096 kB" into GiB.
func memory(kilobytes string) string {
	n, err := strconv.ParseFloat(strings.TrimSuffix(kilobytes, " kB"), 64)
	if err != nil {
		return ""
	}
	return Number(n/(1<<20)) + " GiB"
}

func system(files fs.FS) string {
	release, err := fs.ReadFile(files, "proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	// The rest says who built it, and where.
	version, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-")
	kernel := "Linux " + version
	if distribution := lookup(files, "etc/os-release", "PRETTY_NAME", "="); distribution != "" {
		return distribution + ", " + kernel
	}
	return kernel
}

// fileSystem returns the type of the file system that is mounted deepest on the path to the
// directory and, among those at one place, last.
func fileSystem(files fs.FS, directory string) (kind string) {
	if directory == "" {
		return ""
	}
	mounts, _ := fs.ReadFile(files, "proc/self/mountinfo") // without that file, nothing is known
	depth := 0
	for line := range strings.Lines(string(mounts)) {
		before, after, ok := strings.Cut(line, " - ")
		mount, source := strings.Fields(before), strings.Fields(after)
		if !ok || len(mount) < 5 || len(source) == 0 || len(mount[4]) < depth ||
			!within(directory, mount[4]) {
			continue
		}
		depth, kind = len(mount[4]), source[0]
	}
	return kind
}

// within reports whether path is directory or lies below it.
func within(path, directory string) bool {
	directory = strings.TrimSuffix(directory, "/")
	return path == directory || strings.HasPrefix(path, directory+"/")
}

// lookup returns the first value of a name in a file of lines "name separator value", or "".
func lookup(files fs.FS, path, name, separator string) string {
	text, _ := fs.ReadFile(files, path) // a missing file has no lines
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(line, separator); strings.TrimSpace(key) == name {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}
