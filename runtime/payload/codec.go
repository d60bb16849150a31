package payload

import (
	"fmt"
	"reflect"
	"sync"
)

// codec is how values of one Go type are written and read. Both functions expect an addressable value.
type codec struct {
	// encode appends v to b. depth is how deep v is nested; lists, maps and structs count.
	encode func(b []byte, v reflect.Value, depth int) ([]byte, error)
	// decode reads the next value of d into v, which is zero.
	decode func(d *decoder, v reflect.Value) error
}

var codecs sync.Map // reflect.Type → *codec, complete

// codecOf returns the codec of t, from the cache or new.
func codecOf(t reflect.Type) (*codec, error) {
	if c, ok := codecs.Load(t); ok {
		return c.(*codec), nil
	}
	b := builder{made: map[reflect.Type]*codec{}}
	c, err := b.codec(t)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	// Only now is every codec complete, also of types that contain themselves.
	for t, c := range b.made {
		codecs.LoadOrStore(t, c)
	}
	return c, nil
}

// builder makes codecs. made holds those begun as well, which is what lets a type contain itself.
type builder struct{ made map[reflect.Type]*codec }

func (b *builder) codec(t reflect.Type) (*codec, error) {
	if c, ok := scalars[t]; ok {
		return c, nil
	}
	if c, ok := b.made[t]; ok {
		return c, nil
	}
	c := &codec{}
	b.made[t] = c
	made, err := b.build(t)
	if err != nil {
		return nil, err
	}
	*c = *made
	return c, nil
}

func (b *builder) build(t reflect.Type) (*codec, error) {
	switch {
	case t.Kind() == reflect.Struct:
		return b.structCodec(t)
	case t.Kind() == reflect.String && reflect.PointerTo(t).Implements(reflect.TypeFor[enum]()):
		return enumCodec(t), nil
	case t.Kind() == reflect.Pointer && t.Elem().Kind() != reflect.Pointer:
		return b.pointerCodec(t)
	case t.Kind() == reflect.Slice:
		return b.listCodec(t)
	case t.Kind() == reflect.Map && t.Key() == reflect.TypeFor[string]():
		return b.mapCodec(t)
	default:
		return nil, fmt.Errorf("no catalogue type is a Go %s", t)
	}
}

// pointerCodec writes nil as null. As a member, a nil pointer is left out before it gets here.
func (b *builder) pointerCodec(t reflect.Type) (*codec, error) {
	elem, err := b.codec(t.Elem())
	if err != nil {
		return nil, err
	}
	return &codec{
		encode: func(b []byte, v reflect.Value, depth int) ([]byte, error) {
			if v.IsNil() {
				return append(b, "null"...), nil
			}
			return elem.encode(b, v.Elem(), depth)
		},
		decode: func(d *decoder, v reflect.Value) error {
			if d.null() {
				return nil
			}
			p := reflect.New(t.Elem())
			if err := elem.decode(d, p.Elem()); err != nil {
				return err
			}
			v.Set(p)
			return nil
		},
	}, nil
}
