package postgresenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// startBinaries starts a private instance of the first installation that works. Where says where
// they were looked for.
func startBinaries(
	ctx context.Context, cfg Config, found []installation, version, where string,
) (*Server, error) {
	if len(found) == 0 {
		return nil, errors.New("no initdb and postgres " + where)
	}
	owner, err := serverAccount()
	if err != nil {
		return nil, err
	}
	var refusals []error
	for _, inst := range found {
		server, err := startInstallation(ctx, cfg, inst, owner, version)
		if err == nil {
			return server, nil
		}
		refusals = append(refusals, err)
	}
	return nil, errors.Join(refusals...)
}

func startInstallation(
	ctx context.Context, cfg Config, inst installation, owner *account, version string,
) (_ *Server, err error) {
	dir, err := newWorkDir(owner)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.remove())
		}
	}()
	bin := inst.bin
	err = checkVersion(bin, owner, version)
	if errors.Is(err, os.ErrPermission) && inst.prefix != "" {
		// The server's user may not enter the checkout, if it is in root's home, say.
		if err = os.CopyFS(dir.Join("pg"), os.DirFS(inst.prefix)); err == nil {
			bin = dir.Join("pg", "bin")
			err = checkVersion(bin, owner, version)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := initDatabase(ctx, bin, dir, owner); err != nil {
		return nil, err
	}
	return startInstance(ctx, cfg, bin, dir, owner)
}

// initDatabase creates the data directory. Only connections from loopback are trusted; the server
// listens on no other address.
func initDatabase(ctx context.Context, bin string, dir *workDir, owner *account) error {
	cmd := owner.commandContext(ctx, filepath.Join(bin, "initdb"),
		"--pgdata", dir.data(), "--username", superuser, "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd.Path, err, out)
	}
	return nil
}
