package diag

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity says what a diagnostic means for the run.
type Severity int

// The severities, the most severe first. Only an Error keeps code from being generated.
const (
	Error Severity = iota
	Warning
	Info
)

// String returns the word that is printed: error, warning or info.
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	default:
		return "info"
	}
}

// Diagnostic is one problem: where it is, what it is, and how to mend it.
type Diagnostic struct {
	Pos      Pos
	Severity Severity
	Rule     string // the ID of one of Rules
	Message  string
	Help     string // how to mend it, or ""
	Related  []Related
}

// Related is another place that a diagnostic is about, such as the first of two declarations.
type Related struct {
	Pos     Pos
	Message string
}

// New makes a diagnostic of a rule, with the severity that the table of rules gives it. A rule that
// is not in the table is an error.
func New(rule string, pos Pos, format string, args ...any) Diagnostic {
	return Diagnostic{Pos: pos, Severity: severityOf(rule), Rule: rule,
		Message: fmt.Sprintf(format, args...)}
}

// WithHelp returns d with a hint on how to mend it.
func (d Diagnostic) WithHelp(format string, args ...any) Diagnostic {
	d.Help = fmt.Sprintf(format, args...)
	return d
}

// WithRelated returns d with another place that it is about.
func (d Diagnostic) WithRelated(pos Pos, format string, args ...any) Diagnostic {
	d.Related = append(slices.Clip(d.Related), Related{Pos: pos,
		Message: fmt.Sprintf(format, args...)})
	return d
}

// List is the diagnostics of a run.
type List []Diagnostic

// Add appends diagnostics.
func (l *List) Add(ds ...Diagnostic) { *l = append(*l, ds...) }

// HasErrors reports whether there is a diagnostic of severity Error.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(d Diagnostic) bool { return d.Severity == Error })
}

// Sort orders the list by place, then by severity, and removes duplicates: diagnostics of the same
// rule with the same message at the same place.
func (l *List) Sort() {
	slices.SortStableFunc(*l, compare)
	*l = slices.CompactFunc(*l, func(a, b Diagnostic) bool { return compare(a, b) == 0 })
}

func compare(a, b Diagnostic) int {
	return cmp.Or(
		cmp.Compare(a.Pos.File, b.Pos.File),
		cmp.Compare(a.Pos.Line, b.Pos.Line),
		cmp.Compare(a.Pos.Column, b.Pos.Column),
		cmp.Compare(a.Severity, b.Severity),
		cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.Message, b.Message),
	)
}

// MaxPrinted is how many diagnostics of a run are printed for people. A machine gets all of them.
const MaxPrinted = 50

// printed returns the sorted list cut to what is printed, and what was left out. The more severe
// ones are kept, so that no error is left out for a hint.
func (l List) printed() (shown, hidden List) {
	shown = slices.Clone(l)
	shown.Sort()
	if len(shown) <= MaxPrinted {
		return shown, nil
	}
	slices.SortStableFunc(shown, func(a, b Diagnostic) int {
		return cmp.Compare(a.Severity,
			b.Severity)
	})
	shown, hidden = shown[:MaxPrinted:MaxPrinted], shown[MaxPrinted:]
	shown.Sort()
	return shown, hidden
}
