//! JSON Schema for contracts between programs and models: validation with bounded cost (Draft-07, 2019-09, 2020-12), and
//! the same contract in the dialects that model providers understand.
//!
//! 1. Validation. [`Contract::compile`] reads the files of a module and refuses schemas that could stall the validator.
//!    A [`Section`] validates values and lists every [`SchemaViolation`]. [`prefix`] has the rules that apply while a
//!    value is still being written.
//! 2. Provider schemas. [`provider_schema()`] writes the whole envelope of a module for one [`SchemaTarget`], with a
//!    list of every rule that the target cannot express. [`drop_stand_ins`] removes the placeholders that a target made
//!    a model write.
//!
//! Does no I/O: `$ref` reaches only the files that the caller passes in, and nothing is fetched. Knows no manifests and
//! no error codes; the caller passes the rules of the envelope as [`EnvelopeRules`].
//!
//! # Modules
//!
//! - `validate`: compiles a contract and validates values. `validate::dialect` reads `$schema` and rewrites newer dialects
//!   to one core form, `validate::keywords` limits single keywords, `validate::ids`
//!   and `validate::refs` resolve references, `validate::prefix` checks the beginning of a value, `validate::reach`
//!   answers questions about a place before it has a value.
//! - `provider_schema`: writes the envelope of a module for a provider. `provider_schema::dialect` has one constant per
//!   dialect, `provider_schema::tool` the schemas of tools.
//! - `violation`: one broken rule. [`text`]: lengths, JSON pointers, names of types.

mod provider_schema;
pub mod text;
mod validate;
mod violation;

pub use provider_schema::{
    Effect, EmittedContext, EnvelopeRules, InsightRule, Loss, PlainSections, ProviderSchema, SchemaTarget,
    ToolSchemas, drop_stand_ins, envelope_outline, envelope_schema, in_order, plain_sections,
    provider_schema, tool_schemas,
};
pub use validate::{
    Contract, ContractPlace, DATA_KEYWORDS, DeclaredMembers, JsonTypes, Layout, MAX_CUSTOM_LENGTH,
    MemberDescription, OverflowMembers, SCHEMA_FILE, SchemaFiles, SchemaProblem, Section, SectionRef,
    accepts, custom_branches, file_of_ref, foreign_keywords, in_draft_07, names_answered_by_ids, prefix,
    violations_of,
};
pub use violation::{MAX_VIOLATIONS, SchemaViolation};
