// Package payload turns generated payload structs into JSON and back.
//
// Marshal refuses every value that Unmarshal would refuse. It writes every value that Unmarshal
// accepts, including unknown values of open enums, so that a consumer can pass on what it received.
// The exceptions are the zero UUID and the zero time, which are read but not written, since the
// field was probably forgotten. Unmarshal ignores unknown members. Constraints are checked in both
// directions, by the Validate methods of generated structs. The same value always gives the same
// bytes. All errors are of type *Error.
package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"sync"
	"unicode/utf8"
)

// Marshal returns the JSON of v, a generated struct or a pointer to one.
func Marshal(v any) ([]byte, error) {
	rv := reflect.Indirect(reflect.ValueOf(v))
	if rv.Kind() != reflect.Struct {
		return nil, problem(fmt.Sprintf("a %T is neither a struct nor a pointer to one", v))
	}
	scratch := scratches.Get().(*[]byte)
	defer scratches.Put(scratch)
	out, err := encodeStruct((*scratch)[:0], addressable(rv), 1)
	if err != nil {
		return nil, asError(err)
	}
	if cap(out) <= maxScratch {
		*scratch = out
	}
	return bytes.Clone(out), nil
}

// scratches has buffers to write payloads to, since their length is not known before.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// maxScratch is the largest buffer that is kept, so that one large payload does not occupy memory
// for ever.
const maxScratch = 64 << 10

// Unmarshal reads the JSON object in data into v, a pointer to a generated struct, which it
// overwrites as a whole. After an error *v is the zero value.
//
// A required member that is missing or null is an error. An optional member that is null is absent.
// Names are case-sensitive; of members with the same name, the last one counts.
func Unmarshal(data []byte, v any) error {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.Elem().Kind() != reflect.Struct {
		return problem(fmt.Sprintf("a %T is not a pointer to a struct", v))
	}
	rv = rv.Elem()
	rv.SetZero()
	tree, err := parse(data)
	if err == nil {
		err = decodeStruct(tree, rv)
	}
	if err != nil {
		rv.SetZero()
		return asError(err)
	}
	return nil
}

// parse reads one JSON value as encoding/json sees it: a map[string]any, []any, string,
// json.Number, bool or nil.
func parse(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, problem("not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // an int64 does not fit a float64
	var tree any
	err := d.Decode(&tree)
	if _, end := d.Token(); err != nil || end != io.EOF {
		return nil, problem("not valid JSON")
	}
	return tree, nil
}
