// Package templates holds the text that outboxgen renders: SQL, prose, and the Go that is the same
// for every catalogue of a database engine.
package templates

import "embed"

// FS has a folder per database engine, and scaffold for what a team begins with.
//
//go:embed */*.tmpl
var FS embed.FS
