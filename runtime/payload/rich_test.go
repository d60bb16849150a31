package payload_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/outboxgen/outboxgen/runtime/payload"
)

// What follows has the form of generated code, with every type that the catalogue has.

type channel string

func (c channel) Valid() bool { return c == "web" || c == "app" || c == "Läden & <Märkte>" }

type origin string

func (o origin) Valid() bool { return o == "eu" || o == "us" }
func (origin) OpenEnum()     {}

type money struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

var currencyPattern = regexp.MustCompile("^[A-Z]{3}$")

func (m *money) Validate() error {
	return payload.Check(
		payload.AtLeast("amount", &m.Amount, -1_000_000),
		payload.Pattern("currency", &m.Currency, currencyPattern),
	)
}

type line struct {
	SKU   string            `json:"sku"`
	Count int32             `json:"count"`
	Price money             `json:"price"`
	Attrs map[string]string `json:"attrs,omitempty"`
}

func (l line) Validate() error {
	return payload.Check(
		payload.Length("sku", &l.SKU, 1, 64),
		payload.AtLeast("count", &l.Count, 1),
		payload.AtMost("count", &l.Count, 1000),
	)
}

type node struct {
	Name     string          `json:"name"`
	Next     *node           `json:"next,omitempty"`
	Children []node          `json:"children"`
	ByName   map[string]node `json:"by_name"`
}

type rich struct {
	Bool     bool               `json:"bool"`
	String   string             `json:"string"`
	Int32    int32              `json:"int32"`
	Int64    int64              `json:"int64"`
	Float    float64            `json:"float"`
	Decimal  payload.Decimal    `json:"decimal"`
	UUID     uuid.UUID          `json:"uuid"`
	Time     time.Time          `json:"time"`
	Date     payload.Date       `json:"date"`
	Duration time.Duration      `json:"duration"`
	Bytes    []byte             `json:"bytes"`
	JSON     json.RawMessage    `json:"json"`
	Channel  channel            `json:"channel"`
	Origin   origin             `json:"origin"`
	Total    money              `json:"total"`
	Lines    []line             `json:"lines"`
	Labels   map[string]string  `json:"labels"`
	Matrix   [][]int64          `json:"matrix"`
	Prices   map[string][]money `json:"prices"`
	Maybe    []*string          `json:"maybe"`
	Tree     node               `json:"tree"`

	OptBool     *bool                      `json:"opt_bool,omitempty"`
	OptString   *string                    `json:"opt_string,omitempty"`
	OptInt32    *int32                     `json:"opt_int32,omitempty"`
	OptInt64    *int64                     `json:"opt_int64,omitempty"`
	OptFloat    *float64                   `json:"opt_float,omitempty"`
	OptDecimal  *payload.Decimal           `json:"opt_decimal,omitempty"`
	OptUUID     *uuid.UUID                 `json:"opt_uuid,omitempty"`
	OptTime     *time.Time                 `json:"opt_time,omitempty"`
	OptDate     *payload.Date              `json:"opt_date,omitempty"`
	OptDuration *time.Duration             `json:"opt_duration,omitempty"`
	OptBytes    []byte                     `json:"opt_bytes,omitempty"`
	OptJSON     json.RawMessage            `json:"opt_json,omitempty"`
	OptChannel  *channel                   `json:"opt_channel,omitempty"`
	OptOrigin   *origin                    `json:"opt_origin,omitempty"`
	OptTotal    *money                     `json:"opt_total,omitempty"`
	OptLines    []line                     `json:"opt_lines,omitempty"`
	OptLabels   map[string]json.RawMessage `json:"opt_labels,omitempty"`
}

func (r *rich) Validate() error {
	if r.OptLines != nil {
		if err := payload.Items("opt_lines", len(r.OptLines), 0, 100); err != nil {
			return err
		}
	}
	return payload.Check(
		payload.Length("opt_string", r.OptString, 0, 1000),
		payload.Size("bytes", r.Bytes, 0, 1000),
		payload.AtMost("opt_float", r.OptFloat, 1e300),
	)
}

// leaky has a Validate that does what generated ones never do: it quotes a value in an error of its
// own.
type leaky struct {
	Email string `json:"email"`
}

func (l leaky) Validate() error {
	if l.Email == "" {
		return nil
	}
	return errors.New("bad address " + l.Email)
}

// sample is an event of a common size, without what random values would bring.
func sample() rich {
	note := "ring twice"
	id := uuid.MustParse("0198c0de-1111-7abc-8def-0123456789ab")
	return rich{
		Bool: true, String: `naïve "quote" <b> & \`, Int32: -7, Int64: 1 << 60, Float: 0.1,
		Decimal: "-12.50", UUID: id,
		Time:     time.Date(2026, 11, 30, 12, 0, 0, 500, time.FixedZone("", 3600)),
		Date:     payload.Date{Year: 2026, Month: 11, Day: 30},
		Duration: 90*time.Minute + 500*time.Millisecond, Bytes: []byte{0xfb, 0xff},
		JSON:    json.RawMessage(` {"a" : [1, null]} `),
		Channel: "web", Origin: "eu", Total: money{Amount: 1299, Currency: "EUR"},
		Lines:  []line{{SKU: "A-1", Count: 2, Price: money{Amount: 500, Currency: "EUR"}}},
		Labels: map[string]string{"z": "1", "a": "2", "m": "3"}, OptString: &note, OptUUID: &id,
	}
}
