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

// A consumer of an older release passes on what a newer producer has sent, wherever in the payload it stands.
func TestAnUnknownValueOfAnOpenEnumCanBePassedOn(t *testing.T) {
	t.Parallel()
	received := `{"channel":"kiosk","history":["web","owl"],"only":{},` +
		`"origin":{"channel":"pigeon","by_day":{"monday":["drone",null,"app"]}},"before":"fax"}`
	var e ThingSortedV1
	if err := payload.Unmarshal([]byte(received), &e); err != nil {
		t.Fatal(err)
	}
	if e.Channel.Valid() || !e.History[0].Valid() || e.Before.Valid() {
		t.Error("Valid does not tell what is known from what is not")
	}
	sent, err := payload.Marshal(e)
	if err != nil || string(sent) != received {
		t.Errorf("got %s and error %v, want what was received: %s", sent, err, received)
	}
}

func TestAForgottenEnumIsRefused(t *testing.T) {
	t.Parallel()
	empty := Channel("")
	for name, e := range map[string]ThingSortedV1{
		"open": {}, "optional": {Channel: ChannelWeb, Before: &empty}, "in a list": {Channel: ChannelWeb, History: []Channel{""}},
		"in a struct": {Channel: ChannelWeb, Origin: &Origin{}}, "closed": {Channel: ChannelWeb, Only: map[string]Only{"a": ""}},
	} {
		if out, err := payload.Marshal(e); err == nil {
			t.Errorf("%s: got %s, want an error", name, out)
		}
	}
}

func TestAClosedEnumIsClosedToWriters(t *testing.T) {
	t.Parallel()
	pound := Currency("GBP")
	if out, err := payload.Marshal(ThingSortedV1{Channel: ChannelWeb, Currency: &pound}); err == nil {
		t.Errorf("got %s for a value that is not declared", out)
	}
	if !Channel24h.Valid() || Channel("").Valid() || Currency("eur").Valid() {
		t.Error("Valid is wrong about a value")
	}
}
