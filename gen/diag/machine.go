package diag

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteJSON prints the whole list, sorted, as one JSON object: {"diagnostics": [...]}. Lines and
// columns start at 1 and count runes; end_column is exclusive. What is unknown or empty is absent.
func WriteJSON(w io.Writer, list List) error {
	list = slices.Clone(list)
	list.Sort()
	out := struct {
		Diagnostics []jsonDiagnostic `json:"diagnostics"`
	}{Diagnostics: []jsonDiagnostic{}}
	for _, d := range list {
		j := jsonDiagnostic{
			jsonPos: toJSONPos(d.Pos), Severity: d.Severity.String(), Rule: d.Rule,
			Message: d.Message, Help: d.Help,
		}
		for _, r := range d.Related {
			j.Related = append(j.Related, jsonRelated{jsonPos: toJSONPos(r.Pos),
				Message: r.Message})
		}
		out.Diagnostics = append(out.Diagnostics, j)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

type jsonPos struct {
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	EndColumn int    `json:"end_column,omitempty"`
}

type jsonDiagnostic struct {
	jsonPos
	Severity string        `json:"severity"`
	Rule     string        `json:"rule"`
	Message  string        `json:"message"`
	Help     string        `json:"help,omitempty"`
	Related  []jsonRelated `json:"related,omitempty"`
}

type jsonRelated struct {
	jsonPos
	Message string `json:"message"`
}

func toJSONPos(p Pos) jsonPos {
	return jsonPos{File: p.File, Line: p.Line, Column: p.Column, EndColumn: p.End}
}

// WriteGitHub prints the list as workflow commands, which GitHub Actions shows beside the lines of
// a pull request. At most MaxPrinted are printed, as it shows few anyway.
func WriteGitHub(w io.Writer, list List) error {
	shown, hidden := list.printed()
	var b strings.Builder
	for _, d := range shown {
		fmt.Fprintf(&b, "::%s %s::%s\n", githubCommand(d.Severity), githubProperties(d),
			escapeData(githubMessage(d)))
	}
	if len(hidden) > 0 {
		fmt.Fprintf(&b, "::notice title=outboxgen::%s\n", escapeData(andMore(hidden)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func githubCommand(s Severity) string {
	if s == Info {
		return "notice"
	}
	return s.String()
}

func githubProperties(d Diagnostic) string {
	var props []string
	add := func(name, value string) { props = append(props, name+"="+escapeProperty(value)) }
	if d.Pos.File != "" {
		add("file", d.Pos.File)
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"line", d.Pos.Line}, {"col", d.Pos.Column}, {"endColumn", d.Pos.End}} {
		if n.value > 0 {
			add(n.name, fmt.Sprint(n.value))
		}
	}
	add("title", d.Rule)
	return strings.Join(props, ",")
}

func githubMessage(d Diagnostic) string {
	lines := []string{d.Message}
	if d.Help != "" {
		lines = append(lines, "help: "+d.Help)
	}
	for _, r := range d.Related {
		lines = append(lines, fmt.Sprintf("%s%s", prefix(r.Pos), r.Message))
	}
	return strings.Join(lines, "\n")
}

// Both escapes are GitHub's own: a percent sign and line breaks everywhere, and what separates
// properties within them.
var (
	dataEscaper     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscaper = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",",
		"%2C")
)

func escapeData(s string) string     { return dataEscaper.Replace(s) }
func escapeProperty(s string) string { return propertyEscaper.Replace(s) }
