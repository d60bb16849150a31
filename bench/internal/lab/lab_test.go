package lab

import (
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/internal/testenv/postgresenv"
)

func database(t *testing.T) (*Lab, *Database) {
	t.Helper()
	l := &Lab{Server: postgresenv.Shared(t)}
	db, err := l.Database(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return l, db
}

func TestSetIsUndoneToWhatWasThere(t *testing.T) {
	l, db := database(t)
	defer db.Drop()
	const name = "bgwriter_delay"
	original, err := db.altered(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want *string) {
		t.Helper()
		got, err := db.altered(t.Context(), name)
		if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("got %v and error %v, want %v", got, err, want)
		}
	}
	outer, inner := "150ms", "250ms"
	resetOuter, err := l.Set(t.Context(), name, outer)
	if err != nil {
		t.Fatal(err)
	}
	expect(&outer)
	resetInner, err := l.Set(t.Context(), name, inner)
	if err != nil {
		t.Error(err)
	} else {
		expect(&inner)
		resetInner()
	}
	expect(&outer)
	resetOuter()
	expect(original)
	if _, err := l.Set(t.Context(), name, "it's no time"); err == nil {
		t.Error("no error for a value that is none")
	}
	expect(original)
}

func TestDropDoesNotWaitForEverForAConnection(t *testing.T) {
	t.Parallel()
	_, db := database(t)
	conn, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if closed(db.Pool, time.Millisecond) {
		t.Error("the pool is closed, but a connection of it is in use")
	}
	conn.Release()
	if !closed(db.Pool, closeTimeout) {
		t.Error("the pool is not closed after all were given back")
	}
	db.Drop()
}
