package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
)

// startProfiles starts the profiles that the flags ask for, and returns a function that stops and
// writes them.
func startProfiles(o options) (stop func() error, err error) {
	stopCPU, err := startCPUProfile(o.cpuProfile)
	if err != nil {
		return nil, fmt.Errorf("bench: -cpuprofile: %w", err)
	}
	memory, err := create(o.memoryProfile)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bench: -memprofile: %w", err), stopCPU())
	}
	return func() error { return errors.Join(stopCPU(), writeMemoryProfile(memory)) }, nil
}

func startCPUProfile(path string) (stop func() error, err error) {
	file, err := create(path)
	if file == nil {
		return func() error { return nil }, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}

func writeMemoryProfile(file *os.File) error {
	if file == nil {
		return nil
	}
	runtime.GC() // the profile is of what there was at the last collection
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}

// create creates a file; it returns nil for an empty path.
func create(path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	return os.Create(path)
}
