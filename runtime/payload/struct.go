package payload

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// validator is what generated structs with constraints implement.
type validator interface{ Validate() error }

// structPlan is what is known of a generated struct before any value is met.
type structPlan struct {
	fields    []field
	byName    map[string]int
	validates bool
}

// field is one member.
type field struct {
	name     string
	quoted   string // "name": as it is written
	optional bool
	raw      bool // json.RawMessage, where null is a value
	codec    *codec
}

func (b *builder) structCodec(t reflect.Type) (*codec, error) {
	p := &structPlan{
		byName:    make(map[string]int, t.NumField()),
		validates: reflect.PointerTo(t).Implements(reflect.TypeFor[validator]()),
	}
	for i := range t.NumField() {
		f, err := b.field(t.Field(i))
		if _, taken := p.byName[f.name]; taken && err == nil {
			err = fmt.Errorf("the name %q appears twice", f.name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, t.Field(i).Name, err)
		}
		p.byName[f.name] = i
		p.fields = append(p.fields, f)
	}
	return &codec{encode: p.encode, decode: p.decode}, nil
}

func (b *builder) field(sf reflect.StructField) (field, error) {
	name, option, _ := strings.Cut(sf.Tag.Get("json"), ",")
	f := field{name: name, optional: option == "omitempty", raw: sf.Type == rawType}
	if !sf.IsExported() || sf.Anonymous || name == "" || name == "-" || option != "" && !f.optional {
		return f, errors.New(`want an exported field with a tag json:"name" or json:"name,omitempty"`)
	}
	switch kind := sf.Type.Kind(); {
	case kind == reflect.Pointer && !f.optional:
		return f, errors.New("a pointer is for an optional member only")
	case f.optional && kind != reflect.Pointer && kind != reflect.Slice && kind != reflect.Map:
		return f, errors.New("an optional member is a pointer, a slice or a map")
	}
	f.quoted = string(append(appendString(nil, name), ':'))
	var err error
	f.codec, err = b.codec(sf.Type)
	return f, err
}

func (p *structPlan) encode(b []byte, v reflect.Value, depth int) ([]byte, error) {
	if depth > maxDepth {
		return b, errDepth
	}
	if err := p.validate(v); err != nil {
		return b, err
	}
	b = append(b, '{')
	first := true
	for i := range p.fields {
		f := &p.fields[i]
		member := v.Field(i)
		if f.optional && (member.IsNil() || f.raw && isNull(member.Bytes())) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, f.quoted...)
		var err error
		if b, err = f.codec.encode(b, member, depth+1); err != nil {
			return b, within(f.name, err)
		}
	}
	return append(b, '}'), nil
}

func (p *structPlan) decode(d *decoder, v reflect.Value) error {
	if !d.open('{') {
		return problem("not an object")
	}
	var buf [64]bool
	seen := buf[:]
	if len(p.fields) > len(buf) {
		seen = make([]bool, len(p.fields))
	}
	for d.more('}') {
		name, err := d.name()
		if err != nil {
			return err
		}
		i, known := p.byName[string(name)]
		if !known {
			d.value()
			continue
		}
		f := &p.fields[i]
		if seen[i] {
			return within(f.name, problem("appears twice"))
		}
		if f.optional && d.null() {
			seen[i] = true
			continue
		}
		seen[i] = f.raw || !d.null()
		if !seen[i] {
			return within(f.name, problem("null where a value is required"))
		}
		if err := f.codec.decode(d, v.Field(i)); err != nil {
			return within(f.name, err)
		}
	}
	for i := range p.fields {
		if !seen[i] && !p.fields[i].optional {
			return within(p.fields[i].name, problem("missing"))
		}
	}
	return p.validate(v)
}

func (p *structPlan) validate(v reflect.Value) error {
	if !p.validates {
		return nil
	}
	if err := v.Addr().Interface().(validator).Validate(); err != nil {
		return asError(err)
	}
	return nil
}
