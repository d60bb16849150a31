package postgresenv

import "os/exec"

// dieWithParent makes the kernel end the server at once when this process ends, and keeps the
// terminal's interrupts from it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr.Setsid = true
	cmd.SysProcAttr.Pdeathsig = immediateShutdown
}
