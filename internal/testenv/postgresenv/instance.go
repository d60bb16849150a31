package postgresenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	superuser    = "postgres"
	startTimeout = 3 * time.Minute
	stopTimeout  = time.Minute
	pollInterval = 20 * time.Millisecond
	portAttempts = 5 // another process may take the free port before the server does
)

// An instance is a postgres process that this process has started.
type instance struct {
	cmd    *exec.Cmd
	dir    *workDir
	exited chan struct{} // closed when the process is gone
}

// startInstance starts postgres on a data directory and waits until it answers.
func startInstance(
	ctx context.Context, cfg Config, bin string, dir *workDir, owner *account,
) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var err error
	for range portAttempts {
		var port int
		if port, err = freePort(); err != nil {
			return nil, err
		}
		admin := &url.URL{Scheme: "postgres", User: url.User(superuser),
			Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
			Path: "/postgres", RawQuery: "sslmode=disable"}
		server := &Server{}
		if err = server.start(ctx, private{cfg: cfg, bin: bin, dir: dir, owner: owner},
			admin); err == nil {
			return server, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// start starts postgres at the address of admin, and waits until it answers.
func (s *Server) start(ctx context.Context, p private, admin *url.URL) error {
	port, err := strconv.Atoi(admin.Port())
	if err != nil {
		return err
	}
	if p.inst, err = launch(p.cfg, p.bin, p.dir, p.owner, port); err != nil {
		return err
	}
	source, err := p.inst.awaitReady(ctx, admin, "private instance of "+p.bin)
	if err != nil {
		p.inst.kill()
		return err
	}
	s.Source, s.admin, s.stop, s.private = source, admin, p.inst.stop, &p
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port on 127.0.0.1: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// launch starts postgres, and the watchdog that ends it and removes its files once this process is
// gone.
func launch(cfg Config, bin string, dir *workDir, owner *account, port int) (*instance, error) {
	log, err := os.OpenFile(dir.Join("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := owner.command(filepath.Join(bin, "postgres"), settings(cfg, dir, port)...)
	cmd.Stdout, cmd.Stderr = log, log
	dieWithParent(cmd)
	inst := &instance{cmd: cmd, dir: dir, exited: make(chan struct{})}
	if err := inst.startOnOwnThread(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	if err := dir.watch(cmd.Process.Pid); err != nil {
		inst.kill()
		return nil, err
	}
	return inst, nil
}

// startOnOwnThread keeps the operating system's thread that forks alive as long as the process,
// because Linux delivers the parent-death signal when that thread ends, not when the parent does.
func (i *instance) startOnOwnThread() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer close(i.exited)
		err := i.cmd.Start()
		started <- err
		if err == nil {
			_ = i.cmd.Wait() // the log says how postgres ended
		}
	}()
	return <-started
}

// settings returns those of a private instance. It has no Unix socket, whose path could be too
// long.
func settings(cfg Config, dir *workDir, port int) []string {
	return append([]string{"-D", dir.data(),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "port=" + strconv.Itoa(port),
		"-c", "unix_socket_directories=",
	}, commonSettings(cfg)...)
}

// commonSettings returns those that a container gets as well.
func commonSettings(cfg Config) []string {
	durable := "off"
	if cfg.Durable {
		durable = "on"
	}
	args := []string{
		"-c", "max_connections=200",
		"-c", "fsync=" + durable,
		"-c", "full_page_writes=" + durable,
		"-c", "synchronous_commit=" + durable,
	}
	for name, value := range cfg.Settings {
		args = append(args, "-c", name+"="+value)
	}
	return args
}

// awaitReady waits until the server answers, or returns an error that says why it ended.
func (i *instance) awaitReady(ctx context.Context, admin *url.URL, origin string) (string, error) {
	for {
		source, err := describe(ctx, admin, origin)
		if err == nil {
			err = i.checkIdentity(ctx, admin)
		}
		if err == nil {
			return source, nil
		}
		select {
		case <-i.exited:
			return "", fmt.Errorf("%s ended at once:\n%s", i.cmd.Path, i.dir.logTail())
		case <-ctx.Done():
			return "", fmt.Errorf("%s does not answer: %w\n%s", i.cmd.Path, err, i.dir.logTail())
		case <-time.After(pollInterval):
		}
	}
}

// checkIdentity returns an error if another server has taken the port first.
func (i *instance) checkIdentity(ctx context.Context, admin *url.URL) error {
	conn, err := pgx.Connect(ctx, admin.String())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var data string
	if err := conn.QueryRow(ctx, "SHOW data_directory").Scan(&data); err != nil {
		return err
	}
	if data != i.dir.data() {
		return fmt.Errorf("another server, of %s, has the port", data)
	}
	return nil
}

// stop ends the server in an orderly way, or by force if that takes too long, and removes its
// files.
func (i *instance) stop() error {
	if err := i.end(); err != nil {
		return err
	}
	return i.dir.remove()
}

func (i *instance) end() error {
	if err := i.cmd.Process.Signal(fastShutdown); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("postgresenv: stop the server: %w", err)
	}
	select {
	case <-i.exited:
	case <-time.After(stopTimeout):
		i.kill()
	}
	return nil
}

// kill ends the server and its children at once, and waits for it.
func (i *instance) kill() {
	_ = i.cmd.Process.Signal(immediateShutdown) // the postmaster ends its children, too
	select {
	case <-i.exited:
	case <-time.After(stopTimeout):
		_ = i.cmd.Process.Kill() // the children notice and end by themselves
		<-i.exited
	}
}
