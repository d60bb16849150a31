package main

import "syscall"

// dieWithParent has the kernel end a child whose parent thread is gone, even if the demo was
// killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
