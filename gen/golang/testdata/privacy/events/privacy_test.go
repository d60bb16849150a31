package events

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/outboxgen/outboxgen/runtime/payload"
)

const secret = "12 Acacia Avenue"

func secrets() map[string]any {
	email := secret
	customer := &Customer{Addresses: []Address{{Street: secret}}}
	nested := NestedToldV1{Basket: &Basket{ByName: map[string][]*Customer{secret: {customer}}}}
	return map[string]any{
		"event":         DirectToldV1{Email: &email},
		"pointer":       &DirectToldV1{Email: &email},
		"nested":        nested,
		"type":          Address{Street: secret},
		"through types": *customer,
		"in a struct":   struct{ Event NestedToldV1 }{nested},
	}
}

func TestNoVerbPrintsPersonalData(t *testing.T) {
	t.Parallel()
	for name, v := range secrets() {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10v"} {
			if got := fmt.Sprintf(verb, v); leaks(got) {
				t.Errorf("%s: %s prints %s", name, verb, got)
			}
		}
	}
	if got, want := fmt.Sprint(&DirectToldV1{}), "direct.told@1 [personal data]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNoLogHasPersonalData(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for name, v := range secrets() {
		slog.New(slog.NewTextHandler(&out, nil)).Info("text", "value", v)
		if name != "in a struct" { // encoding/json is how the value travels, and asks nobody
			slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "value", v)
		}
	}
	if leaks(out.String()) {
		t.Errorf("logged %s", out.String())
	}
}

// leaks looks for the secret as text, as Go prints a slice of its bytes in hexadecimal, and in part.
func leaks(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, "acacia") || strings.Contains(s, fmt.Sprintf("%x", "Acacia"))
}

func TestPersonalDataIsStillPublished(t *testing.T) {
	t.Parallel()
	email := secret
	data, err := payload.Marshal(DirectToldV1{Email: &email})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(data), `{"email":"12 Acacia Avenue"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A struct without personal data prints as it always did.
func TestTheRestIsPrinted(t *testing.T) {
	t.Parallel()
	if got, want := fmt.Sprint(NothingToldV1{}), "{{<nil>}}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
