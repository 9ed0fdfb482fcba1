//! Turns prepared files into validators. The only place that sets the options of the validator library.
//! Fetches nothing, checks no `format`, and bounds the cost of patterns.

use std::sync::LazyLock;

use jsonschema::{Draft, PatternOptions, Registry, ValidationError, Validator, options_for};
use serde_json::{Value, json};

use super::check::Checker;
use super::dialect::{Dialect, rewrite_2020_12};
use super::metered_json::MeteredJson;
use super::patterns::Effort;
use super::{SCHEMA_FILE, SchemaFiles, SchemaProblem, Section, SectionRef};

/// The base address of module files inside the validator. Its scheme cannot be fetched.
const BASE: &str = "module:///";

/// Bytes of the automaton of one pattern. A quarter of this would refuse `^\S{1,255}$`.
const MAX_AUTOMATON_SIZE: usize = 1 << 20;

/// Bytes that matching one pattern keeps between two texts.
const MAX_CACHE_SIZE: usize = 1 << 18;

/// Backtracking limit on one text for a pattern with look-around or back-references.
const MAX_TRIES: usize = 10_000;

pub(super) struct SchemaCompiler {
    registry: Registry<'static>,
    draft: Draft,
    effort: Effort,
}

impl SchemaCompiler {
    /// Reads prepared files. Most are Draft-07; the core form of other dialects may need 2020-12.
    pub(super) fn new(files: SchemaFiles, effort: Effort) -> Result<Self, Vec<SchemaProblem>> {
        let (files, draft) = match rewrite_2020_12(&files) {
            Some(spelled) => (spelled, Draft::Draft202012),
            None => (files, Draft::Draft7),
        };
        let refused = |message: String| vec![SchemaProblem::new(SCHEMA_FILE, "", message)];
        let mut builder = Registry::new().draft(draft);
        for (file, root) in files {
            builder =
                builder.add(format!("{BASE}{file}"), root).map_err(|error| refused(error.to_string()))?;
        }
        let registry = builder.prepare().map_err(|error| refused(error.to_string()))?;
        Ok(Self { registry, draft, effort })
    }

    /// Compiles the section at `place`; `files` are the files as written.
    pub(super) fn section(
        &self,
        place: &SectionRef,
        files: &SchemaFiles,
    ) -> Result<Section, Vec<SchemaProblem>> {
        let schema = super::find(files, place).cloned().unwrap_or(Value::Bool(true));
        let problems = schema_problems(&schema, place, Dialect::Draft07);
        if !problems.is_empty() {
            return Err(problems);
        }
        let checker = self
            .checker(place)
            .map_err(|error| vec![SchemaProblem::new(&place.file, &place.pointer, error.to_string())])?;
        Ok(Section { place: place.clone(), schema, written: None, checker })
    }

    pub(super) fn checker(&self, place: &SectionRef) -> Result<Checker, ValidationError<'static>> {
        let validator = options_for::<MeteredJson>()
            .with_draft(self.draft)
            .with_registry(&self.registry)
            .with_base_uri(BASE)
            .should_validate_formats(false)
            .without_content_encoding_support("base64")
            .without_content_media_type_support("application/json")
            // A module author's pattern may be slow, but it must not hang a run.
            .with_pattern_options(
                PatternOptions::fancy_regex()
                    .backtrack_limit(MAX_TRIES)
                    .size_limit(MAX_AUTOMATON_SIZE)
                    .dfa_size_limit(MAX_CACHE_SIZE),
            )
            .offline()
            .build(&entry(&address(place)))?;
        Ok(Checker::new(validator, self.effort))
    }
}

/// The address of a location inside the validator. `%` is escaped, since it starts a percent code there.
fn address(place: &SectionRef) -> String {
    format!("{BASE}{}#{}", place.file, place.pointer.replace('%', "%25"))
}

/// A schema for arrays whose items are validated by the schema at `address` (see [`super::metered_json::outermost`]).
fn entry(address: &str) -> Value {
    json!({ "items": { "$ref": address } })
}

/// The reasons why a schema is not valid in its dialect.
pub(super) fn schema_problems(schema: &Value, place: &SectionRef, dialect: Dialect) -> Vec<SchemaProblem> {
    static DRAFT_07: LazyLock<Option<Checker>> = LazyLock::new(|| meta_checker(Dialect::Draft07));
    static DRAFT_2019_09: LazyLock<Option<Checker>> = LazyLock::new(|| meta_checker(Dialect::Draft201909));
    static DRAFT_2020_12: LazyLock<Option<Checker>> = LazyLock::new(|| meta_checker(Dialect::Draft202012));
    let meta_schema = match dialect {
        Dialect::Draft07 => &DRAFT_07,
        Dialect::Draft201909 => &DRAFT_2019_09,
        Dialect::Draft202012 => &DRAFT_2020_12,
    };
    let Some(meta_schema) = meta_schema.as_ref() else {
        return vec![SchemaProblem::new(&place.file, &place.pointer, "the schema checker is broken")];
    };
    let found = meta_schema.violations(schema);
    // `$schema` is only a label and `$id` only an identifier; their content is not checked.
    let found =
        found.into_iter().filter(|each| !each.path.ends_with("/$schema") && !each.path.ends_with("/$id"));
    found
        .map(|each| {
            let pointer = format!("{}{}", place.pointer, each.path);
            let message = format!("not a {} schema: {}", dialect.name(), each.message);
            let is_list = schema.pointer(&each.path).is_some_and(Value::is_array);
            let problem = SchemaProblem::new(&place.file, pointer, message);
            match dialect {
                Dialect::Draft07 => problem,
                Dialect::Draft202012 if is_list && each.path.ends_with("/items") => {
                    problem.hint("Use `prefixItems` for a list of schemas by position")
                }
                _ => problem.hint("Correct the schema, or declare the dialect of this schema in `$schema`"),
            }
        })
        .collect()
}

fn meta_checker(dialect: Dialect) -> Option<Checker> {
    let draft = match dialect {
        Dialect::Draft07 => Draft::Draft7,
        Dialect::Draft201909 => Draft::Draft201909,
        Dialect::Draft202012 => Draft::Draft202012,
    };
    let validator: Validator<MeteredJson> =
        options_for().with_draft(draft).offline().build(&entry(dialect.meta_schema())).ok()?;
    Some(Checker::new(validator, Effort::Light))
}
