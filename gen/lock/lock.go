// Package lock reads and writes outboxgen.lock, which records what the last run read and wrote.
//
// The lock is committed. It makes the removal of files safe, shows that a migration was edited, and
// is what a later catalogue is compared with.
package lock

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/outboxgen/outboxgen/gen/catalogue"
	"github.com/outboxgen/outboxgen/gen/output"
)

// Name is the lock's file name. The file is in the catalogue's directory.
const Name = "outboxgen.lock"

// format is the version of the lock's own format.
const format = 2

// Lock is the content of outboxgen.lock.
type Lock struct {
	Comment    string            `json:"comment"`
	Format     int               `json:"lock"`
	Language   int               `json:"outboxgen"` // the version of the catalogue's language
	Catalogue  string            `json:"catalogue"` // its file name
	Model      Model             `json:"model"`
	SQL        string            `json:"sql"`   // the hash of what sqlc compiled
	Files      map[string]string `json:"files"` // the hash of each generated file, by path
	Migrations []Migration       `json:"migrations,omitempty"`
}

// Migration is a migration that was written. It is never rewritten with other statements, since a
// database may have run it.
type Migration struct {
	Feature catalogue.Feature `json:"feature"`
	Version int               `json:"version"` // of the feature's tables that it leaves behind
	File    string            `json:"file"`
	Format  string            `json:"format"` // goose, plain
	Hash    string            `json:"sha256"` // of the file
	// Statements is the hash of the SQL that it runs, without comments, white space and the tool's
	// annotations.
	Statements string `json:"statements"`
}

// New returns a lock for a catalogue in a file of the given name.
func New(name string, c *catalogue.Catalogue) *Lock {
	return &Lock{
		Comment: output.Marker, Format: format, Language: catalogue.LanguageVersion,
		Catalogue: name, Model: Normalise(c), Files: map[string]string{},
	}
}

// Parse reads a lock. It returns an empty one for no data.
func Parse(data []byte) (*Lock, error) {
	var l Lock
	if len(data) == 0 {
		return &l, nil
	}
	if bytes.HasPrefix(data, []byte("<<<<<<< ")) || bytes.Contains(data, []byte("\n<<<<<<< ")) {
		return nil, fmt.Errorf("%s: holds the markers of a merge conflict: take either side, "+
			"then run outboxgen generate", Name)
	}
	var version struct {
		Format   int `json:"lock"`
		Language int `json:"outboxgen"`
	}
	err := json.Unmarshal(data, &version)
	if err == nil && (version.Format > format || version.Language > catalogue.LanguageVersion) {
		return nil, fmt.Errorf("%s: written by a newer outboxgen: install that one", Name)
	}
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err == nil && version.Format < 1 {
		err = fmt.Errorf("it has no version")
	}
	if version.Format == 1 {
		l.Migrations = splitByFeature(l.Migrations)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: not a lock (%w): restore it from version control", Name, err)
	}
	return &l, nil
}

// splitByFeature converts the migrations of a lock of format 1, in which a single migration made
// the tables of every feature.
func splitByFeature(whole []Migration) []Migration {
	var split []Migration
	for _, m := range whole {
		for _, feature := range catalogue.Features() {
			m.Feature, m.Version = feature, 1
			split = append(split, m)
		}
	}
	return split
}

// Encode returns the content of the lock's file.
func (l *Lock) Encode() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(l); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	return out.Bytes(), nil
}
