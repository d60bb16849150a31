package gen

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/templates"
)

// Scaffold is what a catalogue to begin with depends on.
type Scaffold struct {
	Service string // the CloudEvents source, such as shop/orders
	Package string // of the generated code
	Dir     string // of the package, relative to the catalogue
}

// ServiceOf derives a service's name from an import path: its last two elements, without a host and
// a major version.
func ServiceOf(importPath string) string {
	elements := strings.Split(importPath, "/")
	if strings.Contains(elements[0], ".") && len(elements) > 1 {
		elements = elements[1:]
	}
	if last := len(elements) - 1; last > 0 && majorVersion.MatchString(elements[last]) {
		elements = elements[:last]
	}
	return path.Join(elements[max(0, len(elements)-2):]...)
}

var (
	majorVersion  = regexp.MustCompile(`^v[0-9]+$`)
	plainText     = regexp.MustCompile(`^[a-z][a-z0-9]*([-_./][a-z0-9]+)*$`)
	yamlWords     = []string{"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
	notTopicWords = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// Render returns the catalogue. The error says which of the values cannot be.
func (s Scaffold) Render() ([]byte, error) {
	t, err := template.New("outbox.yaml.tmpl").Option("missingkey=error").
		Funcs(template.FuncMap{"quote": quote}).ParseFS(templates.FS, "scaffold/outbox.yaml.tmpl")
	if err != nil {
		return nil, fmt.Errorf("scaffold: %w", err)
	}
	topic := cmp.Or(strings.Trim(notTopicWords.ReplaceAllString(s.Service, "."), "."), "events")
	var out bytes.Buffer
	if err := t.Execute(&out, struct {
		Scaffold
		Topic string
	}{s, topic}); err != nil {
		return nil, fmt.Errorf("scaffold: %w", err)
	}
	_, list := catalogue.Parse("outbox.yaml", out.Bytes())
	if len(list) > 0 {
		return nil, fmt.Errorf("%s [%s] %s", list[0].Message, list[0].Rule, list[0].Help)
	}
	return out.Bytes(), nil
}

// quote quotes text that YAML, or a reader, could take for something else.
func quote(s string) string {
	if plainText.MatchString(s) && !slices.Contains(yamlWords, s) {
		return s
	}
	return strconv.Quote(s)
}
