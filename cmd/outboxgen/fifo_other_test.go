//go:build !unix

package main

import "github.com/rogpeppe/go-internal/testscript"

// fifo ends a script on a system without named pipes.
func fifo(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("no named pipes here") }
