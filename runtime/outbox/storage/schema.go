package storage

import "fmt"

// ErrMigrationMissing is wrapped by errors that say which migration has to be applied before the
// code can work on the database.
var ErrMigrationMissing = fmt.Errorf("%w: a migration is missing", ErrUnusable)

// Schema has the versions of the tables that generated code needs.
type Schema struct {
	Migrations string // the directory of the migrations, for messages; "" if the catalogue has none
	Features   []FeatureVersion
}

// FeatureVersion names a part of the tables, and the version for which code was generated.
type FeatureVersion struct {
	Feature string
	Version int
}

// SchemaVersion is the version that the tables of a feature have in a database.
type SchemaVersion struct {
	Feature string
	Version int // of the newest migration
	// MinCompatible is the oldest version whose code the tables still serve.
	MinCompatible int
}

// Check returns nil if code that needs the schema can work on a database whose migrations have come
// as far as found. The database may be newer than the code, as long as it serves the code's
// version. The error says both versions. It wraps ErrMigrationMissing if the database is older, and
// ErrUnusable in any case.
func (s Schema) Check(found []SchemaVersion) error {
	for _, need := range s.Features {
		have := SchemaVersion{Feature: need.Feature}
		for _, v := range found {
			if v.Feature == need.Feature {
				have = v
			}
		}
		if err := s.compare(need, have); err != nil {
			return err
		}
	}
	return nil
}

func (s Schema) compare(need FeatureVersion, have SchemaVersion) error {
	switch {
	case have.Version == 0:
		return fmt.Errorf("%w: the tables of %q do not exist, and this code needs their version %d: "+
			"apply %s", ErrMigrationMissing, need.Feature, need.Version, s.migrations(need, 1))
	case have.Version < need.Version:
		return fmt.Errorf("%w: the tables of %q have version %d, and this code needs version %d: "+
			"apply %s", ErrMigrationMissing, need.Feature, have.Version, need.Version,
			s.migrations(need, have.Version+1))
	case need.Version < have.MinCompatible:
		return fmt.Errorf("%w: the tables of %q have version %d and serve code of version %d or "+
			"newer, and this code is of version %d: deploy a release that was generated for version %d",
			ErrUnusable, need.Feature, have.Version, have.MinCompatible, need.Version, have.Version)
	}
	return nil
}

// migrations names the files to apply. Their numbers are the team's own.
func (s Schema) migrations(need FeatureVersion, first int) string {
	if s.Migrations == "" {
		return "what schema.sql says, beside the queries"
	}
	name := func(version int) string {
		return fmt.Sprintf("…_outboxgen_%s_%d.sql", need.Feature, version)
	}
	if first == need.Version {
		return fmt.Sprintf("the migration %s of %s", name(first), s.Migrations)
	}
	return fmt.Sprintf("the migrations of %s, from %s to %s",
		s.Migrations, name(first), name(need.Version))
}
