// Package payload turns generated payload structs into JSON and back.
//
// Both directions are strict about what the catalogue declares, and hold nothing against what it does not: writers are closed,
// readers are open. Marshal refuses what a reader would have to refuse; Unmarshal ignores members that it does not know,
// and keeps unknown values of open enums. Constraints are checked in both directions, by the Validate methods of generated
// structs. The same value always gives the same bytes.
//
// All errors are of type *Error, save for Go types that no catalogue declares.
package payload

import (
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// maxDepth is how deep lists, maps and structs may be nested in each other, the payload itself being 1.
const maxDepth = 1000

var errDepth = problem(fmt.Sprintf("nested more than %d levels deep", maxDepth))

// Marshal returns the JSON of v, a generated struct or a pointer to one.
func Marshal(v any) ([]byte, error) {
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Pointer && !rv.IsNil() {
		rv = rv.Elem()
	} else if rv.Kind() == reflect.Struct {
		addressable := reflect.New(rv.Type()).Elem()
		addressable.Set(rv)
		rv = addressable
	}
	if rv.Kind() != reflect.Struct {
		return nil, fmt.Errorf("payload: cannot marshal a %T, only a struct or a pointer to one", v)
	}
	c, err := codecOf(rv.Type())
	if err != nil {
		return nil, err
	}
	out, err := c.encode(make([]byte, 0, 512), rv, 1)
	if err != nil {
		return nil, asError(err)
	}
	return out, nil
}

// Unmarshal reads the JSON object in data into v, a pointer to a generated struct, which it overwrites as a whole. After an
// error *v is the zero value.
//
// A required member that is missing or null is an error, and so is a member that appears twice. An optional member that is null is
// absent. Names are case-sensitive.
func Unmarshal(data []byte, v any) error {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() || rv.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("payload: cannot unmarshal into a %T, only into a pointer to a struct", v)
	}
	rv = rv.Elem()
	c, err := codecOf(rv.Type())
	if err != nil {
		return err
	}
	rv.SetZero()
	if err := wellFormed(data, maxDepth); err != nil {
		return err
	}
	d := decoder{data: data}
	if err := c.decode(&d, rv); err != nil {
		rv.SetZero()
		return asError(err)
	}
	return nil
}

// wellFormed refuses what is not one JSON value in UTF-8, nested at most depth levels deep.
func wellFormed(data []byte, depth int) error {
	if !utf8.Valid(data) {
		return problem("not valid UTF-8")
	}
	if !json.Valid(data) {
		return problem("not valid JSON")
	}
	if _, deepest := scanNested(data, 0); deepest > depth {
		return errDepth
	}
	return nil
}
