package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
)

// stage prints what happens.
type stage struct {
	out                        io.Writer
	bold, faint, green, normal string // "" if out is no terminal
	headed                     bool   // the table of this act has its heading
}

func newStage(f *os.File) *stage {
	s := &stage{out: f}
	info, err := f.Stat()
	if err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" {
		s.bold, s.faint, s.green, s.normal = "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[0m"
	}
	return s
}

func (s *stage) printf(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

func (s *stage) act(n int, title string) {
	s.headed = false
	s.printf("\n%sAct %d. %s%s", s.bold, n, title, s.normal)
}

func (s *stage) say(format string, args ...any) { s.printf("  "+format, args...) }

// proved prints a claim that has been checked.
func (s *stage) proved(format string, args ...any) {
	s.printf("  "+s.green+"✓ "+format+s.normal, args...)
}

// row prints the state after a step.
func (s *stage) row(step string, now state) {
	const columns = "    %-34s %6s %4s │ %6s %4s │ %11s %10s %9s │ %5s"
	if !s.headed {
		s.headed = true
		s.printf(s.faint+columns+s.normal, "", "orders", "mugs", "outbox", "sent", "shop.orders",
			"shop.stock", "unhandled", "inbox")
	}
	s.printf(columns, step, cell(now.Orders), cell(now.Mugs), cell(now.Outbox), cell(now.Sent),
		cell(now.OrderMessages), cell(now.StockMessages), cell(now.Unhandled), cell(now.Inbox))
}

func cell(n int) string {
	if n == unknown {
		return "–"
	}
	return strconv.Itoa(n)
}
