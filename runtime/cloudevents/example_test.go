package cloudevents_test

import (
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/outboxgen/outboxgen/runtime/cloudevents"
	"github.com/outboxgen/outboxgen/runtime/outbox"
)

func ExampleBinding() {
	// Kafka's headers hold UTF-8, and one of them is the content type.
	binding := cloudevents.Binding{Prefix: "ce_", ContentType: "content-type"}
	headers := map[string]string{}
	err := binding.Encode(&outbox.Message{
		ID:   uuid.MustParse("0198c0de-1111-7abc-8def-0123456789ab"),
		Type: "order.placed", Version: 1, Source: "shop", Topic: "orders", Key: "Zoë",
		ContentType: "application/json", CreatedAt: time.Date(2026, 12, 1, 9, 30, 0, 0, time.UTC),
	}, func(name, value string) { headers[name] = value })
	fmt.Println(headers["ce_type"], headers["ce_partitionkey"], headers["content-type"], err)

	m, err := binding.Decode("orders", maps.All(headers), []byte(`{}`))
	fmt.Println(m, m.Key, err)

	headers["ce_time"] = "yesterday"
	_, err = binding.Decode("orders", maps.All(headers), []byte(`{}`))
	fmt.Println(err)
	// Output:
	// order.placed@1 Zoë application/json <nil>
	// order.placed@1 0198c0de-1111-7abc-8def-0123456789ab Zoë <nil>
	// cloudevents: the attribute time is not a timestamp of RFC 3339
}
