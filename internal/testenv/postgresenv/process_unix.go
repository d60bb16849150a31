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

// What postgres understands by these signals.
const (
	fastShutdown      = syscall.SIGINT  // roll back, end all sessions, checkpoint
	immediateShutdown = syscall.SIGQUIT // end the children at once, recover at the next start
)

// An account is the user that owns a private instance: PostgreSQL refuses to run as root.
type account struct {
	name       string
	credential *syscall.Credential // nil for the user who runs this process
}

// serverAccount is the user who runs this process or, for root, one that may do next to nothing.
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
	cmd.Dir = "/" // the working directory may be one that the account must not enter
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential}
	return cmd
}

// own hands a file over to the account.
func (a *account) own(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(path, int(a.credential.Uid), int(a.credential.Gid))
}

// serverWatchdog ends the server $1 and removes its folder $2. The pid counts only while the
// server's own file names it, for the system may have given it to another process.
const serverWatchdog = `
n=0
while [ "$n" -lt 100 ] && [ "$(head -n 1 "$2/data/postmaster.pid" 2>/dev/null)" = "$1" ] && kill -QUIT "$1" 2>/dev/null; do
	sleep 0.1
	n=$((n + 1))
done
rm -rf -- "$2"`

// startWatchdog runs a shell script once this process is gone.
func startWatchdog(script string, args ...string) (*watchdog, error) {
	script = "if read -r released; then exit 0; fi\n" + script
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "outboxgen-watchdog"}, args...)...)
	cmd.Dir = "/"
	// an interrupt from the terminal is not for it
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
