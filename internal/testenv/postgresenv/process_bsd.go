//go:build darwin || freebsd

package postgresenv

import "os/exec"

// dieWithParent keeps interrupts from the terminal away from the server, which the watchdog ends.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Setsid = true }
