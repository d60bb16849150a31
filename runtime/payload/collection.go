package payload

import (
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"
)

// listCodec writes a nil slice as [], and reads [] as a slice that is empty and not nil.
func (b *builder) listCodec(t reflect.Type) (*codec, error) {
	elem, err := b.codec(t.Elem())
	if err != nil {
		return nil, err
	}
	index := func(i int, err error) error { return within(fmt.Sprintf("[%d]", i), err) }
	return &codec{
		encode: func(b []byte, v reflect.Value, depth int) ([]byte, error) {
			if depth > maxDepth {
				return b, errDepth
			}
			b = append(b, '[')
			var err error
			for i := range v.Len() {
				if i > 0 {
					b = append(b, ',')
				}
				if b, err = elem.encode(b, v.Index(i), depth+1); err != nil {
					return b, index(i, err)
				}
			}
			return append(b, ']'), nil
		},
		decode: func(d *decoder, v reflect.Value) error {
			if !d.open('[') {
				return problem("not a list")
			}
			v.Set(reflect.MakeSlice(t, 0, 0))
			for i := 0; d.more(']'); i++ {
				if i == v.Cap() {
					v.Grow(max(4, i))
				}
				v.SetLen(i + 1)
				if err := elem.decode(d, v.Index(i)); err != nil {
					return index(i, err)
				}
			}
			return nil
		},
	}, nil
}

// mapCodec writes a nil map as {} and keys in the order of their bytes, and reads {} as a map that is empty and not nil.
func (b *builder) mapCodec(t reflect.Type) (*codec, error) {
	elem, err := b.codec(t.Elem())
	if err != nil {
		return nil, err
	}
	return &codec{
		encode: func(b []byte, v reflect.Value, depth int) ([]byte, error) {
			if depth > maxDepth {
				return b, errDepth
			}
			keys := sortedKeys(v)
			value := reflect.New(t.Elem()).Elem() // what a map holds is not addressable
			b = append(b, '{')
			var err error
			for i, key := range keys {
				if i > 0 {
					b = append(b, ',')
				}
				if !utf8.ValidString(key) {
					return b, problem("a key is not valid UTF-8")
				}
				b = append(appendString(b, key), ':')
				value.Set(v.MapIndex(reflect.ValueOf(key)))
				if b, err = elem.encode(b, value, depth+1); err != nil {
					return b, within("[*]", err)
				}
			}
			return append(b, '}'), nil
		},
		decode: func(d *decoder, v reflect.Value) error { return decodeMap(d, v, t, elem) },
	}, nil
}

func decodeMap(d *decoder, v reflect.Value, t reflect.Type, elem *codec) error {
	if !d.open('{') {
		return problem("not an object")
	}
	v.Set(reflect.MakeMap(t))
	value := reflect.New(t.Elem()).Elem()
	for d.more('}') {
		key, err := d.name()
		if err != nil {
			return err
		}
		k := reflect.ValueOf(string(key))
		if v.MapIndex(k).IsValid() {
			return problem("a key appears twice")
		}
		value.SetZero()
		if err := elem.decode(d, value); err != nil {
			return within("[*]", err)
		}
		v.SetMapIndex(k, value)
	}
	return nil
}

func sortedKeys(v reflect.Value) []string {
	keys := make([]string, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		keys = append(keys, it.Key().String())
	}
	slices.Sort(keys)
	return keys
}
