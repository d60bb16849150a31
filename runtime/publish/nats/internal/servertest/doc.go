// Package servertest holds the tests of outboxnats on a real server. It is a module of its own, so
// that whoever uses outboxnats need not care about the versions that a server requires.
package servertest
