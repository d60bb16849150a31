package postgresenv

import "os/exec"

// dieWithParent makes the kernel end the server when this process ends, and keeps interrupts from
// the terminal away from it.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr.Setsid = true
	cmd.SysProcAttr.Pdeathsig = immediateShutdown
}
