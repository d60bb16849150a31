package catalogue

import (
	"fmt"
	"go/token"
	"go/types"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/outboxgen/outboxgen/gen/diag"
	"github.com/outboxgen/outboxgen/gen/dialect"
	"github.com/outboxgen/outboxgen/gen/gomod"
	"github.com/outboxgen/outboxgen/gen/source"
)

// Limits on names, in bytes.
const (
	maxName  = 100
	maxTopic = 255
)

var (
	snakePattern    = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	exportedPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	eventPattern    = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*(\.[a-z][a-z0-9]*(_[a-z0-9]+)*)+$`)
	versionPattern  = regexp.MustCompile(`^[1-9][0-9]{0,3}$`)
	jsonPattern     = regexp.MustCompile(`^[A-Za-z_$@][A-Za-z0-9_$.@-]*$`)
	enumPattern     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	packagePattern  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	sqlPattern      = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	topicPattern    = regexp.MustCompile(`^[A-Za-z0-9_/-]+(\.[A-Za-z0-9_/-]+)*$`)
	dirPattern      = regexp.MustCompile(`^[A-Za-z0-9_.~+@-]+(/[A-Za-z0-9_.~+@-]+)*$`)
	servicePattern  = regexp.MustCompile(`^[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+$`)
)

// named checks a name against a pattern and the length that all names have.
func (d *decoder) named(rule string, w word, ok bool, what, help string) bool {
	switch {
	case len(w.text) > maxName:
		d.add(diag.New(rule, w.pos, "the name of %s has %d characters, and %d are the limit", what,
			len(w.text), maxName))
		return false
	case !ok:
		d.add(diag.New(rule, w.pos, "%q cannot be the name of %s", w.text, what).
			WithHelp("%s", help))
		return false
	}
	return true
}

func (d *decoder) typeName(n *source.Node) bool {
	help := "begin with a capital letter, and use letters and digits"
	if s := camel(n.Text); exportedPattern.MatchString(s) && s != n.Text {
		help = "call it " + s
	}
	return d.named(diag.TypeName, wordOf(n), exportedPattern.MatchString(n.Text), "a type", help)
}

func (d *decoder) fieldName(n *source.Node) bool {
	return d.named(diag.FieldName, wordOf(n), snakePattern.MatchString(n.Text), "a field",
		fieldHelp(n.Text))
}

// fieldHelp says what to call a field, and how to keep the name that another system has given it in
// JSON.
func fieldHelp(name string) string {
	if jsonPattern.MatchString(name) {
		return fmt.Sprintf("%s; if it is %s in JSON, add json_name: %q to it", snakeHelp(name),
			name, name)
	}
	return snakeHelp(name) + fmt.Sprintf(
		"; a member that is called %q in JSON is not supported yet, not by json_name either", name,
	)
}

func (d *decoder) consumerName(n *source.Node) bool {
	return d.named(diag.ConsumerName, wordOf(n), snakePattern.MatchString(n.Text), "a consumer",
		snakeHelp(n.Text))
}

var wordStart = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// snakeHelp proposes the name in snake_case, if it has words that can be written so.
func snakeHelp(name string) string {
	if s := snake(name); snakePattern.MatchString(s) {
		return "call it " + s
	}
	return "write lower-case words of letters and digits, joined by _, the first of which begins " +
		"with a letter"
}

func snake(name string) string {
	s := strings.ToLower(wordStart.ReplaceAllString(name, "${1}_${2}"))
	return strings.Trim(strings.NewReplacer("-", "_", " ", "_", ".", "_", "@", "_", "$",
		"_").Replace(s), "_")
}

func (d *decoder) jsonName(w word) bool {
	return d.named(diag.JSONName, w, jsonPattern.MatchString(w.text), "a field in JSON",
		"use letters, digits and _ . - $ @")
}

func (d *decoder) goName(w word) bool {
	return d.named(diag.GoName, w, exportedPattern.MatchString(w.text), "a field in Go",
		"begin with a capital letter, and use letters and digits")
}

// eventName reads name@version.
func (d *decoder) eventName(n *source.Node) (name string, version int, ok bool) {
	name, digits, found := strings.Cut(n.Text, "@")
	report := func(help string) (string, int, bool) {
		d.add(diag.New(diag.EventName, n.Pos, "%q cannot be the name of an event", n.Text).
			WithHelp("%s", help))
		return "", 0, false
	}
	switch {
	case len(n.Text) > maxName:
		d.named(diag.EventName, wordOf(n), false, "an event", "")
		return "", 0, false
	case !found && eventPattern.MatchString(name):
		return report("add its version: " + name + "@1")
	case !eventPattern.MatchString(name):
		return report(eventHelp(name))
	case !versionPattern.MatchString(digits):
		return report("a version is a number from 1 to 9999: " + name + "@1")
	}
	version, _ = strconv.Atoi(digits)
	return name, version, true
}

// eventHelp proposes an event's name if there are words to make it of.
func eventHelp(name string) string {
	var words []string
	foreign := false
	for word := range strings.SplitSeq(name, ".") {
		word = snake(word)
		if word != "" && word[0] >= '0' && word[0] <= '9' && len(words) > 0 {
			words[len(words)-1] += "_" + word // such as the version in finished.0.3.0
			foreign = true
			continue
		}
		words = append(words, word)
	}
	proposal := strings.Join(words, ".")
	switch {
	case !eventPattern.MatchString(proposal):
		return "write noun.past_participle@version, such as order.placed@1: lower-case words of " +
			"letters, digits and _"
	case foreign:
		return "a word between points begins with a letter: call it " + proposal +
			"@1; events of another system, whose type is not name@version, cannot be handled yet"
	default:
		return "call it " + proposal + "@1"
	}
}

// service checks a CloudEvents source, which is a URI reference.
func (d *decoder) service(v *source.Node, into *string) {
	_, err := url.Parse(v.Text)
	if err != nil || !servicePattern.MatchString(v.Text) || len(v.Text) > maxTopic {
		d.add(diag.New(diag.ServiceName, v.Pos, "%q is not a URI reference", v.Text).
			WithHelp("write something like shop/orders or https://shop.example/orders, of at "+
				"most %d characters", maxTopic))
		return
	}
	*into = v.Text
}

func (d *decoder) goPackage(v *source.Node, into *string) {
	reason := ""
	switch name := v.Text; {
	case !packagePattern.MatchString(name) || len(name) > maxName:
		reason = "use lower-case letters and digits; call it events, for example"
	case name == "main":
		reason = "main cannot be imported; call it events, for example"
	case token.IsKeyword(name):
		reason = "it is a keyword of Go; call it events, for example"
	case types.Universe.Lookup(name) != nil:
		reason = "it would hide a predeclared name of Go; call it events, for example"
	case name == "documentation":
		reason = "the go command ignores the files of a package of this name; call it events, " +
			"for example"
	case name == "init":
		reason = "a file that imports it would have to give it another name; call it events, for " +
			"example"
	case strings.HasSuffix(name, "_test"):
		reason = "packages that end in _test are for tests; call it events, for example"
	}
	if reason != "" {
		d.add(diag.New(diag.GoPackage, v.Pos, "%q cannot be the generated package", v.Text).
			WithHelp("%s", reason))
		return
	}
	*into = v.Text
}

// dir checks a directory below the catalogue.
func (d *decoder) dir(p source.Pair, into *string) bool {
	dir, help := p.Value.Text, ""
	switch {
	case strings.Contains(dir, `\`):
		help = "separate with slashes, on Windows too"
	case strings.HasPrefix(dir, "/") || strings.Contains(dir, ":"):
		help = "write it relative to the catalogue"
	case strings.Contains("/"+dir+"/", "/../"):
		help = "it must lie below the catalogue: move the catalogue up"
	case dir != "" && path.Clean(dir) != dir:
		help = "write " + path.Clean(dir)
	case !dirPattern.MatchString(dir) || len(dir) > maxTopic:
		help = "use letters, digits and _ . ~ + @ - between slashes"
	default:
		*into = dir
		return true
	}
	d.add(diag.New(diag.DirPath, p.Value.Pos, "%q is not a directory that can be generated into",
		dir).WithHelp("%s", help))
	return false
}

// goDir checks a directory that the go command must find a package in.
func (d *decoder) goDir(p source.Pair, into *string) {
	if !d.dir(p, into) {
		return
	}
	for elem := range strings.SplitSeq(p.Value.Text, "/") {
		help := gomod.ImportPathProblem(elem)
		switch {
		case elem == ".":
			continue
		case elem == "vendor" || elem == "testdata" || strings.ContainsAny(elem[:1], "._"):
			help = "choose a directory without " + elem
		case help == "":
			continue
		}
		d.add(diag.New(diag.DirPath, p.Value.Pos, "the go command finds no package in %q",
			p.Value.Text).WithHelp("%s", help))
		return
	}
}

func (d *decoder) topic(v *source.Node) {
	help := ""
	switch {
	case len(v.Text) > maxTopic:
		help = "use at most " + strconv.Itoa(maxTopic) + " characters"
	case !topicPattern.MatchString(v.Text):
		help = "use letters, digits and _ / - in words that are joined by points, such as " +
			"shop.orders"
	default:
		return
	}
	d.add(diag.New(diag.TopicName, v.Pos, "%q is not a topic that every broker takes", v.Text).
		WithHelp("%s", help))
}

// databaseNames checks the schema's name and the prefix of tables. If the catalogue names no known
// engine, the limits of names are not checked.
func (d *decoder) databaseNames(db Database) {
	engine := dialect.Of(db.Engine)
	if db.SchemaPos.Line != 0 {
		if help := schemaHelp(db.Schema, engine); help != "" {
			d.add(diag.New(diag.DatabaseName, db.SchemaPos, "%q cannot be a schema", db.Schema).
				WithHelp("%s", help))
		}
	}
	switch prefix := db.Prefix; {
	case prefix != "" && !sqlPattern.MatchString(prefix):
		d.add(diag.New(diag.DatabaseName, db.PrefixPos, "%q cannot be a prefix", prefix).
			WithHelp(sqlHelp))
	case engine != nil && len(prefix) > engine.MaxPrefix:
		d.add(diag.New(diag.DatabaseName, db.PrefixPos,
			"the prefix has %d characters, and %d are the limit", len(prefix), engine.MaxPrefix).
			WithHelp("a name in %s has at most %d bytes, and those of indexes and partitions "+
				"need the rest", engine.Name, engine.MaxIdentifier))
	}
}

const sqlHelp = "use lower-case letters, digits and _"

// schemaHelp says what to write instead of a name that cannot be a schema's, or "" if it can.
func schemaHelp(name string, engine *dialect.Dialect) string {
	switch {
	case !sqlPattern.MatchString(name):
		return sqlHelp
	case engine == nil:
		return ""
	case len(name) > engine.MaxIdentifier:
		return fmt.Sprintf("use at most %d characters", engine.MaxIdentifier)
	case engine.IsSystem(name):
		return engine.Name + " keeps it for itself; call it messaging, for example"
	case engine.Reserved[name]:
		return "it is a keyword of SQL; call it messaging, for example"
	default:
		return ""
	}
}
