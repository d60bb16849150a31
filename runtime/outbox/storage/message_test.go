package storage

import "testing"

func TestParseTypeName(t *testing.T) {
	for _, bad := range []string{"", "@1", "a", "a@", "a@0", "a@01", "a@+1", "a@-1", "a@1@2",
		"a@x"} {
		if name, version, err := ParseTypeName(bad); err == nil {
			t.Errorf("%q was read as %s and %d", bad, name, version)
		}
	}
	name, version, err := ParseTypeName("order.placed@12")
	if err != nil || name != "order.placed" || version != 12 {
		t.Fatalf("got %s, %d, %v", name, version, err)
	}
}
