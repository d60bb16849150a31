package diag

import "slices"

// Rule is one thing that a diagnostic can be about. Documentation, `outboxgen rules` and the
// severity of every diagnostic come from the table of rules.
type Rule struct {
	ID       string
	Category Category
	Severity Severity
	Purpose  string // one line: what it demands, or what it warns of
}

// Category groups rules.
type Category string

// The categories, in the order in which the compiler gets to them.
const (
	CategoryYAML     Category = "yaml"     // what people easily misread in YAML
	CategoryLanguage Category = "language" // the catalogue's keys and values
	CategoryNames    Category = "names"    // names of things, and of what is generated for them
	CategoryModel    Category = "model"    // types, events and consumers that must fit together
	CategoryOutput   Category = "output"   // what was generated before, and stands on disk
	// sound, but probably not meant so; never keeps code from being generated
	CategoryLint Category = "lint"
)

// The IDs of the rules.
const (
	YAMLEncoding     = "YAML_ENCODING"
	YAMLLimit        = "YAML_LIMIT"
	YAMLSyntax       = "YAML_SYNTAX"
	YAMLTab          = "YAML_TAB"
	YAMLDuplicateKey = "YAML_DUPLICATE_KEY"
	YAMLAnchor       = "YAML_ANCHOR"
	YAMLTag          = "YAML_TAG"
	YAMLDocuments    = "YAML_DOCUMENTS"
	YAMLKey          = "YAML_KEY"
	YAMLQuote        = "YAML_QUOTE"

	LanguageVersion = "LANGUAGE_VERSION"
	KeyUnknown      = "KEY_UNKNOWN"
	KeyMissing      = "KEY_MISSING"
	NotSupportedYet = "NOT_SUPPORTED_YET"
	ValueEmpty      = "VALUE_EMPTY"
	ValueKind       = "VALUE_KIND"
	ValueRange      = "VALUE_RANGE"
	ValueUnknown    = "VALUE_UNKNOWN"
	TypeSyntax      = "TYPE_SYNTAX"

	ServiceName   = "SERVICE_NAME"
	GoPackage     = "GO_PACKAGE"
	DirPath       = "DIR_PATH"
	DatabaseName  = "DATABASE_NAME"
	TopicName     = "TOPIC_NAME"
	TypeName      = "TYPE_NAME"
	FieldName     = "FIELD_NAME"
	JSONName      = "JSON_NAME"
	GoName        = "GO_NAME"
	EnumValue     = "ENUM_VALUE"
	EventName     = "EVENT_NAME"
	ConsumerName  = "CONSUMER_NAME"
	NameCollision = "NAME_COLLISION"
	NameReserved  = "NAME_RESERVED"

	TypeShape          = "TYPE_SHAPE"
	TypeUnknown        = "TYPE_UNKNOWN"
	TypeRecursive      = "TYPE_RECURSIVE"
	EnumDuplicate      = "ENUM_DUPLICATE"
	ConstraintType     = "CONSTRAINT_TYPE"
	ConstraintRange    = "CONSTRAINT_RANGE"
	ConstraintPattern  = "CONSTRAINT_PATTERN"
	EventTopic         = "EVENT_TOPIC"
	EventVersionNoSkip = "EVENT_VERSION_NO_SKIP"
	EventKeyField      = "EVENT_KEY_FIELD"
	EventKeyType       = "EVENT_KEY_TYPE"
	EventKeyPII        = "EVENT_KEY_PII"
	ConsumerEvent      = "CONSUMER_EVENT"
	ConsumerDuplicate  = "CONSUMER_DUPLICATE"

	MigrationImmutable = "MIGRATION_IMMUTABLE"
	MigrationNeeded    = "MIGRATION_NEEDED"
	MigrationDuplicate = "MIGRATION_DUPLICATE"
	TableSameName      = "TABLE_SAME_NAME"
	SQLCompile         = "SQL_COMPILE"
	OutputStale        = "OUTPUT_STALE"
	OutputOrphan       = "OUTPUT_ORPHAN"
	OutputShared       = "OUTPUT_SHARED"
	OutputCollision    = "OUTPUT_COLLISION"
	OutputUnchecked    = "OUTPUT_UNCHECKED"

	LintCatalogueEmpty = "LINT_CATALOGUE_EMPTY"
	LintEventDoc       = "LINT_EVENT_DOC"
	LintEventTense     = "LINT_EVENT_TENSE"
	LintEventUnhandled = "LINT_EVENT_UNHANDLED"
	LintFloatMoney     = "LINT_FLOAT_MONEY"
	LintTypeUnused     = "LINT_TYPE_UNUSED"
	LintConsumerLoop   = "LINT_CONSUMER_LOOP"
)

