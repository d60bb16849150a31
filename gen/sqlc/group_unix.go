//go:build unix

package sqlc

import (
	"os/exec"
	"syscall"
)

// inGroup makes a command the head of a process group of its own: go, the sqlc that go starts, and
// compilers.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// interruptGroup asks all processes of a command to end, so that go removes its temporary files.
func interruptGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }

// killGroup ends those that did not.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
