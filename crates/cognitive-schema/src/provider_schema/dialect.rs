//! The capabilities of each target, one constant per target. Outside this file, only the public enum names targets.

use super::SchemaTarget;
use super::pattern::Patterns;

/// The subset of JSON Schema that a target accepts, and its conventions.
#[derive(Debug)]
pub(super) struct SchemaDialect {
    /// The keywords that may occur in a provider schema, separated by spaces. A test checks the output against this
    /// list.
    keywords: &'static str,
    /// The supported values of `format`.
    pub formats: &'static [&'static str],
    pub patterns: Patterns,
    pub strings: Strings,
    pub numbers: Numbers,
    pub envelope: OutcomeShape,
    pub objects: Objects,
    pub optional: OptionalNotation,
    pub recursion: Recursion,
    pub rest: UnsupportedRules,
    pub values: Values,
    pub anything: OpenNotation,
    pub size: Size,
    /// The largest accepted `minItems`; a larger one is reduced to this.
    pub most_min_items: u64,
    /// The largest accepted `maxItems`; a larger one is dropped.
    pub most_items: u64,
    /// The largest accepted `maxLength`; a larger one is dropped.
    pub most_length: u64,
    pub limits: SchemaLimits,
}

/// The shape that distinguishes the two outcomes of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutcomeShape {
    /// One object with all members; the irrelevant ones are null.
    OneObject,
    /// A choice of two objects.
    TwoObjects,
}

/// The treatment of members that a schema does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Objects {
    /// Stay allowed.
    Open,
    /// Removed, because the target requires it.
    Closed,
    /// Removed, because the model would invent names. Maps with described values stay.
    ClosedExceptMaps,
}

/// The notation of an optional member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionalNotation {
    /// Not listed in `required`.
    Absent,
    /// Not listed in `required` up to this number of members; the others may be null.
    AbsentUpTo(usize),
    /// Required, but may be null.
    Null,
}

/// The treatment of recursive types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recursion {
    /// Kept, as `$defs`.
    Defs,
    /// Written out a few levels deep.
    Unrolled,
}

/// The treatment of rules that the target cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnsupportedRules {
    /// Left out; validation still checks them.
    LeftOut,
    /// Replaced by stricter rules, as long as some value remains.
    Narrowed,
}

/// The values that an `enum` may list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    All,
    Scalars,
    StringsAndNumbers,
}

/// The notation of a location without rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenNotation {
    /// All types, as a list.
    AllTypes,
    /// Any scalar, since arrays and objects would need their own schema.
    Scalars,
}

/// The treatment of several rules for one string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strings {
    AllRules,
    /// Only the first of pattern, format and lengths applies.
    FirstRule,
}

/// The number types that may have a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    AllRanges,
    IntegerRanges,
}

/// The bounds on the size of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    AsWritten,
    Bounded,
}

/// The size limits of a schema. `usize::MAX` where none is published.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaLimits {
    /// Nesting depth of objects.
    pub levels: usize,
    pub properties: usize,
    pub enum_values: usize,
    /// Characters in one long list of values.
    pub enum_characters: usize,
    /// Characters in names and values together.
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
    pub(super) fn for_target(target: SchemaTarget) -> &'static Self {
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

/// <https://developers.openai.com/api/docs/guides/structured-outputs>, "Supported schemas". The page mentions
/// `minLength` and `maxLength` only as unsupported by fine-tuned models, and services have answered "not permitted", so
/// they are left out. `oneOf` is also "not permitted". The root must be an object without `anyOf`.
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
    optional: OptionalNotation::Null,
    recursion: Recursion::Defs,
    rest: UnsupportedRules::LeftOut,
    values: Values::Scalars,
    anything: OpenNotation::Scalars,
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
/// complexity limits"; the SDK's `transform_schema` agrees. Every example there has an object at the root, so this has,
/// too. The model writes required members before optional ones, regardless of the order in the schema.
static ANTHROPIC: SchemaDialect = SchemaDialect {
    keywords: "additionalProperties anyOf const description enum format items minItems pattern properties \
               required type",
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"],
    patterns: Patterns::Simple,
    strings: Strings::AllRules,
    numbers: Numbers::AllRanges,
    envelope: OutcomeShape::OneObject,
    objects: Objects::Closed,
    optional: OptionalNotation::AbsentUpTo(24),
    recursion: Recursion::Unrolled,
    rest: UnsupportedRules::LeftOut,
    values: Values::Scalars,
    anything: OpenNotation::Scalars,
    size: Size::AsWritten,
    most_min_items: 1,
    most_items: 0,
    most_length: 0,
    limits: SchemaLimits { unions: 16, ..SchemaLimits::NONE },
};

/// <https://ai.google.dev/api/generate-content#v1beta.GenerationConfig>, `responseJsonSchema`. `enum` is for strings
/// and numbers, so `ok` cannot be fixed to `true`. The service unrolls cycles "to a limited degree" and only below
/// optional members, so they are unrolled here instead. Long arrays cause "too many states for serving".
/// <https://ai.google.dev/gemini-api/docs/structured-output> lists the formats.
static GEMINI: SchemaDialect = SchemaDialect {
    keywords: "additionalProperties anyOf description enum format items maxItems maximum minItems minimum \
               properties propertyOrdering required type",
    formats: &["date-time", "date", "time"],
    patterns: Patterns::None,
    strings: Strings::AllRules,
    numbers: Numbers::AllRanges,
    envelope: OutcomeShape::OneObject,
    objects: Objects::Open,
    optional: OptionalNotation::Absent,
    recursion: Recursion::Unrolled,
    rest: UnsupportedRules::LeftOut,
    values: Values::StringsAndNumbers,
    anything: OpenNotation::AllTypes,
    size: Size::AsWritten,
    most_min_items: 50,
    most_items: 50,
    most_length: 0,
    limits: SchemaLimits::NONE,
};

/// Ollama passes `format` to llama.cpp: <https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md> and
/// `common/json-schema-to-grammar.cpp`. It silently skips unknown keywords, closes objects that do not say otherwise,
/// and refuses the whole grammar for a repetition of 2000 or more.
static OLLAMA: SchemaDialect = SchemaDialect {
    keywords: "$defs $ref additionalProperties anyOf const description enum format items maxItems maxLength \
               maximum minItems minLength minimum pattern properties required type",
    formats: &["date", "time", "date-time", "uuid"],
    patterns: Patterns::Gbnf,
    strings: Strings::FirstRule,
    numbers: Numbers::IntegerRanges,
    envelope: OutcomeShape::TwoObjects,
    objects: Objects::ClosedExceptMaps,
    optional: OptionalNotation::Absent,
    recursion: Recursion::Defs,
    rest: UnsupportedRules::LeftOut,
    values: Values::All,
    anything: OpenNotation::AllTypes,
    size: Size::AsWritten,
    most_min_items: 100,
    most_items: 100,
    most_length: 1_000,
    limits: SchemaLimits::NONE,
};

/// <https://github.com/guidance-ai/llguidance/blob/main/docs/json_schema.md>, and our own measurements with 1.9.1.
/// `oneOf` is accepted only if the branches provably exclude each other, so it is not used. The model never reads the
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
    optional: OptionalNotation::Absent,
    recursion: Recursion::Unrolled,
    rest: UnsupportedRules::Narrowed,
    values: Values::All,
    anything: OpenNotation::Scalars,
    size: Size::Bounded,
    most_min_items: u64::MAX,
    most_items: u64::MAX,
    most_length: u64::MAX,
    limits: SchemaLimits::NONE,
};
