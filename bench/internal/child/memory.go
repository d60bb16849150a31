package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

// newReport returns the report of this process without its record.
func newReport() (Report, error) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	peak, err := peakMemory()
	return Report{
		Peak: peak, Heap: int64(m.HeapSys - m.HeapReleased), Allocated: int64(m.TotalAlloc),
	}, err
}

// peakMemory returns the peak resident memory of this process in bytes, or 0 if the system has no
// /proc.
func peakMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("bench: peak memory: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10, nil
		}
	}
	return 0, errors.New("bench: peak memory: /proc/self/status does not have it")
}
