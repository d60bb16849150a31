//go:build linux || darwin || freebsd

package postgresenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// envHelper is the environment variable that makes the test binary a program which uses a server.
const envHelper = "OUTBOXGEN_TEST_HELPER"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(envHelper); mode {
	case "":
		os.Exit(m.Run())
	case "docker":
		_, err := startDocker(context.Background(), Config{}, "", "")
		fmt.Println(err)
	default:
		os.Exit(helper(mode))
	}
}

// helper starts a server, prints what identifies it, and ends without stopping it: at once, or when
// it is killed.
func helper(mode string) int {
	server, err := startBinaries(context.Background(), Config{},
		append(systemInstallations(), testdepsInstallations()...), "", "here")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	url := server.admin.String()
	// From here on nothing refers to the server, as in a program that keeps only its URL.
	for range 3 {
		runtime.GC()
	}
	fmt.Println(url)
	if mode == "wait" {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
	}
	return 0
}

// A trace is what a server would leave if it were not cleaned up.
type trace struct {
	pids []int // the server first, then its children
	dir  string
}

// traceOf asks a server for its processes and files.
func traceOf(t *testing.T, server *Server) trace {
	t.Helper()
	pool := openOn(t, server)
	defer pool.Close()
	data := query[string](t, pool, "SHOW data_directory")
	pids := []int{postmaster(t, data)}
	var children []int32
	eventually(t, func() error { // the processes start one after the other
		if children = query[[]int32](t, pool,
			"SELECT array_agg(pid) FROM pg_stat_activity"); len(children) < 3 {
			return fmt.Errorf("the server names %d processes, want its background ones as well",
				len(children))
		}
		return nil
	})
	for _, pid := range children {
		pids = append(pids, int(pid))
	}
	return trace{pids: pids, dir: filepath.Dir(data)}
}

func postmaster(t *testing.T, data string) int {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(file), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// awaitGone fails the test if the server's processes and files do not disappear.
func (tr trace) awaitGone(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		for _, pid := range tr.pids {
			if alive(pid) {
				return fmt.Errorf("process %d of the server still runs", pid)
			}
		}
		if _, err := os.Stat(tr.dir); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s is still there: %v", tr.dir, err)
		}
		return nil
	})
}

// alive reports whether a process runs. A zombie does not count.
func alive(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, state, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(state, "Z")
	}
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// eventually calls complaint until it returns nil. Its time limit ends a test that hangs.
func eventually(t *testing.T, complaint func() error) {
	t.Helper()
	deadline := time.NewTimer(3 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := complaint()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal(err)
		}
	}
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	server := startPrivate(t, Config{})
	left := traceOf(t, server)
	for range 2 {
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	left.awaitGone(t)
}

func TestServerOutlivesTheThreadThatAskedForIt(t *testing.T) {
	t.Parallel()
	found := privateInstallations(t)
	var server *Server
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		server, err = startBinaries(t.Context(), Config{}, found, "", "here")
	}()
	<-ended
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	for range 20 {
		if _, err := server.CreateDatabase(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// startHelper runs the test binary as a helper, and returns what it prints first.
func startHelper(t *testing.T, mode string, env ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), envHelper+"="+mode), env...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close() })
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the helper said %q, then: %v", line, err)
	}
	return cmd, strings.TrimSpace(line)
}

func TestServerEndsWithAProgramThatIsKilled(t *testing.T) {
	t.Parallel()
	privateInstallations(t)
	cmd, url := startHelper(t, "wait")
	server, err := connectURL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	left := traceOf(t, server)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the helper ended by itself")
	}
	left.awaitGone(t)
}

func TestServerEndsWithAProgramThatForgetsIt(t *testing.T) {
	t.Parallel()
	privateInstallations(t)
	temp := t.TempDir()
	openUp(t, temp)
	cmd, url := startHelper(t, "exit", "TMPDIR="+temp)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	eventually(t, func() error {
		if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
			return fmt.Errorf("%v are still there", left)
		}
		return nil
	})
	if server, err := connectURL(t.Context(), url); err == nil {
		t.Errorf("%s still answers", server.Source)
	}
}

// openUp allows the server's user to enter a directory of the test, as it may enter the system's
// own.
func openUp(t *testing.T, dir string) {
	t.Helper()
	for top := filepath.Clean(os.TempDir()); dir != top && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDaemonThatDoesNotAnswerIsRefused(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "d.sock")
	l, err := net.Listen("unix", socket) // it accepts no connection
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd, said := startHelper(t, "docker", "DOCKER_HOST=unix://"+socket)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "no Docker daemon answers") {
		t.Errorf("got %q, want a refusal", said)
	}
}
