package scenario

import (
	"runtime"
	"testing"

	"github.com/outboxgen/outboxgen/bench/internal/rival"
)

func TestARelayAloneSaysHowMuchMemoryItTook(t *testing.T) {
	t.Parallel()
	s, err := drainAlone(t.Context(), newLab(t), documents{}, rival.Uniform(50))
	if err != nil {
		t.Fatal(err)
	}
	if s.events != 50 || s.took <= 0 || runtime.GOOS == "linux" && s.Peak < mebibyte {
		t.Errorf("got %d events in %v with %d B, want 50", s.events, s.took, s.Peak)
	}
}

func TestDocumentsHaveTenKilobytes(t *testing.T) {
	t.Parallel()
	db, err := backlog(t.Context(), newLab(t), documents{}, rival.Uniform(20))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Drop()
	var n, least, most int
	const sql = "SELECT count(*), min(octet_length(payload)), max(octet_length(payload)) FROM " +
		"outbox"
	if err := db.QueryRow(t.Context(), sql).Scan(&n, &least, &most); err != nil {
		t.Fatal(err)
	}
	if n != 20 || least < 10_000 || most > 10_100 {
		t.Errorf("got %d events of %d to %d B, want 20 of a little over 10,000 B", n, least, most)
	}
}
