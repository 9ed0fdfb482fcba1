//! The closed lists of `module.yaml`. A value outside its list makes the module invalid.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

// One list produces the enum, its text form and its JSON Schema. The schema is written by hand, because only a plain
// `enum` gives the readable message "expected one of …".
macro_rules! words {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $each:literal])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
        pub enum $name {
            $($(#[doc = $each])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// The value as written in files.
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
                    // For editors; JSON Schema itself has no such keyword.
                    "enumDescriptions": [$(concat!($($each),*).trim()),*],
                })
            }
        }
    };
}

words! {
    /// The module's freedom of expression. Sets defaults; does not choose a model.
    Tier {
        /// Runs without human review: confidence at least 0.9, risk none or low.
        Exec = "exec",
        /// Supports human decisions.
        Decision = "decision",
        /// Research and ideas.
        Exploration = "exploration",
    }
}
words! {
    /// The strictness of output validation; sets the defaults of overflow and enums.
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
    /// The value of a policy.
    Allow {
        /// Permitted.
        Allow = "allow",
        /// Forbidden.
        Deny = "deny",
    }
}
words! {
    /// The rule for a tool that is in no list.
    ToolPolicy {
        /// Only listed tools.
        DenyByDefault = "deny_by_default",
        /// All tools except the denied ones.
        AllowByDefault = "allow_by_default",
    }
}
words! {
    /// Rules for custom enum values.
    EnumStrategy {
        /// Declared values only.
        Strict = "strict",
        /// Also `{custom, reason}` if the schema offers it.
        Extensible = "extensible",
    }
}
words! {
    /// The form in which the library API reports a failure.
    FailureContract {
        /// As an envelope.
        ErrorUnion = "error_union",
        /// As an error that carries the envelope.
        Throw = "throw",
    }
}
words! {
    /// The section of `schema.json` that holds the data if both exist.
    SchemaAlias {
        /// `data`.
        Data = "data",
        /// `output`.
        Output = "output",
    }
}
words! {
    /// The source of `meta.risk`.
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
    /// The delivery that a module offers.
    Mode {
        /// One envelope.
        Sync = "sync",
        /// A stream of chunks.
        Streaming = "streaming",
        /// Either, as the caller requests.
        Both = "both",
    }
}
words! {
    /// The content of a stream's chunks.
    ChunkType {
        /// Additions to text fields.
        Delta = "delta",
        /// The whole data so far.
        Snapshot = "snapshot",
    }
}
words! {
    /// A media type that a module accepts.
    InputModality {
        /// Text; always.
        Text = "text",
        /// Images.
        Image = "image",
        /// Audio.
        Audio = "audio",
        /// Video.
        Video = "video",
        /// PDF.
        Document = "document",
    }
}
words! {
    /// A media type that a module emits.
    OutputModality {
        /// Text; always.
        Text = "text",
        /// Images.
        Image = "image",
        /// Audio.
        Audio = "audio",
        /// Video.
        Video = "video",
    }
}
words! {
    /// The way in which submodules get context.
    ContextMode {
        /// Submodules share the caller's context.
        Main = "main",
        /// Each gets a copy.
        Fork = "fork",
    }
}
words! {
    /// Execution pattern of the parts of a composition.
    Pattern {
        /// One after another.
        Sequential = "sequential",
        /// In parallel.
        Parallel = "parallel",
        /// The first part, then the parts that `routing` selects.
        Conditional = "conditional",
    }
}
words! {
    /// The method to combine several results.
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
