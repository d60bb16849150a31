// Package templates holds the text that outboxgen renders: SQL and prose, no Go.
package templates

import "embed"

// FS has a folder per database engine, and scaffold for what a team begins with.
//
//go:embed */*.tmpl
var FS embed.FS
