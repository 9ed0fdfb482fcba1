//! Checks that the modules of a composition exist in a matching version, and that data can flow between them: paths
//! against the contracts of the parts, mapped members against the input of a part. Calls no model and runs nothing.
//! Never reports what a contract leaves open.

mod call_arguments;
mod flow;
mod follow;
mod needs;
mod prompt;
mod view;

use std::collections::BTreeMap;

use cognitive_contract::Module;
use cognitive_contract::compose::graph::{Graph, GraphFault, ModuleNode};
use cognitive_contract::compose::{Composition, VersionRange};
use cognitive_contract::manifest::CompositionFile;
use cognitive_schema::SchemaFiles;

use self::call_arguments::CalledModules;
use self::flow::FlowCheck;
pub(super) use self::flow::unknown_name_message;
pub(super) use self::follow::{PathEnd, UndescribedPath, follow};
pub(super) use self::view::ContractView;
use super::composition::PROMPT_FILE;
use crate::find::Library;
use crate::finding::{Finding, FindingLocation, Findings, Severity, quote};
use crate::formats;
use crate::load;

/// The composed module.
pub(super) struct ComposedModule<'a> {
    pub(super) module: &'a Module,
    pub(super) files: SchemaFiles,
    pub(super) manifest_file: &'static str,
    pub(super) library: &'a Library,
}

/// A required module that was found.
struct FoundPart {
    version: String,
    view: ContractView,
}

/// The message about a part that cannot be used.
struct UnusablePart {
    message: String,
    hint: Option<String>,
}

pub(super) fn check(mut composed: ComposedModule<'_>, found: &mut Findings) {
    let module = composed.module;
    let Ok(Some(made_of)) = module.composition() else { return };
    let file = module.manifest.composition.clone().unwrap_or_default();
    let views = requires(&composed, &file, made_of, found);
    let elsewhere = calls(&composed, made_of, found);
    check_whole(&composed, made_of, found);
    let own = ContractView::new(std::mem::take(&mut composed.files), module);
    let manifest_file = composed.manifest_file;
    FlowCheck { plan: &made_of.plan, file: &file, own: &own, parts: &views, manifest_file, found }.check();
    let view = |name: &str| match made_of.plan.part(name) {
        Some(place) => views.get(place).and_then(Option::as_ref),
        None => elsewhere.get(name),
    };
    let called = made_of.directives.calls.iter().map(|call| view(&call.module)).collect();
    CalledModules { made_of, own: &own, views: called }.check(found);
    prompt::check(made_of, &view, found);
}

/// Looks each part up and reports missing ones and wrong versions.
fn requires(
    composed: &ComposedModule<'_>,
    file: &CompositionFile,
    made_of: &Composition,
    found: &mut Findings,
) -> Vec<Option<ContractView>> {
    let mut parts = Vec::new();
    for (place, part) in made_of.plan.parts.iter().enumerate() {
        // A module that requires itself is reported as a circle.
        if part.name == composed.module.manifest.name {
            parts.push(None);
            continue;
        }
        let at = format!("/composition/requires/{place}");
        let stands_in = |name: &String| look_up(name, composed.library).is_ok();
        let can_do_without = part.optional || part.fallback.as_ref().is_some_and(stands_in);
        let severity = if can_do_without { Severity::Warning } else { Severity::Error };
        let written =
            file.requires.as_deref().and_then(|list| list.get(place)).and_then(|one| one.version.clone());
        let outcome = match look_up(&part.name, composed.library) {
            Err(trouble) => Err((format!("{at}/name"), "composition/part", trouble)),
            Ok(there) if !part.range.matches(&there.version) => {
                let range = written.unwrap_or_default();
                let trouble = other_version(&part.name, &there.version, &range);
                Err((format!("{at}/version"), "composition/version", trouble))
            }
            Ok(there) => Ok(there),
        };
        parts.push(match outcome {
            Ok(there) => Some(there.view),
            Err((at, rule, UnusablePart { message, hint })) => {
                let at = FindingLocation::Value(at);
                let finding = Finding::error(composed.manifest_file, at, rule, message);
                found.push(Finding { severity, hint, ..finding });
                None
            }
        });
    }
    parts
}

