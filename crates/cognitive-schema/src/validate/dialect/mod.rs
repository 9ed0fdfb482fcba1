//! The JSON Schema dialects that `$schema` can declare, and the core form that all other code reads. (SCH-003, D-25)
//!
//! The nearest `$schema` above a schema decides: Draft-07 by default and for unknown addresses, 2019-09 or 2020-12 where
//! declared. Files that declare only Draft-07 are not touched. Otherwise every schema is rewritten to the core form:
//! Draft-07 plus `minContains`, `maxContains`, `unevaluatedItems` and `unevaluatedProperties`, without any rule beside a
//! `$ref`. Schemas of several dialects can then refer to each other, and the readers of contracts know one dialect.
//!
//! `rewrite` changes keywords and references, `unevaluated_members` closes schemas whose evaluated members are known.

mod keywords;
mod rewrite;
mod unevaluated_members;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::compile::schema_problems;
use super::walk::{self, visit};
use super::{SCHEMA_FILE, SchemaFiles, SchemaProblem, SectionRef, ids};

pub(super) use keywords::foreign;
pub use keywords::foreign_keywords;
pub(super) use rewrite::rewrite_2020_12;

/// A dialect of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Dialect {
    #[default]
    Draft07,
    Draft201909,
    Draft202012,
}

impl Dialect {
    /// The dialect for the value of `$schema`. An unknown address means Draft-07.
    fn from_address(address: &str) -> Self {
        let name = address.trim_end_matches('#');
        match name.strip_prefix("https://").or_else(|| name.strip_prefix("http://")) {
            Some("json-schema.org/draft/2019-09/schema") => Self::Draft201909,
            Some("json-schema.org/draft/2020-12/schema") => Self::Draft202012,
            _ => Self::Draft07,
        }
    }

    /// The dialect of a schema that is written inside a schema of this dialect.
    pub(super) fn nested_dialect(self, schema: &Map<String, Value>) -> Self {
        schema.get("$schema").and_then(Value::as_str).map_or(self, Self::from_address)
    }

    /// The dialect in which a file starts: its own, or that of `schema.json`.
    pub(super) fn for_file(files: &SchemaFiles, file: &str) -> Self {
        let main = files.get(SCHEMA_FILE).and_then(Value::as_object);
        let main = main.map_or(Self::Draft07, |root| Self::Draft07.nested_dialect(root));
        files.get(file).and_then(Value::as_object).map_or(main, |root| main.nested_dialect(root))
    }

    /// The dialect of a location.
    pub(super) fn at(files: &SchemaFiles, file: &str, pointer: &str) -> Self {
        let starts = pointer.match_indices('/').map(|(start, _)| start).skip(1).chain([pointer.len()]);
        let above = starts.filter_map(|end| files.get(file)?.pointer(pointer.get(..end)?)?.as_object());
        above.fold(Self::for_file(files, file), Self::nested_dialect)
    }

    /// The name for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Draft07 => "Draft-07",
            Self::Draft201909 => "2019-09",
            Self::Draft202012 => "2020-12",
        }
    }

    /// The address of the schema of all schemas.
    pub(super) fn meta_schema(self) -> &'static str {
        match self {
            Self::Draft07 => "http://json-schema.org/draft-07/schema#",
            Self::Draft201909 => "https://json-schema.org/draft/2019-09/schema",
            Self::Draft202012 => "https://json-schema.org/draft/2020-12/schema",
        }
    }
}

/// Returns whether a file declares a dialect other than Draft-07.
pub(super) fn is_declared(files: &SchemaFiles) -> bool {
    is_any_schema(files, |schema| Dialect::Draft07.nested_dialect(schema) != Dialect::Draft07)
}

/// Returns whether files differ from their core form. Draft-07 differs if it has keywords of newer dialects, which no
/// reader may take for rules.
fn is_rewritten(files: &SchemaFiles) -> bool {
    is_declared(files)
        || is_any_schema(files, |schema| schema.keys().any(|keyword| foreign(Dialect::Draft07, keyword)))
}

fn is_any_schema(files: &SchemaFiles, is: impl Fn(&Map<String, Value>) -> bool) -> bool {
    let mut found = false;
    for root in files.values() {
        visit(root, &mut |node, _| found = found || node.as_object().is_some_and(&is));
    }
    found
}

/// The files in core form: unchanged if they have only Draft-07. Every reference must be a JSON pointer.
pub(super) fn core(files: &SchemaFiles) -> Cow<'_, SchemaFiles> {
    if !is_rewritten(files) {
        return Cow::Borrowed(files);
    }
    let mut core = rewrite::core(files);
    unevaluated_members::close(&mut core);
    Cow::Owned(core)
}

/// Files in Draft-07, for readers that ask [`super::ContractPlace`]. Files that declare no other dialect are unchanged.
#[must_use]
pub fn in_draft_07(files: &SchemaFiles) -> Cow<'_, SchemaFiles> {
    if is_rewritten(files) {
        Cow::Owned(core(&ids::resolve_ids(files)).into_owned())
    } else {
        Cow::Borrowed(files)
    }
}

/// The reasons why a file or a section is not valid in the dialect that it declares. Draft-07 is checked elsewhere, section
/// by section.
pub(super) fn problems<'a>(
    files: &SchemaFiles,
    sections: impl IntoIterator<Item = &'a SectionRef>,
) -> Vec<SchemaProblem> {
    if !is_declared(files) {
        return Vec::new();
    }
    let mut places: BTreeSet<(String, String)> =
        sections.into_iter().map(|place| (place.file.clone(), place.pointer.clone())).collect();
    for (file, root) in files {
        places.insert((file.clone(), String::new()));
        visit(root, &mut |node, steps| {
            if node.get("$schema").is_some_and(Value::is_string) {
                places.insert((file.clone(), walk::pointer(steps.iter().copied())));
            }
        });
    }
    let mut found = Vec::new();
    for (file, pointer) in places {
        let dialect = Dialect::at(files, &file, &pointer);
        let schema = files.get(&file).and_then(|root| root.pointer(&pointer));
        if let Some(schema) = schema.filter(|_| dialect != Dialect::Draft07) {
            found.extend(schema_problems(schema, &SectionRef { file, pointer }, dialect));
        }
    }
    found
}

/// Problems of the core form, with their locations in the files as written.
pub(super) fn relocate_problems(
    mut problems: Vec<SchemaProblem>,
    written: &SchemaFiles,
) -> Vec<SchemaProblem> {
    for problem in problems.iter_mut().filter(|_| is_rewritten(written)) {
        problem.pointer = rewrite::written_pointer(written, &problem.file, &problem.pointer);
    }
    problems
}

#[cfg(test)]
mod tests;
