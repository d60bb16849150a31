package gen

import (
	"context"
	"errors"
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/output"
	"github.com/outboxgen/outboxgen/gen/sqlc"
)

// compile has sqlc compile the SQL, and remembers what came of it.
func (g *generator) compile(ctx context.Context) (map[string][]byte, error) {
	made, err := g.SQLC(ctx, g.sqlFiles)
	if err == nil {
		g.Seen.Add(g.seenAs(made))
	}
	return made, err
}

// verify returns what sqlc makes of the SQL. It gets files on disk that have the sums in the lock,
// but somebody may have edited both. Unless sqlc has made these files on this machine before,
// verify runs it. If sqlc cannot be run, verify reports that and returns the files.
func (g *generator) verify(
	ctx context.Context, before map[string][]byte,
) (map[string][]byte, error) {
	if g.Seen.Has(g.seenAs(before)) {
		return before, nil
	}
	made, err := g.compile(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, err
	case err != nil:
		g.result.Diagnostics.Add(g.unchecked(err))
		return before, nil
	default:
		return made, nil
	}
}

// unchecked reports that sqlc's files were compared with the lock only, and why.
func (g *generator) unchecked(err error) diag.Diagnostic {
	reason, _, _ := strings.Cut(err.Error(), "\n")
	help := "see to it that sqlc can be run: " + reason
	if errors.Is(err, sqlc.ErrMissing) {
		help = "install sqlc (github.com/sqlc-dev/sqlc/cmd/sqlc@" + sqlc.TestedVersion +
			"), or say where it is: --sqlc PATH"
	}
	pos := diag.Pos{File: g.display(g.sqlDir())}
	return diag.New(diag.OutputUnchecked, pos,
		"the Go files were not compared with what sqlc makes of the SQL").WithHelp("%s", help)
}

// seenAs returns the hash of the SQL and of what sqlc made of it.
func (g *generator) seenAs(made map[string][]byte) string {
	return output.Hash([]byte(g.next.SQL + " " + hashAll(made)))
}
