package catalogue

import (
	"strings"
	"testing"
)

func TestEveryNameOfAScalarMeansOne(t *testing.T) {
	t.Parallel()
	means := map[string]Scalar{}
	for _, row := range scalars {
		for _, name := range append(strings.Fields(row.others), string(row.scalar)) {
			if other, ok := means[name]; ok {
				t.Errorf("%s means both %s and %s", name, other, row.scalar)
			}
			if name != strings.ToLower(name) {
				t.Errorf("%s is not in lower case", name)
			}
			means[name] = row.scalar
		}
	}
	if got := scalarCalled("BigInt"); got != Int64 {
		t.Errorf("BigInt means %q, want int64", got)
	}
	if got := scalarCalled("Money2"); got != "" {
		t.Errorf("Money2 means %q, want nothing", got)
	}
}

func TestANumberHasLimitsOfItsType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scalar    Scalar
		text      string
		literal   string
		isRefused bool
	}{
		{Int32, "2147483647", "2147483647", false},
		{Int32, "2147483648", "", true},
		{Int64, "2147483648", "2147483648", false},
		{Int64, "9223372036854775808", "", true},
		{Int64, "1e3", "", true},
		{Float64, "0.1", "0.1", false},
		{Float64, "1e400", "", true},
	} {
		literal, help := c.scalar.row().limit(c.text)
		if literal != c.literal || (help != "") != c.isRefused {
			t.Errorf("%s of %s: got %q, %q", c.text, c.scalar, literal, help)
		}
	}
}

func TestWhatIsNoScalarFitsNothing(t *testing.T) {
	t.Parallel()
	for _, s := range []Scalar{"", "foo"} {
		if s.IsKey() || s.Takes("min_length") || s.Takes("min") || s.Takes("pattern") {
			t.Errorf("%q is a key or takes a constraint", s)
		}
	}
}
