package catalogue

import (
	"fmt"
	"strings"
	"unicode"
)

// initialisms are the words that Go writes in capitals throughout.
var initialisms = func() map[string]bool {
	m := map[string]bool{}
	for _, word := range strings.Fields(`
		acl api ascii cpu css dns eof guid html http https id ip json lhs qps ram rhs rpc sla smtp
		sql ssh tcp tls ttl udp ui uid uuid uri url utf8 vm xml xmpp xsrf xss`) {
		m[word] = true
	}
	return m
}()

// camel turns a snake_case or dotted name into an exported Go name: order_id becomes OrderID.
func camel(name string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	}) {
		b.WriteString(camelWord(word))
	}
	return b.String()
}

func camelWord(word string) string {
	lower := strings.ToLower(word)
	if initialisms[lower] {
		return strings.ToUpper(word)
	}
	if singular, ok := strings.CutSuffix(lower, "s"); ok && initialisms[singular] {
		return strings.ToUpper(singular) + "s"
	}
	return strings.ToUpper(lower[:1]) + lower[1:]
}

// enumGoName names the constant of a value. A value of one word keeps its capitals: Currency and
// USD become CurrencyUSD.
func enumGoName(typeName, value string) string {
	if !strings.ContainsAny(value, "_-. ") && strings.ToLower(value) != value {
		return typeName + strings.ToUpper(value[:1]) + value[1:]
	}
	return typeName + camel(value)
}

func eventGoName(name string, version int) string {
	return fmt.Sprintf("%sV%d", camel(name), version)
}

// The names of generated files end in .gen.go. The go command leaves out files whose names end in
// _test, _linux and the like before the first point, so that a version or "consumer" comes there.

func eventFileName(name string, version int) string {
	return fmt.Sprintf("%s_v%d.gen.go", strings.ReplaceAll(name, ".", "_"), version)
}

func consumerFileName(name string) string { return name + "_consumer.gen.go" }
