module github.com/outboxgen/outboxgen/runtime/publish/nats/internal/servertest

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/google/uuid v1.6.0
	github.com/nats-io/nats-server/v2 v2.15.2
	github.com/nats-io/nats.go v1.53.1
	github.com/outboxgen/outboxgen v0.0.0
	github.com/outboxgen/outboxgen/internal/testenv v0.0.0
	github.com/outboxgen/outboxgen/runtime/publish/nats v0.0.0
)

require (
	github.com/antithesishq/antithesis-sdk-go v0.9.0-default-no-op // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/nats-io/jwt/v2 v2.8.3 // indirect
	github.com/nats-io/nkeys v0.4.17 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)

replace (
	github.com/outboxgen/outboxgen => ../../../../..
	github.com/outboxgen/outboxgen/internal/testenv => ../../../../../internal/testenv
	github.com/outboxgen/outboxgen/runtime/publish/nats => ../..
)
