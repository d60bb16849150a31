package events

import (
	"testing"

	"github.com/outboxgen/outboxgen/runtime/payload"
)

func TestReadersAreAsOpenAsTheEnum(t *testing.T) {
	t.Parallel()
	for data, fails := range map[string]bool{
		`{"channel":"web","history":["24h"],"only":{"a":"one"},"currency":"EUR"}`: false,
		`{"channel":"pigeon","history":["owl"],"only":{}}`:                        false,
		`{"channel":"web","history":[],"only":{},"currency":"GBP"}`:               true,
		`{"channel":"web","history":[],"only":{"a":"two"}}`:                       true,
	} {
		var e ThingSortedV1
		if err := payload.Unmarshal([]byte(data), &e); (err != nil) != fails {
			t.Errorf("%s: got error %v, want one: %t", data, err, fails)
		}
	}
}

func TestWritersAreClosed(t *testing.T) {
	t.Parallel()
	if _, err := payload.Marshal(ThingSortedV1{Channel: "pigeon"}); err == nil {
		t.Error("got no error for a value that is not declared")
	}
	if !Channel24h.Valid() || Channel("").Valid() || Currency("eur").Valid() {
		t.Error("Valid is wrong about a value")
	}
}
