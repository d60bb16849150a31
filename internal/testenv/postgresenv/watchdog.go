package postgresenv

import (
	"errors"
	"io"
	"os/exec"
	"sync"
)

// A watchdog is a process that cleans up if this one cannot. It acts when its standard input ends
// without a line, as happens when this process is gone, however it ended.
type watchdog struct {
	cmd      *exec.Cmd
	lifeline io.WriteCloser
}

// held keeps the watchdogs' pipes reachable until they are released. A program may keep a URL and
// forget its Server: the garbage collector would then close the pipe, which the watchdog would take
// for the end of the process.
var held sync.Map

// hold returns a watchdog for a process that is already running.
func hold(cmd *exec.Cmd, lifeline io.WriteCloser) *watchdog {
	w := &watchdog{cmd: cmd, lifeline: lifeline}
	held.Store(w, true)
	return w
}

// release tells the watchdog that nothing is left to clean up. A nil watchdog has been released.
func (w *watchdog) release() error {
	if w == nil {
		return nil
	}
	held.Delete(w)
	_, err := io.WriteString(w.lifeline, "released\n")
	return errors.Join(err, w.lifeline.Close(), w.cmd.Wait())
}
