package postgresenv

import (
	"errors"
	"io"
	"os/exec"
	"sync"
)

// A watchdog is a process that cleans up where this one cannot: it acts when its standard input
// ends without a line, which is what happens when this process is gone, however it went.
type watchdog struct {
	cmd      *exec.Cmd
	lifeline io.WriteCloser
}

// held keeps the lifelines reachable until they are released. A program may keep a URL and forget
// its Server: the garbage collector would close the pipe, and the watchdog take that for the end of
// the process.
var held sync.Map

// hold makes a watchdog out of a running process.
func hold(cmd *exec.Cmd, lifeline io.WriteCloser) *watchdog {
	w := &watchdog{cmd: cmd, lifeline: lifeline}
	held.Store(w, true)
	return w
}

// release tells the watchdog that nothing is left to do. A nil watchdog has been released.
func (w *watchdog) release() error {
	if w == nil {
		return nil
	}
	held.Delete(w)
	_, err := io.WriteString(w.lifeline, "released\n")
	return errors.Join(err, w.lifeline.Close(), w.cmd.Wait())
}
