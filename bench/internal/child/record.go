package child

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// record is a publisher that does nothing but write each event's seq to a file, so that it takes no memory however many there are.
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
	_, err := r.out.Write(binary.LittleEndian.AppendUint64(r.out.AvailableBuffer(), uint64(m.Seq)))
	return err
}

func (r *record) close() error {
	if err := errors.Join(r.out.Flush(), r.file.Close()); err != nil {
		return fmt.Errorf("bench: record of publishes: %w", err)
	}
	return nil
}

// readRecord returns the seqs that a record has.
func readRecord(path string) ([]int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("bench: record of publishes: %w", err)
	}
	seqs := make([]int64, len(data)/8)
	if n, err := binary.Decode(data, binary.LittleEndian, seqs); err != nil || n != len(data) {
		return nil, fmt.Errorf("bench: record of publishes: it was cut short after %d bytes", len(data))
	}
	return seqs, nil
}
