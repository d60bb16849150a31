package catalogue

import (
	"slices"
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
)

// lint reports what is valid, but probably a mistake. The catalogue must have no errors.
func lint(c *draft, list *diag.List) {
	l := &linter{draft: c, list: list}
	for _, step := range lints {
		step(l)
	}
}

var lints = []func(*linter){
	(*linter).empty, (*linter).docs, (*linter).tense, (*linter).unhandled, (*linter).money,
	(*linter).unused, (*linter).loops,
}

type linter struct {
	*draft
	list *diag.List
}

func (l *linter) empty() {
	if len(l.eventDrafts) == 0 {
		l.list.Add(diag.New(diag.LintCatalogueEmpty, l.pos, "the catalogue has no events").
			WithHelp("add one under events, such as order.placed@1"))
	}
}

func (l *linter) docs() {
	for _, e := range l.eventDrafts {
		if e.Doc == "" {
			l.list.Add(diag.New(diag.LintEventDoc, e.Pos, "%s has no doc", e.TypeName()).
				WithHelp("write what has happened, for those who handle it"))
		}
	}
}

// irregular are past participles that do not end in -ed.
var irregular = func() map[string]bool {
	m := map[string]bool{}
	for _, word := range strings.Fields(`
		arisen awoken become begun bent bet bound bought broken brought built burnt caught chosen
		come cut dealt done drawn driven dropped dug eaten fallen fed felt fought found forbidden
		foregone forgotten forgiven frozen given gone got gotten ground grown had heard held hidden
		hit kept known laid led left lent let lost made meant met mistaken overdrawn overridden
		overtaken overwritten paid prepaid proven put read rebuilt redone repaid resent reset
		resold rewritten risen run said seen sent set shaken shipped shown shut slid sold sought
		spent split spread spun stolen stood stopped stuck sunk swapped swept taken taught thrown
		told torn understood undone unpaid unset upheld withdrawn withheld won worn written`) {
		m[word] = true
	}
	return m
}()

// tense reports events whose name has no past participle after the noun.
func (l *linter) tense() {
	for _, e := range l.eventDrafts {
		last := e.Name[strings.LastIndexByte(e.Name, '.')+1:]
		past := func(word string) bool {
			return strings.HasSuffix(word, "ed") && len(word) > 3 || irregular[word]
		}
		if !slices.ContainsFunc(strings.Split(last, "_"), past) {
			l.list.Add(diag.New(diag.LintEventTense, e.Pos,
				"%s does not say that something has happened", e.TypeName()).
				WithHelp("end its name with a past participle, as order.placed does"))
		}
	}
}

// unhandled reports events that no consumer handles. If a catalogue has no consumers at all, they
// are in other repositories.
func (l *linter) unhandled() {
	if len(l.consumerDrafts) == 0 {
		return
	}
	for _, e := range l.eventDrafts {
		handles := func(c *consumerDraft) bool { return slices.Contains(c.Handles, e.Event) }
		if !slices.ContainsFunc(l.consumerDrafts, handles) {
			l.list.Add(diag.New(diag.LintEventUnhandled, e.Pos,
				"no consumer of this catalogue handles %s", e.TypeName()))
		}
	}
}

var moneyWords = []string{
	"amount", "balance", "charge", "cost", "discount", "fare", "fee", "price", "refund", "revenue",
	"salary", "subtotal", "tax",
	"total", "wage",
}

func (l *linter) money() {
	check := func(f *fieldDraft) {
		looksLike := func(word string) bool {
			return slices.Contains(moneyWords, strings.TrimSuffix(word, "s"))
		}
		if innermost(f.Type).Scalar == Float64 && slices.ContainsFunc(strings.Split(f.Name, "_"),
			looksLike) {
			l.list.Add(diag.New(diag.LintFloatMoney, f.expr.pos,
				"%s looks like money, and a float64 rounds it", f.Name).
				WithHelp("use decimal, or int64 in the smallest unit"))
		}
	}
	for _, t := range l.typeDrafts {
		for _, f := range t.fieldDrafts {
			check(f)
		}
	}
	for _, e := range l.eventDrafts {
		for _, f := range e.fieldDrafts {
			check(f)
		}
	}
}

// innermost returns the type at the core of lists and maps, or the type itself.
func innermost(r Ref) Ref {
	for r.Elem != nil {
		r = *r.Elem
	}
	return r
}

func (l *linter) unused() {
	used := map[*Type]bool{}
	var use func(fields []*Field)
	use = func(fields []*Field) {
		for _, f := range fields {
			if t := innermost(f.Type).Named; t != nil && !used[t] {
				used[t] = true
				use(t.Fields)
			}
		}
	}
	for _, e := range l.eventDrafts {
		use(e.Fields)
	}
	for _, t := range l.typeDrafts {
		if !used[t.Type] {
			l.list.Add(diag.New(diag.LintTypeUnused, t.Pos, "no event uses type %s", t.Name).
				WithHelp("remove it, or use it"))
		}
	}
}
