//go:build darwin || freebsd

package postgresenv

import "os/exec"

// dieWithParent keeps the terminal's interrupts from the server; its end is up to the watchdog.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Setsid = true }
