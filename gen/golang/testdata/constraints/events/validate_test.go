package events

import (
	"errors"
	"testing"

	"github.com/outboxgen/outboxgen/runtime/payload"
)

func valid() LimitSetV1 {
	return LimitSetV1{
		Text: "abc", List: []string{"a"}, URLCode: "x",
		Order: Order{ItemCode: "A"}, Item: OrderItem{Code: "1`"}, Bounded: Bounded{One: "abc"},
	}
}

func TestWhatIsAbsentPasses(t *testing.T) {
	t.Parallel()
	if _, err := payload.Marshal(valid()); err != nil {
		t.Error(err)
	}
	if err := (TagsGivenV1{}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestEveryConstraintIsChecked(t *testing.T) {
	t.Parallel()
	short, text, whole, large, small := "", `a"b`, int32(-1), int64(9007199254740994), 0.0001
	for name, c := range map[string]struct {
		change func(*LimitSetV1)
		path   string
	}{
		"min_length":              {func(e *LimitSetV1) { e.Text = "" }, "text"},
		"max_length":              {func(e *LimitSetV1) { e.Text = "ääääääääääa" }, "text"},
		"pattern":                 {func(e *LimitSetV1) { e.Text = "a b" }, "text"},
		"min_length if there":     {func(e *LimitSetV1) { e.TextMaybe = &short }, "text_maybe"},
		"pattern if there":        {func(e *LimitSetV1) { e.TextMaybe = &text }, "text_maybe"},
		"max_length of bytes":     {func(e *LimitSetV1) { e.Blob = make([]byte, 17) }, "blob"},
		"min_length of bytes":     {func(e *LimitSetV1) { e.BlobMaybe = []byte{} }, "blob_maybe"},
		"min":                     {func(e *LimitSetV1) { e.Small = -6 }, "small"},
		"max":                     {func(e *LimitSetV1) { e.Small = 6 }, "small"},
		"min if there":            {func(e *LimitSetV1) { e.SmallMaybe = &whole }, "small_maybe"},
		"max beyond 2^53":         {func(e *LimitSetV1) { e.LargeMaybe = &large }, "large_maybe"},
		"min of a float":          {func(e *LimitSetV1) { e.Ratio = -0.6 }, "ratio"},
		"max of a float":          {func(e *LimitSetV1) { e.Ratio = 1000001 }, "ratio"},
		"min of a float if there": {func(e *LimitSetV1) { e.RatioMaybe = &small }, "ratio_maybe"},
		"min_items":               {func(e *LimitSetV1) { e.List = nil }, "list"},
		"max_items":               {func(e *LimitSetV1) { e.List = make([]string, 4) }, "list"},
		"min_items if there":      {func(e *LimitSetV1) { e.ListMaybe = []string{} }, "list_maybe"},
		"max_items if there":      {func(e *LimitSetV1) { e.ListCapped = make([]string, 4) }, "list_capped"},
		"max_items of a map":      {func(e *LimitSetV1) { e.Dictionary = map[string]int32{"a": 1, "b": 2, "c": 3} }, "dictionary"},
		"min_items of a map":      {func(e *LimitSetV1) { e.DictionaryMaybe = map[string]int32{"a": 1} }, "dictionary_maybe"},
		"a type's pattern":        {func(e *LimitSetV1) { e.Order.ItemCode = "1" }, "order.item_code"},
		"another type's pattern":  {func(e *LimitSetV1) { e.Item.Code = "A" }, "item.code"},
		"a type's min_length":     {func(e *LimitSetV1) { e.Bounded.One = "ab" }, "bounded.one"},
	} {
		e := valid()
		c.change(&e)
		_, err := payload.Marshal(e)
		var problem *payload.Error
		if !errors.As(err, &problem) || problem.Path != c.path {
			t.Errorf("%s: got error %v, want one about %s", name, err, c.path)
		}
	}
}

func TestASingleCheckOfSomethingOptional(t *testing.T) {
	t.Parallel()
	if err := (TagsGivenV1{Tags: []string{}}).Validate(); err == nil {
		t.Error("got no error for too few tags")
	}
}