fn other_version(name: &str, version: &str, range: &str) -> UnusablePart {
    let message = format!(
        "{} is installed in version {}, but the module requires {}",
        quote(name),
        quote(version),
        quote(range)
    );
    let fits = VersionRange::parse(&format!("^{version}")).is_some_and(|range| range.matches(version));
    UnusablePart {
        message,
        hint: fits.then(|| format!("Write `version: \"^{version}\"`, or install another version")),
    }
}

/// Finds a module and reads its contract.
fn look_up(name: &str, library: &Library) -> Result<FoundPart, UnusablePart> {
    let folder = library.find(name).map_err(|failure| UnusablePart {
        message: format!("the module is not installed: {}", quote(name)),
        hint: failure.suggestion().map(str::to_owned),
    })?;
    let broken = |reason: String| UnusablePart {
        message: format!("{} cannot be loaded: {reason}", quote(name)),
        hint: Some(format!("Run `cogn validate {name}` to see every finding with its place")),
    };
    let parts = formats::read(&folder.folder).ok_or_else(|| broken("it is not a module".to_owned()))?;
    let files = parts.schemas.clone();
    let module = load::assemble(parts, name)
        .map_err(|findings| broken(findings.first().map(Finding::summary).unwrap_or_default()))?;
    Ok(FoundPart { version: module.manifest.version.clone(), view: ContractView::new(files, &module) })
}

/// Looks up the modules that the prompt calls and `requires` does not list. Reports missing ones, and returns the
/// contracts of the others.
fn calls(
    composed: &ComposedModule<'_>,
    made_of: &Composition,
    found: &mut Findings,
) -> BTreeMap<String, ContractView> {
    let mut views = BTreeMap::new();
    for call in &made_of.directives.calls {
        if made_of.plan.part(&call.module).is_some() || views.contains_key(&call.module) {
            continue;
        }
        let UnusablePart { message, hint } = match look_up(&call.module, composed.library) {
            Ok(there) => {
                views.insert(call.module.clone(), there.view);
                continue;
            }
            Err(unusable) => unusable,
        };
        let severity = if call.options.optional { Severity::Warning } else { Severity::Error };
        let at = FindingLocation::Span(call.span.clone());
        let finding = Finding::error(PROMPT_FILE, at, "composition/part", message);
        found.push(Finding { severity, hint, ..finding });
    }
    views
}

/// Reports circles, excessive depth, and missing modules further down.
fn check_whole(composed: &ComposedModule<'_>, made_of: &Composition, found: &mut Findings) {
    let ComposedModule { module, manifest_file, library, .. } = composed;
    let root = module.manifest.name.as_str();
    let mut graph = Graph::new(root);
    while let Some(name) = graph.next_unknown() {
        if name == root {
            graph.add(root, made_of.node(&module.manifest.version));
        } else if let Ok(part) = library.load(&name)
            && let Ok(below) = part.composition()
        {
            let version = &part.manifest.version;
            let alone = || ModuleNode { version: version.clone(), asks: true, ..ModuleNode::default() };
            graph.add(&name, below.map_or_else(alone, |below| below.node(version)));
        }
    }
    let Err(fault) = graph.check() else { return };
    let (rule, through) = match &fault {
        GraphFault::Circle(way) => ("composition/circle", way.get(1).cloned()),
        GraphFault::TooDeep { way, .. } => ("composition/depth", way.get(1).cloned()),
        // The missing parts of the module itself were reported one by one.
        GraphFault::Missing(absent) if absent.iter().any(|absent| absent.needed_by != root) => {
            let deep = absent.iter().find(|absent| absent.needed_by != root);
            ("composition/part", deep.map(|absent| absent.needed_by.clone()))
        }
        _ => return,
    };
    let place = through.and_then(|name| made_of.plan.part(&name));
    let at = place.map_or_else(
        || "/composition/requires".to_owned(),
        |place| format!("/composition/requires/{place}/name"),
    );
    let failure = fault.into_failure();
    let finding = Finding::error(manifest_file, FindingLocation::Value(at), rule, failure.message());
    found.push(Finding { hint: failure.suggestion().map(str::to_owned), ..finding });
}
