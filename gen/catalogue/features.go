package catalogue

import "slices"

// Feature is a part of the tables that a catalogue uses or does without. Each has migrations of its
// own.
type Feature string

// The features.
const (
	FeatureOutbox    Feature = "outbox"    // every catalogue
	FeatureInbox     Feature = "inbox"     // consumers
	FeatureRetention Feature = "retention" // published events that stay readable
)

// Features returns all features, in the order in which their tables are made.
func Features() []Feature { return []Feature{FeatureOutbox, FeatureInbox, FeatureRetention} }

// features returns those that a catalogue uses.
func (c *Catalogue) features() []Feature {
	used := []Feature{FeatureOutbox}
	if len(c.Consumers) > 0 {
		used = append(used, FeatureInbox)
	}
	if c.Relay.Retention > 0 {
		used = append(used, FeatureRetention)
	}
	return used
}

// Has reports whether the database has the tables of a feature.
func (d *Database) Has(f Feature) bool { return slices.Contains(d.Features, f) }

// Keep adds a feature that the catalogue does not use any more, and whose tables are there.
func (d *Database) Keep(kept Feature) {
	d.Features = slices.DeleteFunc(Features(), func(f Feature) bool {
		return f != kept && !d.Has(f)
	})
}
