//! What each target understands, one constant per target. Nothing outside this file knows a target by name, except
//! the words in which it was asked for.

use super::SchemaTarget;
use super::pattern::Patterns;

/// The subset of JSON Schema that a target takes, and its habits.
#[derive(Debug)]
pub(super) struct SchemaDialect {
    /// The keywords that may occur in a provider schema, with blanks between. A test holds the output to this list.
    keywords: &'static str,
    /// The values of `format` that are understood.
    pub formats: &'static [&'static str],
    pub patterns: Patterns,
    pub strings: Strings,
    pub numbers: Numbers,
    pub envelope: OutcomeShape,
    pub objects: Objects,
    pub optional: Optional,
    pub recursion: Recursion,
    pub rest: Rest,
    pub values: Values,
    pub anything: Anything,
    pub size: Size,
    /// The largest `minItems` that is taken; a larger one becomes this.
    pub most_min_items: u64,
    /// The largest `maxItems` that is taken; a larger one is dropped.
    pub most_items: u64,
    /// The largest `maxLength` that is taken; a larger one is dropped.
    pub most_length: u64,
    pub limits: SchemaLimits,
}

/// How the two outcomes of an envelope are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutcomeShape {
    /// One object with all members; those that do not apply are null.
    OneObject,
    /// A choice of two objects.
    TwoObjects,
}

/// What becomes of members that a schema does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Objects {
    /// They stay possible.
    Open,
    /// They go, because the target demands it.
    Closed,
    /// They go, because a model that may invent names does; a map with described values stays one.
    ClosedExceptMaps,
}

/// How a member that may be absent is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Optional {
    /// It is missing from `required`.
    Absent,
    /// The same, but only so often; the rest as null.
    AbsentUpTo(usize),
    /// It is required and may be null.
    Null,
}

/// What becomes of types that contain themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recursion {
    /// They stay, as `$defs`.
    Defs,
    /// They are written out a few levels deep.
    Unrolled,
}

/// What becomes of rules that cannot be said as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// They are left out: validation will see.
    LeftOut,
    /// They are said more strictly, as long as anything is left.
    Narrowed,
}

/// Which values a list of allowed values may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    All,
    Scalars,
    StringsAndNumbers,
}

/// How a place is written where anything may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anything {
    /// As a list of all types.
    AllTypes,
    /// As any value that is no list and no object, since those need a schema of their own.
    Scalars,
}

/// Whether several rules about one string count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strings {
    AllRules,
    /// Only the first of pattern, format and lengths counts.
    FirstRule,
}

/// Which numbers may have a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    AllRanges,
    IntegerRanges,
}

/// Whether endless answers have to be impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    AsWritten,
    Bounded,
}

/// How large a schema may be. `usize::MAX` where nothing is published.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaLimits {
    /// Objects in objects.
    pub levels: usize,
    pub properties: usize,
    pub enum_values: usize,
    /// Characters of one long list of values.
    pub enum_characters: usize,
    /// Characters of names and values together.
    pub characters: usize,
    /// Members with a choice of types.
    pub unions: usize,
}

impl SchemaLimits {
    const NONE: Self = Self {
        levels: usize::MAX,
        properties: usize::MAX,
        enum_values: usize::MAX,
        enum_characters: usize::MAX,
        characters: usize::MAX,
        unions: usize::MAX,
    };
}

impl SchemaDialect {
    pub(super) fn of(target: SchemaTarget) -> &'static Self {
        match target {
            SchemaTarget::OpenAi => &OPENAI,
            SchemaTarget::Anthropic => &ANTHROPIC,
            SchemaTarget::Gemini => &GEMINI,
            SchemaTarget::Ollama => &OLLAMA,
            SchemaTarget::Grammar => &GRAMMAR,
        }
    }

    pub(super) fn has(&self, keyword: &str) -> bool {
        self.keywords.split(' ').any(|known| known == keyword)
    }
}

/// <https://developers.openai.com/api/docs/guides/structured-outputs>, "Supported schemas". The page names
/// `minLength` and `maxLength` only among what fine-tuned models lack, and services have answered "not permitted";
/// so they are left out. `oneOf` is "not permitted", too. The root must be an object and no `anyOf`.
static OPENAI: SchemaDialect = SchemaDialect {
    keywords: "$defs $ref additionalProperties anyOf const description enum exclusiveMaximum \
               exclusiveMinimum format items maxItems maximum minItems minimum multipleOf pattern \
               properties required type",
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"],
    patterns: Patterns::Simple,
    strings: Strings::AllRules,
    numbers: Numbers::AllRanges,
    envelope: OutcomeShape::OneObject,
    objects: Objects::Closed,
    optional: Optional::Null,
    recursion: Recursion::Defs,
    rest: Rest::LeftOut,
    values: Values::Scalars,
    anything: Anything::Scalars,
    size: Size::AsWritten,
    most_min_items: u64::MAX,
    most_items: u64::MAX,
    most_length: 0,
    limits: SchemaLimits {
        levels: 10,
        properties: 5_000,
        enum_values: 1_000,
        enum_characters: 15_000,
        characters: 120_000,
        unions: usize::MAX,
    },
};

