package postgresenv

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/outboxgen/outboxgen/internal/testenv/tempdir"
)

const logTailBytes = 2000

// A workDir has all files of one private instance.
type workDir struct {
	*tempdir.Dir
	watchdog *watchdog // nil until the server runs
}

// newWorkDir creates a directory that belongs to the server's user, with an empty data directory.
func newWorkDir(owner *account) (*workDir, error) {
	temp, err := tempdir.New("outboxgen-pg-")
	if err != nil {
		return nil, err
	}
	d := &workDir{Dir: temp}
	err = os.Mkdir(d.data(), 0o700)
	for _, path := range []string{d.Join(), d.data()} {
		if err == nil {
			err = owner.own(path)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare %s: %w", d.Join(), err), d.remove())
	}
	return d, nil
}

func (d *workDir) data() string { return d.Join("data") }

// logTail returns the end of what postgres has logged.
func (d *workDir) logTail() string {
	log, err := os.ReadFile(d.Join("log"))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-logTailBytes):])
}

// watch makes sure that the server and the directory do not outlive this process.
func (d *workDir) watch(pid int) (err error) {
	if err = d.watchdog.release(); err == nil {
		d.watchdog, err = startWatchdog(serverWatchdog, strconv.Itoa(pid), d.Join())
	}
	return err
}

// remove deletes the directory and ends the watchdog.
func (d *workDir) remove() error {
	err := errors.Join(d.Remove(), d.watchdog.release())
	d.watchdog = nil
	return err
}
