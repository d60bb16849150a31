package catalogue

import "testing"

func TestCamel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"order_id": "OrderID", "url": "URL", "sku": "Sku", "order.placed": "OrderPlaced",
		"order_ids": "OrderIDs", "https_urls": "HTTPSURLs",
		"line_2": "Line2", "utf8_text": "UTF8Text", "idle": "Idle", "x": "X", "css": "CSS",
		"dns": "DNS",
	} {
		if got := camel(name); got != want {
			t.Errorf("camel(%q): got %s, want %s", name, got, want)
		}
	}
}

func TestEnumGoName(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"web": "TWeb", "USD": "TUSD", "inStore": "TInStore", "in_store": "TInStore",
		"IN_STORE": "TInStore", "in-store": "TInStore",
		"10": "T10", "v1.2": "TV12", "id": "TID",
	} {
		if got := enumGoName("T", value); got != want {
			t.Errorf("enumGoName(%q): got %s, want %s", value, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, want string }{
		{"order_idd", "order_id"}, {"ORDER_ID", "order_id"}, {"odrer_id", "order_id"},
		{"nothing", ""}, {"", ""}, {"x", ""},
	} {
		if got := nearest(c.name, []string{"order_id", "total", "customer_id"}); got != c.want {
			t.Errorf("nearest(%q): got %q, want %q", c.name, got, c.want)
		}
	}
}
