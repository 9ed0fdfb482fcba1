//! The closed lists of `module.yaml`. A value outside its list makes the module invalid.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

// One list gives the enum, its text form and its JSON Schema. The schema is written out instead of derived,
// because a plain `enum` is what makes "expected one of …" readable.
macro_rules! words {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $each:literal])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
        pub enum $name {
            $($(#[doc = $each])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// The word as it stands in files.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": concat!($($doc),*).trim(),
                    "type": "string",
                    "enum": [$($word),*],
                    // Read by editors; JSON Schema itself has no place for it.
                    "enumDescriptions": [$(concat!($($each),*).trim()),*],
                })
            }
        }
    };
}

words! {
    /// How much freedom of expression a module has. It chooses defaults, not a model.
    Tier {
        /// Runs without a person: confidence at least 0.9, risk none or low.
        Exec = "exec",
        /// Helps a person to decide.
        Decision = "decision",
        /// Research and ideas.
        Exploration = "exploration",
    }
}
words! {
    /// How strictly output is judged; decides the defaults of overflow and enums.
    SchemaStrictness {
        /// No insights, closed enums.
        High = "high",
        /// Five insights, extensible enums.
        Medium = "medium",
        /// Twenty insights, extensible enums.
        Low = "low",
    }
}
words! {
    /// A policy's word.
    Allow {
        /// Permitted.
        Allow = "allow",
        /// Forbidden.
        Deny = "deny",
    }
}
words! {
    /// What holds for a tool that no list names.
    ToolPolicy {
        /// Only listed tools.
        DenyByDefault = "deny_by_default",
        /// All but listed tools.
        AllowByDefault = "allow_by_default",
    }
}
words! {
    /// Whether declared enum values can be extended.
    EnumStrategy {
        /// Declared values only.
        Strict = "strict",
        /// Also `{custom, reason}` where the schema offers it.
        Extensible = "extensible",
    }
}
words! {
    /// How the library API reports a failure.
    FailureContract {
        /// As an envelope.
        ErrorUnion = "error_union",
        /// As an error that carries the envelope.
        Throw = "throw",
    }
}
words! {
    /// Which section of `schema.json` is the data section when both exist.
    SchemaAlias {
        /// `data`.
        Data = "data",
        /// `output`.
        Output = "output",
    }
}
words! {
    /// Where `meta.risk` comes from.
    RiskRule {
        /// Highest of `data.changes[*].risk`.
        MaxChangesRisk = "max_changes_risk",
        /// Highest of `data.issues[*].risk`.
        MaxIssuesRisk = "max_issues_risk",
        /// The model's own value.
        Explicit = "explicit",
        /// Has no declared form; read as `explicit`.
        CustomFunction = "custom_function",
    }
}
words! {
    /// What kind of response a module offers.
    Mode {
        /// One envelope.
        Sync = "sync",
        /// A stream of chunks.
        Streaming = "streaming",
        /// Either, as asked.
        Both = "both",
    }
}
words! {
    /// What a stream carries.
    ChunkType {
        /// Additions to text fields.
        Delta = "delta",
        /// The whole data so far.
        Snapshot = "snapshot",
    }
}
words! {
    /// What a module takes.
    InputModality {
        /// Text; always.
        Text = "text",
        /// Pictures.
        Image = "image",
        /// Sound.
        Audio = "audio",
        /// Film.
        Video = "video",
        /// PDF.
        Document = "document",
    }
}
words! {
    /// What a module gives.
    OutputModality {
        /// Text; always.
        Text = "text",
        /// Pictures.
        Image = "image",
        /// Sound.
        Audio = "audio",
        /// Film.
        Video = "video",
    }
}
words! {
    /// Whether submodules share context.
    ContextMode {
        /// They share the caller's context.
        Main = "main",
        /// Each gets a copy.
        Fork = "fork",
    }
}
words! {
    /// How the parts of a composition run.
    Pattern {
        /// One after another.
        Sequential = "sequential",
        /// At the same time.
        Parallel = "parallel",
        /// The first, then what `routing` says.
        Conditional = "conditional",
    }
}
words! {
    /// How several results become one.
    Aggregate {
        /// Deep merge; later wins.
        Merge = "merge",
        /// A list in source order.
        Array = "array",
        /// The first that is not null.
        First = "first",
        /// A registered function.
        Custom = "custom",
    }
}
