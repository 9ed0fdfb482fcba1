//! Compiles `schema.json` once per module into ready validators for its sections.
//! Fetches nothing: `$ref` reaches only the module's own files, which the caller passes in.

mod check;
mod compile;
mod context;
mod defaults;
mod describe;
mod dialect;
mod extensible;
mod graph;
mod ids;
mod json_types;
mod judges;
mod keywords;
mod limits;
mod metered_json;
mod patterns;
pub mod prefix;
mod prepare;
mod reach;
mod recursion;
mod refs;
mod stack;
mod walk;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::text::pointer;
use crate::violation::SchemaViolation;

use check::Checker;
use compile::SchemaCompiler;
use context::ContextSchemas;
use graph::SchemaGraph;
use judges::JudgeOrder;
use patterns::Effort;
use prefix::PrefixRules;
use prepare::{prepare, prepare_standalone};

pub use describe::violations_of;
pub use dialect::{foreign_keywords, in_draft_07};
pub use extensible::{MAX_CUSTOM_LENGTH, custom_branches};
pub use ids::names_answered_by_ids;
pub use json_types::JsonTypes;
pub use reach::{ContractPlace, DeclaredMembers, MemberDescription};
pub use refs::{DATA_KEYWORDS, file_of_ref};

/// The main contract file of a module.
pub const SCHEMA_FILE: &str = "schema.json";

/// Module-relative path → parsed JSON, for `schema.json` and every file that a `$ref` or `io` names.
pub type SchemaFiles = BTreeMap<String, Value>;

/// A problem that makes a contract file unusable, with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaProblem {
    /// Module-relative path of the file.
    pub file: String,
    /// JSON pointer into that file.
    pub pointer: String,
    /// Description of the problem.
    pub message: String,
    /// The way to correct it, if the message does not say so.
    pub hint: Option<&'static str>,
}

impl SchemaProblem {
    fn new(file: &str, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), pointer: pointer.into(), message: message.into(), hint: None }
    }

    fn hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }
}

/// The location of a section: `<file>#<JSON pointer>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionRef {
    /// Module-relative path.
    pub file: String,
    /// JSON pointer.
    pub pointer: String,
}

impl SectionRef {
    /// Reads the `io` notation, such as `./schema.json#/input`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let (file, pointer) = text.split_once('#').unwrap_or((text, ""));
        let file = file.strip_prefix("./").unwrap_or(file);
        let file = if file.is_empty() { SCHEMA_FILE } else { file };
        Self { file: file.to_owned(), pointer: pointer.to_owned() }
    }

    fn in_schema_file(section: &str) -> Self {
        Self { file: SCHEMA_FILE.to_owned(), pointer: pointer("", section) }
    }
}

/// Returns whether a value satisfies a standalone schema. A schema that does not compile accepts nothing.
/// Compiles on every call, so it is not for the hot path.
#[must_use]
pub fn accepts(schema: &Value, value: &Value) -> bool {
    let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema.clone())]);
    if dialect::is_declared(&files) {
        return Section::standalone(schema).is_ok_and(|section| section.accepts(value));
    }
    // The cost of the patterns is not measured here, so assume a high one.
    let compiler = SchemaCompiler::new(files, Effort::Heavy);
    let root = SectionRef { file: SCHEMA_FILE.to_owned(), pointer: String::new() };
    compiler.is_ok_and(|compiler| compiler.checker(&root).is_ok_and(|checker| checker.accepts(value)))
}

/// The location of each section, and how enums are read. Comes from the manifest.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Explicit `io.input`.
    pub input: Option<SectionRef>,
    /// Explicit `io.data`.
    pub data: Option<SectionRef>,
    /// Explicit `io.meta`.
    pub meta: Option<SectionRef>,
    /// Explicit `io.error`.
    pub error: Option<SectionRef>,
    /// The schemas of context that `accepts` and `emits` name.
    pub context: Vec<SectionRef>,
    /// If both `data` and `output` exist, `output` wins.
    pub prefer_output: bool,
    /// True if custom enum values are refused.
    pub strict_enums: bool,
    /// The member that holds a custom enum value.
    pub unknown_tag: String,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            input: None,
            data: None,
            meta: None,
            error: None,
            context: Vec::new(),
            prefer_output: false,
            strict_enums: false,
            unknown_tag: "custom".to_owned(),
        }
    }
}