/// <https://platform.claude.com/docs/en/build-with-claude/structured-outputs>, "JSON Schema limitations" and "Schema
/// complexity limits"; the SDK's `transform_schema` agrees. Every example there has an object at the root, so this
/// has, too. Required members are written before optional ones, whatever the order of the schema.
static ANTHROPIC: SchemaDialect = SchemaDialect {
    keywords: "additionalProperties anyOf const description enum format items minItems pattern properties \
               required type",
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"],
    patterns: Patterns::Simple,
    strings: Strings::AllRules,
    numbers: Numbers::AllRanges,
    envelope: OutcomeShape::OneObject,
    objects: Objects::Closed,
    optional: Optional::AbsentUpTo(24),
    recursion: Recursion::Unrolled,
    rest: Rest::LeftOut,
    values: Values::Scalars,
    anything: Anything::Scalars,
    size: Size::AsWritten,
    most_min_items: 1,
    most_items: 0,
    most_length: 0,
    limits: SchemaLimits { unions: 16, ..SchemaLimits::NONE },
};

/// <https://ai.google.dev/api/generate-content#v1beta.GenerationConfig>, `responseJsonSchema`. `enum` is for strings and
/// numbers, so `ok` cannot be bound to `true`. Cycles are unrolled "to a limited degree" and only below members that
/// are not required, so they are unrolled here instead. Long lists make "too many states for serving".
/// <https://ai.google.dev/gemini-api/docs/structured-output> has the formats.
static GEMINI: SchemaDialect = SchemaDialect {
    keywords: "additionalProperties anyOf description enum format items maxItems maximum minItems minimum \
               properties propertyOrdering required type",
    formats: &["date-time", "date", "time"],
    patterns: Patterns::None,
    strings: Strings::AllRules,
    numbers: Numbers::AllRanges,
    envelope: OutcomeShape::OneObject,
    objects: Objects::Open,
    optional: Optional::Absent,
    recursion: Recursion::Unrolled,
    rest: Rest::LeftOut,
    values: Values::StringsAndNumbers,
    anything: Anything::AllTypes,
    size: Size::AsWritten,
    most_min_items: 50,
    most_items: 50,
    most_length: 0,
    limits: SchemaLimits::NONE,
};

/// Ollama hands `format` to llama.cpp: <https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md> and
/// `common/json-schema-to-grammar.cpp`. What it does not know it skips in silence, it closes objects that do not say
/// otherwise, and a repetition of 2000 or more makes it refuse the whole grammar.
static OLLAMA: SchemaDialect = SchemaDialect {
    keywords: "$defs $ref additionalProperties anyOf const description enum format items maxItems maxLength \
               maximum minItems minLength minimum pattern properties required type",
    formats: &["date", "time", "date-time", "uuid"],
    patterns: Patterns::Gbnf,
    strings: Strings::FirstRule,
    numbers: Numbers::IntegerRanges,
    envelope: OutcomeShape::TwoObjects,
    objects: Objects::ClosedExceptMaps,
    optional: Optional::Absent,
    recursion: Recursion::Defs,
    rest: Rest::LeftOut,
    values: Values::All,
    anything: Anything::AllTypes,
    size: Size::AsWritten,
    most_min_items: 100,
    most_items: 100,
    most_length: 1_000,
    limits: SchemaLimits::NONE,
};

/// <https://github.com/guidance-ai/llguidance/blob/main/docs/json_schema.md>, and our own measurements with 1.9.1.
/// `oneOf` is taken only where the branches exclude each other provably, so there is none. The model never reads the
/// schema, so there are no descriptions.
static GRAMMAR: SchemaDialect = SchemaDialect {
    keywords: "additionalItems additionalProperties allOf anyOf const enum exclusiveMaximum exclusiveMinimum \
               format items maxItems maxLength maxProperties maximum minItems minLength minProperties minimum \
               multipleOf pattern patternProperties properties required type x-copy-from x-decide x-guidance \
               x-name-from x-say",
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"],
    patterns: Patterns::Simple,
    strings: Strings::AllRules,
    numbers: Numbers::AllRanges,
    envelope: OutcomeShape::TwoObjects,
    objects: Objects::ClosedExceptMaps,
    optional: Optional::Absent,
    recursion: Recursion::Unrolled,
    rest: Rest::Narrowed,
    values: Values::All,
    anything: Anything::Scalars,
    size: Size::Bounded,
    most_min_items: u64::MAX,
    most_items: u64::MAX,
    most_length: u64::MAX,
    limits: SchemaLimits::NONE,
};
