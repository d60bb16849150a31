package postgresenv

import (
	"errors"
	"io"
	"os/exec"
)

// A watchdog is a process that cleans up where this one cannot: it acts when its standard input ends without a line,
// which is what happens when this process is gone, however it went.
type watchdog struct {
	cmd      *exec.Cmd
	lifeline io.WriteCloser
}

// release tells the watchdog that nothing is left to do. A nil watchdog has been released.
func (w *watchdog) release() error {
	if w == nil {
		return nil
	}
	_, err := io.WriteString(w.lifeline, "released\n")
	return errors.Join(err, w.lifeline.Close(), w.cmd.Wait())
}