/// A compiled section: the schema as the author wrote it, and its validator.
#[derive(Debug)]
pub struct Section {
    /// The location of the section.
    pub place: SectionRef,
    schema: Value,
    /// The schema in the dialect of its author, if that is not `schema`.
    written: Option<Value>,
    checker: Checker,
}

impl Section {
    /// Compiles a standalone schema, such as that of a tool's arguments, under the same limits as a contract file.
    pub fn standalone(schema: &Value) -> Result<Self, Vec<SchemaProblem>> {
        let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema.clone())]);
        let problems = limits::problems(&files);
        if !problems.is_empty() {
            return Err(problems);
        }
        let root = SectionRef { file: SCHEMA_FILE.to_owned(), pointer: String::new() };
        let pointed = ids::resolve_ids(&files);
        let mut problems = refs::problems(&pointed);
        problems.extend(dialect::problems(&files, [&root]));
        if !problems.is_empty() {
            return Err(problems);
        }
        let core = dialect::core(&pointed);
        let section = SchemaCompiler::new(prepare_standalone(&core), Effort::Heavy)?.section(&root, &core);
        section.map_err(|problems| dialect::relocate_problems(problems, &pointed))
    }

    /// The schema in Draft-07, whatever dialect its author declared, with `$ref`s unresolved. References by `$id` are
    /// already JSON pointers. Schemas of other dialects may still have `minContains`, `maxContains`,
    /// `unevaluatedItems` and `unevaluatedProperties`.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// The schema in the dialect of its author, for readers who see it.
    #[must_use]
    pub fn source(&self) -> &Value {
        self.written.as_ref().unwrap_or(&self.schema)
    }

    /// Returns whether a value satisfies the section. The fast path: it collects no violations.
    #[must_use]
    pub fn accepts(&self, value: &Value) -> bool {
        self.checker.accepts(value)
    }

    /// Every rule that a value breaks. Paths are relative to the value.
    #[must_use]
    pub fn violations(&self, value: &Value) -> Vec<SchemaViolation> {
        self.checker.violations(value)
    }
}

/// The compiled contract of a module.
#[derive(Debug)]
pub struct Contract {
    input: Section,
    data: Section,
    meta: Option<Section>,
    error: Option<Section>,
    /// The data section without its custom branches. Set only if they exist and enums are strict.
    closed_data: Option<Section>,
    context: ContextSchemas,
    overflow: OverflowMembers,
    root: Value,
    /// `schema.json` as its author wrote it, if that is not `root`.
    written: Option<Value>,
    plan: OnceLock<PrefixRules>,
}

/// What the contract declares below `extensions` of the data.
#[derive(Debug, Default)]
pub struct OverflowMembers {
    /// True if `extensions` may be null.
    pub may_be_null: bool,
    /// The members of `extensions`.
    pub extensions: DeclaredMembers,
    /// The members of an insight.
    pub insights: DeclaredMembers,
}

impl OverflowMembers {
    fn find(files: &SchemaFiles, data: &SectionRef) -> Self {
        let data = ContractPlace::from_section(files, data);
        let Some(MemberDescription::Described(extensions)) = data.map(|data| data.member("extensions"))
        else {
            return Self::default();
        };
        let insights = match extensions.member("insights") {
            MemberDescription::Described(insights) => insights.items(),
            other => other,
        };
        let insights = match &insights {
            MemberDescription::Described(insight) => DeclaredMembers::at(insight),
            _ => DeclaredMembers::default(),
        };
        Self {
            may_be_null: extensions.may_be(&Value::Null),
            extensions: DeclaredMembers::at(&extensions),
            insights,
        }
    }
}

