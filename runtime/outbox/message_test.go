package outbox

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/outboxgen/outboxgen/runtime/outbox/internal/ledger"
	"github.com/outboxgen/outboxgen/runtime/outbox/storage"
)

// TestMessagesKeepTheirContentsToThemselves holds that neither fmt nor slog shows what may be
// personal data.
func TestMessagesKeepTheirContentsToThemselves(t *testing.T) {
	const secret = "zoe@example.org"
	m := Message{Type: "order.placed", Version: 1, Key: secret, Payload: []byte(secret),
		Headers: map[string]string{"h": secret}}
	letter := storage.DeadLetter{Message: m, Error: "refused", DiedAt: time.Now()}
	var out bytes.Buffer
	for _, v := range []any{m, &m, []Message{m}, letter, &letter, []*Message{&m},
		&ledger.Event{Item: &storage.Item{Message: m}}, storage.Item{Message: m}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil),
		slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("met", "value", m, "pointer", &m, "letter", letter)
	}
	for _, hidden := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprint([]byte(secret))} {
		if strings.Contains(out.String(), hidden) {
			t.Errorf("%s is shown in:\n%s", hidden, out.String())
		}
	}
	if n := strings.Count(out.String(), "refused"); n != 2*7+2 {
		t.Errorf("why it died is shown %d times, want it with each of the dead letters in:\n%s",
			n, out.String())
	}
	if !strings.Contains(out.String(), "order.placed@1") {
		t.Errorf("the type is not shown in:\n%s", out.String())
	}
}
