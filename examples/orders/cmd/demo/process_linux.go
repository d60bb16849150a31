package main

import "syscall"

// dieWithParent makes the kernel end a child process when the thread that started it is gone, even
// if the demo was killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