impl Contract {
    /// Compiles the sections. The error lists every problem in the files.
    pub fn compile(files: &SchemaFiles, layout: &Layout) -> Result<Self, Vec<SchemaProblem>> {
        let mut problems = limits::problems(files);
        if !problems.is_empty() {
            return Err(problems);
        }
        // From here on, every reference is a pointer, even if the author used an `$id`.
        let pointed = ids::resolve_ids(files);
        problems.extend(refs::problems(&pointed));
        let places = SchemaPlaces::find(&pointed, layout, &mut problems);
        let Some(places) = places.filter(|_| problems.is_empty()) else { return Err(problems) };
        let Cow::Owned(core) = dialect::core(&pointed) else {
            return Self::from_core(&pointed, layout, &places);
        };
        problems.extend(dialect::problems(files, places.all()));
        if !problems.is_empty() {
            return Err(problems);
        }
        let places = SchemaPlaces::find(&core, layout, &mut problems);
        let contract = match places.filter(|_| problems.is_empty()) {
            Some(places) => Self::from_core(&core, layout, &places),
            None => Err(problems),
        };
        let mut contract = contract.map_err(|problems| dialect::relocate_problems(problems, &pointed))?;
        contract.data.written = find(&pointed, &contract.data.place).cloned();
        contract.written = pointed.get(SCHEMA_FILE).cloned();
        Ok(contract)
    }

    fn from_core(
        files: &SchemaFiles,
        layout: &Layout,
        places: &SchemaPlaces,
    ) -> Result<Self, Vec<SchemaProblem>> {
        let effort = effort(files, places).map_err(|problem| vec![problem])?;
        let (prepared, _) = prepare(files, &layout.unknown_tag, extensible::CustomBranchUse::Bounded);
        let compiler = SchemaCompiler::new(prepared, effort)?;
        let section = |place: &SectionRef| compiler.section(place, files);
        let optional = |place: &Option<SectionRef>| place.as_ref().map(section).transpose();
        let closed_data = if layout.strict_enums {
            let (closed, found) = prepare(files, &layout.unknown_tag, extensible::CustomBranchUse::Removed);
            found.then(|| SchemaCompiler::new(closed, effort)?.section(&places.data, files)).transpose()?
        } else {
            None
        };
        Ok(Self {
            input: section(&places.input)?,
            data: section(&places.data)?,
            meta: optional(&places.meta)?,
            error: optional(&places.error)?,
            closed_data,
            context: ContextSchemas {
                sections: places.context.iter().map(section).collect::<Result<_, _>>()?,
                of_input: context::kinds_of(files, &places.input),
            },
            overflow: OverflowMembers::find(files, &places.data),
            root: files.get(SCHEMA_FILE).cloned().unwrap_or(Value::Null),
            written: None,
            plan: OnceLock::new(),
        })
    }

    /// The input section.
    #[must_use]
    pub fn input(&self) -> &Section {
        &self.input
    }

    /// The section for the data of a successful result.
    #[must_use]
    pub fn data(&self) -> &Section {
        &self.data
    }

    /// The module's own control plane, if it declares one.
    #[must_use]
    pub fn meta(&self) -> Option<&Section> {
        self.meta.as_ref()
    }

    /// The module's own errors, if it declares them.
    #[must_use]
    pub fn error(&self) -> Option<&Section> {
        self.error.as_ref()
    }

    /// The schema of context at a location, in the notation of the manifest.
    #[must_use]
    pub fn context(&self, place: &str) -> Option<&Section> {
        let place = SectionRef::parse(place);
        self.context.sections.iter().find(|section| section.place == place)
    }

    /// The types of context that the input schema names below `_context`; `None` if it does not mention `_context`.
    #[must_use]
    pub fn context_kinds(&self) -> Option<&BTreeSet<String>> {
        self.context.of_input.as_ref()
    }

    /// The members that are declared below `extensions`.
    #[must_use]
    pub fn overflow(&self) -> &OverflowMembers {
        &self.overflow
    }

    /// All of `schema.json` in Draft-07, for readers of [`Section::schema`] that follow references.
    #[must_use]
    pub fn root(&self) -> &Value {
        &self.root
    }

    /// All of `schema.json` as its author wrote it.
    #[must_use]
    pub fn source(&self) -> &Value {
        self.written.as_ref().unwrap_or(&self.root)
    }

