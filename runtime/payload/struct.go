package payload

import (
	"cmp"
	"reflect"
	"strings"
	"sync"
)

// field is a member of a generated struct.
type field struct {
	index    int
	name     string
	quoted   string // the name in JSON, with quotes and colon
	optional bool   // absent if it is nil or zero
	codec
}

var fields sync.Map // reflect.Type → []*field

// fieldsOf returns the fields of a struct. Tags mean what they do in encoding/json.
func fieldsOf(t reflect.Type) []*field {
	if known, ok := fields.Load(t); ok {
		return known.([]*field)
	}
	var list []*field
	for i := range t.NumField() {
		f := t.Field(i)
		tag, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || tag == "-" {
			continue
		}
		name := cmp.Or(tag, f.Name)
		list = append(list,
			&field{i, name, string(appendQuoted(nil, name)) + ":", option == "omitempty",
				codecOf(f.Type)})
	}
	fields.Store(t, list)
	return list
}

func encodeStruct(b []byte, v reflect.Value, depth int) (_ []byte, err error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	if err := validate(v); err != nil {
		return nil, err
	}
	b = append(b, '{')
	for _, f := range fieldsOf(v.Type()) {
		member := v.Field(f.index)
		if f.optional && member.IsZero() {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(b, f.quoted...)
		if b, err = f.encode(b, member, depth+1); err != nil {
			return nil, within(f.name, err)
		}
	}
	return append(b, '}'), nil
}

func decodeStruct(tree any, v reflect.Value) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return problem("not an object")
	}
	for _, f := range fieldsOf(v.Type()) {
		member, found := object[f.name]
		switch {
		case f.optional && member == nil:
			continue
		case !found:
			return within(f.name, problem("missing"))
		}
		if err := f.decode(member, v.Field(f.index)); err != nil {
			return within(f.name, err)
		}
	}
	return validate(v)
}

// validate calls the method Validate, which generated structs with constraints have.
func validate(v reflect.Value) error {
	if checked, ok := v.Addr().Interface().(interface{ Validate() error }); ok {
		return checked.Validate()
	}
	return nil
}
