package payload_test

import (
	"errors"
	"fmt"

	"github.com/outboxgen/outboxgen/runtime/payload"
)

// invoice is a payload as outboxgen generates it from a catalogue.
type invoice struct {
	Total payload.Decimal `json:"total"`
	Lines []invoiceLine   `json:"lines"`
	Note  *string         `json:"note,omitempty"`
}

type invoiceLine struct {
	Sku string `json:"sku"`
}

// Marshal writes a list that is nil as an empty one. Unmarshal wants what is required to be there,
// and its errors say where something is wrong, never what: it may be personal data.
func Example() {
	text, err := payload.Marshal(invoice{Total: "9.90"})
	fmt.Println(string(text), err)

	var received invoice
	err = payload.Unmarshal([]byte(`{"total":"9.90","lines":[{"sku":"mug"},{"sku":7}]}`), &received)
	var wrong *payload.Error
	fmt.Println(errors.As(err, &wrong), wrong.Path)

	// Output:
	// {"total":"9.90","lines":[]} <nil>
	// true lines[1].sku
}
