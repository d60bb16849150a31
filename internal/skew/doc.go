// Package skew runs code that earlier releases generated on today's runtime: each folder below holds
// what an outboxgen generated once, and is never generated again. It has to compile, and to pass the
// conformance suites, for as long as docs/compatibility.md says.
//
// To add the code of a release: scripts/freeze.sh NAME.
package skew
