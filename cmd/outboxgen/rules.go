package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
)

const rulesHelp = `
Lists every rule that can be reported: its ID, its category, how grave it is, and what it demands.
`

func runRules(_ context.Context, args []string, env Env) (int, error) {
	f := newFlags(env, "rules [FLAGS]", rulesHelp)
	format := newChoice("text", "json")
	f.Var(format, "format", "the `format`: text or json")
	if _, err := f.parse(args, 0); err != nil {
		return exitFailed, err
	}
	if format.value == "json" {
		return failedIf(printRulesJSON(env, diag.Rules()))
	}
	return failedIf(printRules(env, diag.Rules()))
}

// printRules prints a table, with an empty line between categories.
func printRules(env Env, rules []diag.Rule) error {
	var id, category int
	for _, r := range rules {
		id, category = max(id, len(r.ID)), max(category, len(r.Category))
	}
	var b strings.Builder
	for i, r := range rules {
		if i > 0 && r.Category != rules[i-1].Category {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%-*s  %-*s  %-7s  %s\n", id, r.ID, category, r.Category, r.Severity,
			r.Purpose)
	}
	_, err := io.WriteString(env.Stdout, b.String())
	return err
}

func printRulesJSON(env Env, rules []diag.Rule) error {
	type rule struct {
		ID       string        `json:"id"`
		Category diag.Category `json:"category"`
		Severity string        `json:"severity"`
		Purpose  string        `json:"purpose"`
	}
	list := make([]rule, len(rules))
	for i, r := range rules {
		list[i] = rule{ID: r.ID, Category: r.Category, Severity: r.Severity.String(),
			Purpose: r.Purpose}
	}
	enc := json.NewEncoder(env.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(list)
}
