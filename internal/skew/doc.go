// Package skew runs code that earlier releases have generated on today's runtime: each directory
// below has the output of one release, and is never generated again. It has to compile and to pass
// the conformance suites for as long as docs/compatibility.md says.
//
// To add the code of a release: scripts/freeze.sh NAME.
package skew
