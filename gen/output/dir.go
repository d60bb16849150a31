package output

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"
)

// MaxBytes is the size up to which a file is read. What outboxgen generates is far smaller.
const MaxBytes = 64 << 20

// Dir is the directory that a plan is for. Nothing outside of it can be reached, not through a
// symbolic link either.
type Dir struct {
	*os.Root
	Name string // what messages call it; with slashes, "" or "." if they need not
}

// Display returns what messages call a file of the directory.
func (d Dir) Display(name string) string { return path.Join(d.Name, name) }

// describe returns an error that names its file once, as the user knows it.
func (d Dir) describe(name string, err error) error {
	return fmt.Errorf("%s: %w", d.Display(name), Reason(err))
}

// Reason returns an error of the file system without the names of the operation and of the file.
func Reason(err error) error {
	var inner *fs.PathError
	var link *os.LinkError
	if errors.As(err, &inner) {
		return inner.Err
	} else if errors.As(err, &link) {
		return link.Err
	}
	return err
}

// FS returns the directory for reading. It opens nothing but regular files of at most MaxBytes: a
// FIFO would block for ever, and a device may never end.
func (d Dir) FS() fs.FS { return regularFS{d.Root.FS()} }

type regularFS struct{ fs.FS }

func (r regularFS) Open(name string) (fs.File, error) {
	info, err := fs.Stat(r.FS, name)
	if err == nil && !info.IsDir() {
		err = readable(info)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: Reason(err)}
	}
	return r.FS.Open(name)
}

func (r regularFS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(r.FS, name) }

// readable says what keeps a file from being read.
func readable(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s, and not a file: move it away", Kind(info.Mode()))
	case info.Size() > MaxBytes:
		return fmt.Errorf("it has %d bytes, and %d are the limit: move it away", info.Size(),
			MaxBytes)
	}
	return nil
}

// ReadFile reads a file that the user names, by the rules of Dir.FS. It follows symbolic links. The
// error does not name the file.
func ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err == nil {
		err = readable(info)
	}
	if err != nil {
		return nil, Reason(err)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, Reason(err)
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, MaxBytes))
}

// Kind describes what stands at a path, if it is no regular file.
func Kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	default:
		return "a special file"
	}
}

// errHeld says that another run holds the directory.
var errHeld = errors.New("another run of outboxgen is at work here")

// holdInterval is how often a waiting run tries again.
const holdInterval = 50 * time.Millisecond

// Hold keeps other runs out of the directory until release is called or the process ends, even if
// it is killed. Runs that only read can share the directory. While another run is in the way, Hold
// calls waiting once and waits until the context ends. It leaves no file behind and needs no right
// to write.
//
// On systems and file systems without such locks, Hold returns at once and keeps nobody out.
func (d Dir) Hold(ctx context.Context, exclusive bool, waiting func()) (release func(), err error) {
	for told := false; ; told = true {
		release, err := d.tryHold(exclusive)
		if !errors.Is(err, errHeld) {
			return release, err
		}
		if !told {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(holdInterval):
		}
	}
}
