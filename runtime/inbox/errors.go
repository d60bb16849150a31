package inbox

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/outboxgen/outboxgen/runtime/outbox"
)

// ErrInFlight says that another delivery of the event is being handled: the broker is to deliver
// this one again, shortly.
var ErrInFlight = errors.New("another delivery of the event is being handled")

// ErrUnknownVersion says that the consumer handles other versions of the event: the broker is to
// deliver it again, to a process of another release that knows this one.
var ErrUnknownVersion = errors.New("the consumer handles no such version of the event")

// ErrTxEnded says that a handler ended its transaction, for instance with a ROLLBACK, whether or
// not it began another one. It is then unknown whether its effects and the record of the event were
// committed together, so the event counts as not handled.
var ErrTxEnded = errors.New("inbox: the handler ended its transaction")

// HandlerError says which consumer failed on which event. Its text has nothing of the payload,
// unless the handler put it into Err.
type HandlerError struct {
	Consumer string
	Type     string // such as order.placed@1
	ID       outbox.ID
	Err      error
}

func (e *HandlerError) Error() string {
	return fmt.Sprintf("inbox: consumer %s: %s %s: %v", e.Consumer, e.Type, e.ID, e.Err)
}

// Unwrap returns what went wrong.
func (e *HandlerError) Unwrap() error { return e.Err }

// PanicError is a panic of a handler. Its text names the type of Value only, for Value may hold
// personal data; a panic of Go's own runtime is named in full.
type PanicError struct {
	Value any
	Stack string // as debug.Stack returns it
}

func (e *PanicError) Error() string {
	if err, ok := e.Value.(runtime.Error); ok {
		return "panic: " + err.Error()
	}
	return fmt.Sprintf("panic with a %T", e.Value)
}

// Unwrap returns Value if it is an error, and nil otherwise.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
