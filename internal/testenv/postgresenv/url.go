package postgresenv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// connectTimeout is the time limit of one attempt to connect.
const connectTimeout = time.Minute

// connectURL uses a server that somebody else started.
func connectURL(ctx context.Context, raw string) (*Server, error) {
	if raw == "" {
		return nil, errors.New(envURL + " is not set")
	}
	admin, err := url.Parse(raw)
	if err != nil || (admin.Scheme != "postgres" && admin.Scheme != "postgresql") {
		return nil, errors.New(envURL +
			" is not of the form postgres://user:password@host:port/database")
	}
	source, err := describe(ctx, admin, "named by "+envURL)
	if err != nil {
		return nil, fmt.Errorf("the server that %s names cannot be used (start it, or unset the "+
			"variable): %w", envURL, err)
	}
	return &Server{foreign: true, Source: source, admin: admin, stop: func() error { return nil }},
		nil
}
