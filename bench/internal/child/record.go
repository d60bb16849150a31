package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/google/uuid"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// record is a publisher that only writes each event's id to a file, so that it needs the same
// memory for any number of them.
type record struct {
	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
}

func createRecord(path string) (*record, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("bench: record of publishes: %w", err)
	}
	return &record{file: file, out: bufio.NewWriter(file)}, nil
}

// Publish implements outbox.Publisher.
func (r *record) Publish(_ context.Context, m *outbox.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.out.Write(m.ID[:])
	return err
}

func (r *record) close() error {
	if err := errors.Join(r.out.Flush(), r.file.Close()); err != nil {
		return fmt.Errorf("bench: record of publishes: %w", err)
	}
	return nil
}

// readRecord returns the ids in a record.
func readRecord(path string) ([]uuid.UUID, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("bench: record of publishes: %w", err)
	}
	ids := make([]uuid.UUID, len(data)/len(uuid.UUID{}))
	for i := range ids {
		data = data[copy(ids[i][:], data):]
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("bench: record of publishes: it was cut short by %d bytes",
			len(uuid.UUID{})-len(data))
	}
	return ids, nil
}