    /// The rules that can be checked before the data is complete. Built on first use.
    #[must_use]
    pub fn plan(&self) -> &PrefixRules {
        self.plan.get_or_init(|| PrefixRules::for_data(self))
    }

    /// Custom enum values in `data` that a strict module refuses although its schema would admit them.
    #[must_use]
    pub fn refused_custom_values(&self, data: &Value) -> Vec<SchemaViolation> {
        self.closed_data.as_ref().map_or_else(Vec::new, |closed| closed.violations(data))
    }
}

/// The cost of the patterns in the files. Fails if a value could stall the validator.
fn effort(files: &SchemaFiles, places: &SchemaPlaces) -> Result<Effort, SchemaProblem> {
    let graph = SchemaGraph::read(files)?;
    if let Some(place) =
        places.all().find(|place| find(files, place).is_some_and(|schema| !graph.holds(schema)))
    {
        return Err(SchemaProblem::new(&place.file, &place.pointer, "a section must be a schema"));
    }
    let measured = || {
        let effort = keywords::check(&graph)?;
        let order = JudgeOrder::find(&graph)?;
        recursion::check(&graph, &order)?;
        stack::check(&graph, &order)?;
        Ok(effort)
    };
    measured().map_err(|trouble| graph.problem(files, trouble))
}

struct SchemaPlaces {
    input: SectionRef,
    data: SectionRef,
    meta: Option<SectionRef>,
    error: Option<SectionRef>,
    context: Vec<SectionRef>,
}

impl SchemaPlaces {
    fn all(&self) -> impl Iterator<Item = &SectionRef> {
        [&self.input, &self.data].into_iter().chain(&self.meta).chain(&self.error).chain(&self.context)
    }

    fn find(files: &SchemaFiles, layout: &Layout, problems: &mut Vec<SchemaProblem>) -> Option<Self> {
        let Some(Value::Object(root)) = files.get(SCHEMA_FILE) else {
            problems.push(SchemaProblem::new(SCHEMA_FILE, "", "expected a JSON object"));
            return None;
        };
        let data_names = if layout.prefer_output { ["output", "data"] } else { ["data", "output"] };
        let mut place = |explicit: &Option<SectionRef>, names: &[&str]| match explicit {
            Some(place) if exists(files, place) => Some(place.clone()),
            // `io` may name the usual location of a section that the author left out on purpose.
            Some(place) if !is_usual_place(place, names) => {
                let name = names.first().copied().unwrap_or_default();
                let message = format!("`io.{name}` points to nothing: `{}#{}`", place.file, place.pointer);
                problems.push(SchemaProblem::new(&place.file, "", message));
                None
            }
            _ => first(root, names),
        };
        let input = place(&layout.input, &["input"]);
        let data = place(&layout.data, &data_names);
        let meta = place(&layout.meta, &["meta"]);
        let error = place(&layout.error, &["error"]);
        for (section, explicit, names) in
            [(&input, &layout.input, &["input"][..]), (&data, &layout.data, &data_names[..])]
        {
            let reported =
                explicit.as_ref().is_some_and(|place| !exists(files, place) && !is_usual_place(place, names));
            if section.is_none() && !reported {
                let message = format!("section `{}` is missing", names.join("` or `"));
                problems.push(SchemaProblem::new(SCHEMA_FILE, "", message));
            }
        }
        let context = context::places(files, layout, problems);
        Some(Self { input: input?, data: data?, meta, error, context })
    }
}

/// Returns whether a location is the usual one of a section with one of these names.
fn is_usual_place(place: &SectionRef, names: &[&str]) -> bool {
    names.iter().any(|name| *place == SectionRef::in_schema_file(name))
}

fn exists(files: &SchemaFiles, place: &SectionRef) -> bool {
    find(files, place).is_some()
}

fn find<'a>(files: &'a SchemaFiles, place: &SectionRef) -> Option<&'a Value> {
    files.get(&place.file).and_then(|root| root.pointer(&place.pointer))
}

fn first(root: &Map<String, Value>, names: &[&str]) -> Option<SectionRef> {
    names.iter().find(|name| root.contains_key(**name)).map(|name| SectionRef::in_schema_file(name))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod hostile;

#[cfg(test)]
mod hostile_values;
