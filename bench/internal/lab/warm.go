package lab

import (
	"context"
	"fmt"
)

// Warm opens as many connections as the pool may have, so that none has to be opened during a
// measurement. It waits until ctx ends for those that are in use.
func (d *Database) Warm(ctx context.Context) error {
	for range d.Config().MaxConns {
		conn, err := d.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("bench: warm the pool: %w", err)
		}
		// All are held until the last is open: otherwise the pool would not open another.
		defer conn.Release()
		if _, err := conn.Exec(ctx, "SELECT 1"); err != nil {
			return fmt.Errorf("bench: warm the pool: %w", err)
		}
	}
	return nil
}
