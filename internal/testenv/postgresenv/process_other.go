//go:build !(linux || darwin || freebsd)

package postgresenv

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
)

var errNoPrivateInstance = errors.New("a private instance is not supported on " + runtime.GOOS +
	": use Docker, or name a server")

// Package os has no such signals on this system.
var (
	fastShutdown      = os.Kill
	immediateShutdown = os.Kill
)

type account struct{}

// serverAccount returns an error, so that nothing below is ever called.
func serverAccount() (*account, error) { return nil, errNoPrivateInstance }

func (a *account) String() string { return "the current user" }

func (a *account) command(name string, args ...string) *exec.Cmd {
	return exec.Command(name, args...)
}

func (a *account) commandContext(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, name, args...)
}

func (a *account) own(string) error { return nil }

func dieWithParent(*exec.Cmd) {}

const serverWatchdog = ""

func startWatchdog(string, ...string) (*watchdog, error) { return nil, errNoPrivateInstance }
