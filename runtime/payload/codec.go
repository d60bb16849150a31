package payload

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// codec writes and reads values of one Go type. All values are addressable.
type codec struct {
	// encode appends the JSON of v to b. depth is how deep v is nested; lists, maps and structs
	// count.
	encode func(b []byte, v reflect.Value, depth int) ([]byte, error)
	// decode sets v, which is zero, to what parse returned.
	decode func(tree any, v reflect.Value) error
}

// codecOf returns the codec of a type that a catalogue can declare, or that parse returns.
func codecOf(t reflect.Type) codec {
	if c, ok := scalars[t]; ok {
		return c
	}
	switch kind := t.Kind(); {
	case t == rawType:
		return codec{encodeRaw, decodeRaw}
	case kind == reflect.Struct:
		return codec{encodeStruct, decodeStruct}
	case kind == reflect.Slice:
		return codec{encodeList, decodeList}
	case kind == reflect.Map && t.Key() == reflect.TypeFor[string]():
		return codec{encodeMap, decodeMap}
	case kind == reflect.String && reflect.PointerTo(t).Implements(reflect.TypeFor[enum]()):
		return codec{encodeEnum, decodeEnum}
	case kind == reflect.Pointer:
		return codec{encodePointer, decodePointer}
	case kind == reflect.Interface:
		return codec{encodePointer, decodeInvalid}
	default:
		return codec{encodeInvalid, decodeInvalid}
	}
}

func encodeInvalid(_ []byte, v reflect.Value, _ int) ([]byte, error) {
	return nil, decodeInvalid(nil, v)
}

// decodeInvalid says that v is no valid value of its type, or that the type is none of a
// catalogue's.
func decodeInvalid(_ any, v reflect.Value) error {
	return problem(fmt.Sprintf("not a valid %s", v.Type()))
}

// maxDepth is how deep lists, maps and structs may be nested, the payload being 1. encoding/json
// reads ten times as deep.
const maxDepth = 1000

var errDepth = problem(fmt.Sprintf("nested more than %d levels deep", maxDepth))

// encodePointer writes the value of a pointer or an interface. Every cycle passes here or through
// encodeStruct, so these check the depth.
func encodePointer(b []byte, v reflect.Value, depth int) ([]byte, error) {
	switch {
	case v.IsNil():
		return append(b, "null"...), nil
	case depth > maxDepth:
		return nil, errDepth
	}
	target := addressable(v.Elem())
	return codecOf(target.Type()).encode(b, target, depth)
}

// addressable returns v, or a copy of it.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

func decodePointer(tree any, v reflect.Value) error {
	if tree == nil {
		return nil
	}
	v.Set(reflect.New(v.Type().Elem()))
	return codecOf(v.Type().Elem()).decode(tree, v.Elem())
}

// encodeList writes a nil slice as [].
func encodeList(b []byte, v reflect.Value, depth int) (_ []byte, err error) {
	elem := codecOf(v.Type().Elem())
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = elem.encode(b, v.Index(i), depth+1); err != nil {
			return nil, within(fmt.Sprintf("[%d]", i), err)
		}
	}
	return append(b, ']'), nil
}

// decodeList reads [] as a slice that is empty and not nil.
func decodeList(tree any, v reflect.Value) error {
	list, ok := tree.([]any)
	if !ok {
		return problem("not a list")
	}
	elem := codecOf(v.Type().Elem())
	v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	for i, element := range list {
		if err := elem.decode(element, v.Index(i)); err != nil {
			return within(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// encodeMap writes a nil map as {}, and keys in the order of their bytes.
func encodeMap(b []byte, v reflect.Value, depth int) (_ []byte, err error) {
	keys := v.MapKeys()
	slices.SortFunc(keys,
		func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	elem, value := codecOf(v.Type().Elem()), reflect.New(v.Type().Elem()).Elem()
	b = append(b, '{')
	for i, key := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		if !utf8.ValidString(key.String()) {
			return nil, problem("a key is not valid UTF-8")
		}
		b = append(appendQuoted(b, key.String()), ':')
		value.Set(v.MapIndex(key))
		if b, err = elem.encode(b, value, depth+1); err != nil {
			return nil, within("[*]", err)
		}
	}
	return append(b, '}'), nil
}

// decodeMap reads {} as a map that is empty and not nil.
func decodeMap(tree any, v reflect.Value) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return problem("not an object")
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(object)))
	elem, value := codecOf(v.Type().Elem()), reflect.New(v.Type().Elem()).Elem()
	for key, member := range object {
		value.SetZero()
		if err := elem.decode(member, value); err != nil {
			return within("[*]", err)
		}
		v.SetMapIndex(reflect.ValueOf(key), value)
	}
	return nil
}

// enum is what generated enums implement, and Decimal; open enums have a method OpenEnum as well.
type enum interface{ Valid() bool }

// accepts reports whether v may be written and read: a declared value, or any text of an open enum.
// Both directions accept the same values, so that a consumer can pass on whatever it was given. An
// empty text is refused, since the field was probably forgotten.
func accepts(v reflect.Value) bool {
	e := v.Addr().Interface().(enum)
	if e.Valid() {
		return true
	}
	_, open := e.(interface{ OpenEnum() })
	return open && v.Len() > 0 && utf8.ValidString(v.String())
}

func encodeEnum(b []byte, v reflect.Value, _ int) ([]byte, error) {
	if !accepts(v) {
		return encodeInvalid(b, v, 0)
	}
	return appendQuoted(b, v.String()), nil
}

func decodeEnum(tree any, v reflect.Value) error {
	text, ok := tree.(string)
	v.SetString(text)
	if !ok || !accepts(v) {
		return decodeInvalid(tree, v)
	}
	return nil
}

// encodeRaw writes any JSON value in canonical form with sorted names, but numbers as they are.
func encodeRaw(b []byte, v reflect.Value, depth int) ([]byte, error) {
	tree, err := parse(v.Bytes())
	if err != nil {
		return nil, err
	}
	return encodePointer(b, reflect.ValueOf(&tree).Elem(), depth)
}

func decodeRaw(tree any, v reflect.Value) error {
	raw, err := encodePointer(nil, reflect.ValueOf(&tree).Elem(), 1)
	v.SetBytes(raw)
	return err
}
