package catalogue

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// takes reports whether a constraint fits a type.
func (r Ref) takes(constraint string) bool {
	switch r.Kind {
	case KindList, KindMap:
		return constraint == "min_items" || constraint == "max_items"
	default:
		return r.Scalar.Takes(constraint)
	}
}

// takers names the types that a constraint fits, for people.
func takers(constraint string) string {
	names := scalarsThat(func(s Scalar) bool { return s.Takes(constraint) })
	if len(names) == 0 {
		return "lists and maps"
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// constraints checks that every field's constraints fit its type and one another.
func (k *checker) constraints() {
	k.allFields(func(f *fieldDraft) {
		if f.expr == nil {
			return
		}
		said := map[string]constraintDraft{}
		for _, c := range f.constraintDrafts {
			if k.constraint(f, c) {
				said[c.name] = c
			}
		}
		for _, pair := range [][2]string{{"min_length", "max_length"}, {"min", "max"},
			{"min_items", "max_items"}} {
			k.constraintPair(said, pair[0], pair[1])
		}
	})
}

// constraint checks one constraint and puts it into the field.
func (k *checker) constraint(f *fieldDraft, c constraintDraft) bool {
	if !f.Type.takes(c.name) {
		k.add(diag.New(diag.ConstraintType, c.keyPos, "%s does not fit type %s", c.name, f.Type).
			WithHelp("it is for %s", takers(c.name)))
		return false
	}
	into := &f.Constraints
	switch c.name {
	case "min_length":
		return k.count(c, &into.MinLength)
	case "max_length":
		return k.count(c, &into.MaxLength)
	case "min_items":
		return k.count(c, &into.MinItems)
	case "max_items":
		return k.count(c, &into.MaxItems)
	case "min":
		return k.number(c, f.Type.Scalar, &into.Min)
	case "max":
		return k.number(c, f.Type.Scalar, &into.Max)
	default:
		return k.pattern(c, &into.Pattern)
	}
}

// count reads a limit on a length.
func (k *checker) count(c constraintDraft, into **int) bool {
	lowest := 0
	if strings.HasPrefix(c.name, "max") {
		lowest = 1
	}
	n, err := strconv.ParseInt(c.text, 10, 32)
	if err != nil || n < int64(lowest) {
		k.add(diag.New(diag.ConstraintRange, c.pos, "%s is from %d to %d, not %s", c.name, lowest,
			math.MaxInt32, c.text))
		return false
	}
	value := int(n)
	*into = &value
	return true
}

// number reads a limit on a number of the given type, as a Go literal.
func (k *checker) number(c constraintDraft, s Scalar, into **string) bool {
	literal, help := s.row().limit(c.text)
	if help != "" {
		k.add(diag.New(diag.ConstraintRange, c.pos, "%s %s is not a number of type %s", c.name,
			c.text, s).WithHelp("%s", help))
		return false
	}
	*into = &literal
	return true
}

// integerLimit returns a function that turns a whole number of so many bits into a Go literal, or
// says how to mend it.
func integerLimit(bits int) func(text string) (literal, help string) {
	return func(text string) (literal, help string) {
		n, err := strconv.ParseInt(text, 10, bits)
		switch {
		case err == nil:
			return strconv.FormatInt(n, 10), ""
		case !integerPattern.MatchString(text):
			return "", "write it without a fraction and an exponent"
		default:
			most := int64(1)<<(bits-1) - 1
			return "", fmt.Sprintf("it is from %d to %d: remove the key for no limit", -most-1,
				most)
		}
	}
}

// floatLimit turns a number into a Go literal, or says how to mend it. It refuses a number that
// float64 cannot hold, since the limit would silently be another one.
func floatLimit(text string) (literal, help string) {
	x, err := strconv.ParseFloat(text, 64)
	nearest := strconv.FormatFloat(x, 'g', -1, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	switch {
	case err != nil:
		return "", "the greatest is 1.7976931348623157e+308: remove the key for no limit"
	case x == 0 && strings.ContainsAny(mantissa, "123456789"):
		return "", "it would become 0: the least above 0 is 5e-324"
	case x != 0 && !isNumberOf(text, x, nearest):
		return "", "it would become " + nearest + ": write that"
	default:
		return text, ""
	}
}

// isNumberOf reports whether text is exactly the number x, or exactly the number that x's shortest
// text stands for. All three are numbers of a size that float64 has, which bounds the fractions.
func isNumberOf(text string, x float64, shortest string) bool {
	number, ok := new(big.Rat).SetString(text)
	short, ok2 := new(big.Rat).SetString(shortest)
	return ok && ok2 && (number.Cmp(short) == 0 || number.Cmp(new(big.Rat).SetFloat64(x)) == 0)
}

func (k *checker) pattern(c constraintDraft, into *string) bool {
	if _, err := regexp.Compile(c.text); err != nil {
		reason := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		k.add(diag.New(diag.ConstraintPattern, c.pos, "this is not a regular expression: %s",
			reason).
			WithHelp("the syntax is RE2's: https://github.com/google/re2/wiki/Syntax"))
		return false
	}
	*into = c.text
	return true
}

// constraintPair checks that a lower limit is not above the upper one.
func (k *checker) constraintPair(said map[string]constraintDraft, lower, upper string) {
	low, ok := said[lower]
	high, ok2 := said[upper]
	if !ok || !ok2 || compareNumbers(low.text, high.text) <= 0 {
		return
	}
	k.add(diag.New(diag.ConstraintRange, high.pos, "%s %s is below %s %s: no value fits", upper,
		high.text, lower, low.text).
		WithRelated(low.pos, "%s", lower))
}

// compareNumbers compares two numbers exactly. Texts that are no numbers have been reported.
func compareNumbers(a, b string) int {
	x, _, errX := big.ParseFloat(a, 10, 200, big.ToNearestEven)
	y, _, errY := big.ParseFloat(b, 10, 200, big.ToNearestEven)
	if errX != nil || errY != nil {
		return 0
	}
	return x.Cmp(y)
}
