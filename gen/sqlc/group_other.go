//go:build !unix

package sqlc

import "os/exec"

// This system has no process groups that signals can be sent to: a command ends without those that
// it started.

func inGroup(*exec.Cmd) {}

func interruptGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func killGroup(*exec.Cmd) {}
