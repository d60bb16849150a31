package postgresenv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// private is what a server on this machine was started with.
type private struct {
	cfg   Config
	bin   string
	dir   *workDir
	owner *account
	inst  *instance
}

// ErrNotPrivate says that this process has not started the server from binaries on this machine.
var ErrNotPrivate = errors.New(
	"postgresenv: only a private instance of binaries on this machine can do that",
)

// Kill ends the server at once and flushes nothing, as a loss of power does, except that the system
// still writes what it has buffered. The server recovers when it starts again.
func (s *Server) Kill() error {
	if s.private == nil {
		return ErrNotPrivate
	}
	s.private.inst.kill()
	return nil
}

// Restart stops the server in an orderly way, and starts it again at the same address.
func (s *Server) Restart(ctx context.Context) error {
	if s.private == nil {
		return ErrNotPrivate
	}
	p := s.private
	if err := p.inst.end(); err != nil {
		return err
	}
	return s.start(ctx, *p, s.admin)
}

// StartPair starts a server and a hot standby that follows it until it is promoted by pg_promote()
// or its primary_conninfo is reset. Both are private instances.
func StartPair(ctx context.Context, cfg Config) (primary, standby *Server, err error) {
	primary, err = Start(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, primary.Stop())
		}
	}()
	if primary.private == nil {
		return nil, nil, ErrNotPrivate
	}
	p := primary.private
	if err := p.inst.end(); err != nil {
		return nil, nil, err
	}
	dir, err := copyForStandby(ctx, p, primary.admin)
	if err != nil {
		return nil, nil, err
	}
	if err := primary.start(ctx, *p, primary.admin); err != nil {
		return nil, nil, errors.Join(err, dir.remove())
	}
	standby, err = startInstance(ctx, cfg, p.bin, dir, p.owner)
	if err != nil {
		return nil, nil, errors.Join(err, dir.remove())
	}
	return primary, standby, nil
}

// URLOf returns the URL, on this standby, of a database that was created on its primary.
func (s *Server) URLOf(db Database) string {
	u := *s.admin
	u.Path = "/" + db.Name
	return u.String()
}

// copyForStandby copies the data directory of a server that has been stopped in an orderly way.
func copyForStandby(ctx context.Context, p *private, admin *url.URL) (*workDir, error) {
	dir, err := newWorkDir(p.owner)
	if err != nil {
		return nil, err
	}
	cmd := p.owner.commandContext(ctx, "cp", "-R", "-p", p.dir.data()+"/.", dir.data())
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil,
			errors.Join(fmt.Errorf("copy the data directory: %w\n%s", err, out), dir.remove())
	}
	conninfo := fmt.Sprintf("primary_conninfo = 'host=%s port=%s user=%s'\n", admin.Hostname(),
		admin.Port(), superuser)
	for name, text := range map[string]string{
		"standby.signal": "", "postgresql.auto.conf": conninfo,
	} {
		path := filepath.Join(dir.data(), name)
		err := os.WriteFile(path, []byte(text), 0o600)
		if err == nil {
			err = p.owner.own(path)
		}
		if err != nil {
			return nil, errors.Join(err, dir.remove())
		}
	}
	return dir, nil
}
