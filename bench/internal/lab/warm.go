package lab

import (
	"context"
	"fmt"
)

// Warm opens as many connections as the pool may have, so that none is made in the middle of a
// measurement. It waits for those that are in use until ctx ends.
func (d *Database) Warm(ctx context.Context) error {
	for range d.Config().MaxConns {
		conn, err := d.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("bench: warm the pool: %w", err)
		}
		// Until the last is open: only connections that are held make the pool open another.
		defer conn.Release()
		if _, err := conn.Exec(ctx, "SELECT 1"); err != nil {
			return fmt.Errorf("bench: warm the pool: %w", err)
		}
	}
	return nil
}