var rules = []Rule{
	{YAMLEncoding, CategoryYAML, Error,
		"a catalogue is UTF-8 without characters that hide what it says"},
	{YAMLLimit, CategoryYAML, Error, "a catalogue is of a size and depth that people wrote"},
	{YAMLSyntax, CategoryYAML, Error, "a catalogue is YAML"},
	{YAMLTab, CategoryYAML, Error, "lines are indented with spaces"},
	{YAMLDuplicateKey, CategoryYAML, Error, "a key stands once in a mapping"},
	{YAMLAnchor, CategoryYAML, Error,
		"there are no anchors, aliases or merge keys: say it where it applies"},
	{YAMLTag, CategoryYAML, Error, "there are no tags: the language says what each value is"},
	{YAMLDocuments, CategoryYAML, Error, "a file is one document, without directives"},
	{YAMLKey, CategoryYAML, Error, "a key is a string"},
	{YAMLQuote, CategoryYAML, Error, "text that YAML may read as something else is quoted"},

	{LanguageVersion, CategoryLanguage, Error,
		"the catalogue's language is one that this outboxgen reads"},
	{KeyUnknown, CategoryLanguage, Error, "a key is one of the language's"},
	{KeyMissing, CategoryLanguage, Error, "a required key is there"},
	{NotSupportedYet, CategoryLanguage, Error,
		"the language has it, but this outboxgen does not compile it yet"},
	{ValueEmpty, CategoryLanguage, Error, "a key has a value"},
	{ValueKind, CategoryLanguage, Error, "a value is of the kind that its key asks for"},
	{ValueRange, CategoryLanguage, Error, "a number or duration is within its range"},
	{ValueUnknown, CategoryLanguage, Error, "a value is one of those that its key offers"},
	{TypeSyntax, CategoryLanguage, Error, "a type is written as T, T?, [T] or {string: T}"},

	{ServiceName, CategoryNames, Error,
		"service is a URI reference, as the CloudEvents source of every event"},
	{GoPackage, CategoryNames, Error, "go.package names a package that can be imported"},
	{DirPath, CategoryNames, Error,
		"a directory is a clean relative path below the catalogue, with slashes"},
	{DatabaseName, CategoryNames, Error,
		"a schema or prefix makes names that the database takes without quotes"},
	{TopicName, CategoryNames, Error, "a topic is a name that every broker takes"},
	{TypeName, CategoryNames, Error, "a type's name is an exported Go identifier"},
	{FieldName, CategoryNames, Error, "a field's name is snake_case"},
	{JSONName, CategoryNames, Error, "json_name is a plain name"},
	{GoName, CategoryNames, Error, "go_name is an exported Go identifier"},
	{EnumValue, CategoryNames, Error, "an enum's value makes the name of a constant"},
	{EventName, CategoryNames, Error, "an event is called noun.past_participle@version"},
	{ConsumerName, CategoryNames, Error, "a consumer's name is snake_case"},
	{NameCollision, CategoryNames, Error,
		"no two things have one name in Go, in JSON or as a file"},
	{NameReserved, CategoryNames, Error, "no name is one that generated code needs for itself"},

	{TypeShape, CategoryModel, Error,
		"a type is either a struct with fields or an enum with values"},
	{TypeUnknown, CategoryModel, Error, "a type is built in or declared under types"},
	{TypeRecursive, CategoryModel, Error,
		"a type contains itself through an optional, a list or a map only"},
	{EnumDuplicate, CategoryModel, Error, "an enum's values differ"},
	{ConstraintType, CategoryModel, Error, "a constraint fits its field's type"},
	{ConstraintRange, CategoryModel, Error, "a constraint's limits leave a value to choose"},
	{ConstraintPattern, CategoryModel, Error, "a pattern is an RE2 regular expression"},
	{EventTopic, CategoryModel, Error, "an event has a topic of its own or from defaults"},
	{EventVersionNoSkip, CategoryModel, Error, "an event's versions follow one another"},
	{EventKeyField, CategoryModel, Error,
		"a key is a field of the payload, or a dotted path to one"},
	{EventKeyType, CategoryModel, Error,
		"a key is required, and of a type that has one text per value"},
	{EventKeyPII, CategoryModel, Error, "a key is not personal data: it reaches headers and logs"},
	{ConsumerEvent, CategoryModel, Error, "a consumer handles and emits events of the catalogue"},
	{ConsumerDuplicate, CategoryModel, Error, "a consumer names an event once"},

	{MigrationImmutable, CategoryOutput, Error, "a migration is not edited once it is generated"},
	{MigrationNeeded, CategoryOutput, Error, "tables change through a migration only"},
	{MigrationDuplicate, CategoryOutput, Error, "a migration stands in its directory once"},
	{TableSameName, CategoryOutput, Error, "tables keep the names that a migration gave them"},
	{SQLCompile, CategoryOutput, Error, "sqlc compiles the generated SQL"},
	{OutputStale, CategoryOutput, Error,
		"generated files are what the catalogue generates (check)"},
	{OutputOrphan, CategoryOutput, Warning,
		"a file that says it is generated is one that the catalogue generates"},
	{OutputShared, CategoryOutput, Error,
		"a directory of generated files belongs to one catalogue"},
	{OutputCollision, CategoryOutput,
		Error, "files beside the generated ones are of their package, and declare other names"},
	{OutputUnchecked, CategoryOutput, Warning, "what sqlc made is compared with what sqlc makes"},

	{LintCatalogueEmpty, CategoryLint, Warning, "a catalogue without events"},
	{LintEventDoc, CategoryLint, Warning, "an event without doc"},
	{LintEventTense, CategoryLint, Info,
		"an event whose name does not say that something has happened"},
	{LintEventUnhandled, CategoryLint, Info, "an event that no consumer here handles"},
	{LintFloatMoney, CategoryLint, Warning, "a float64 that looks like money"},
	{LintTypeUnused, CategoryLint, Warning, "a type that no event uses"},
	{LintConsumerLoop, CategoryLint, Warning,
		"consumers whose events cause one another in a circle"},
}

// Rules returns the table of rules: every rule that can be reported, by category.
func Rules() []Rule { return slices.Clone(rules) }

var severities = func() map[string]Severity {
	m := make(map[string]Severity, len(rules))
	for _, r := range rules {
		m[r.ID] = r.Severity
	}
	return m
}()

func severityOf(rule string) Severity { return severities[rule] }
