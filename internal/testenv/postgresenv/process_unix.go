//go:build linux || darwin || freebsd

package postgresenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// The meaning of these signals to postgres.
const (
	fastShutdown      = syscall.SIGINT  // roll back, end all sessions, checkpoint
	immediateShutdown = syscall.SIGQUIT // end the children at once, recover at the next start
)

// An account is the user that owns a private instance, since PostgreSQL refuses to run as root.
type account struct {
	name       string
	credential *syscall.Credential // nil for the user that runs this process
}

// serverAccount returns the user that runs this process or, for root, a user with few rights.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return &account{name: "the current user"}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr != nil || gidErr != nil || uid == 0 {
			continue
		}
		return &account{
			name:       "user " + name,
			credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
		}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or " +
		"nobody to run it: run the tests as another user, or add one")
}

func (a *account) String() string { return a.name }

func (a *account) command(name string, args ...string) *exec.Cmd {
	return a.commandContext(context.Background(), name, args...)
}

func (a *account) commandContext(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = "/" // the account may not be allowed to enter the working directory
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential}
	return cmd
}

// own makes the account the owner of a file.
func (a *account) own(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(path, int(a.credential.Uid), int(a.credential.Gid))
}

// serverWatchdog ends the server $1 and removes its directory $2. It checks that the server's own
// file names the process id, since the system may have given that to another process.
const serverWatchdog = `
n=0
while [ "$n" -lt 100 ] && [ "$(head -n 1 "$2/data/postmaster.pid" 2>/dev/null)" = "$1" ] &&
	kill -QUIT "$1" 2>/dev/null; do
	sleep 0.1
	n=$((n + 1))
done
rm -rf -- "$2"`

// startWatchdog starts a shell script that acts once this process is gone.
func startWatchdog(script string, args ...string) (*watchdog, error) {
	script = "if read -r released; then exit 0; fi\n" + script
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "outboxgen-watchdog"}, args...)...)
	cmd.Dir = "/"
	// It must not get interrupts from the terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a watchdog: %w", errors.Join(err, lifeline.Close()))
	}
	return hold(cmd, lifeline), nil
}
