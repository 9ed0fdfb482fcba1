//! `cogn list`: the modules that can be run by name.
//! Reads manifests only; a broken module is marked, and `cogn validate` shows the reasons.

use std::num::NonZeroUsize;
use std::thread;

use cognitive_contract::text::cut;
use cognitive_library::{FoundModule, Library, ModuleOrigin, formats};
use serde::Serialize;
use serde_json::Value;

use crate::printer::{BAD, Exit, FAINT, NOTE, Printer};
use crate::text_table::TextTable;

/// Options of `list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct ListRow {
    name: String,
    version: Option<String>,
    tier: Option<String>,
    format: Option<String>,
    origin: ModuleOrigin,
    /// The other places that have a module with this name, which this one shadows.
    hides: Vec<ModuleOrigin>,
    path: Option<String>,
    responsibility: Option<String>,
    valid: bool,
}

/// Prints the list.
pub fn list(args: &ListArgs, library: &Library, printer: &Printer) -> Exit {
    let mut found = library.list();
    // User modules come first; within each group the order of names stays.
    found.sort_by_key(|found| found.origin == ModuleOrigin::Bundled);
    let rows = read_all(&found);
    if args.json {
        printer.json(&rows);
        return Exit::Good;
    }
    let table =
        TextTable::new(["NAME", "VERSION", "TIER", "FROM", "RESPONSIBILITY"]).optional_columns(&[1, 2, 3]);
    printer.table(&table.with(rows.iter().map(cells)));
    if rows.iter().any(|row| !row.valid) {
        printer.warning("some modules are broken; `cogn validate NAME` shows the findings");
    }
    Exit::Good
}

/// Reads the manifests in parallel, because they are independent.
fn read_all(found: &[FoundModule]) -> Vec<ListRow> {
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(8);
    let share = found.len().div_ceil(workers).max(1);
    thread::scope(|scope| {
        let read_part = |part: &[FoundModule]| part.iter().map(read).collect::<Vec<_>>();
        let start = |part| thread::Builder::new().spawn_scoped(scope, move || read_part(part));
        let parts: Vec<_> = found.chunks(share).map(|part| (part, start(part))).collect();
        // If no thread can be started, this one does the work.
        let parts = parts.into_iter().map(|(part, started)| match started {
            Ok(thread) => thread.join().unwrap_or_default(),
            Err(_) => read_part(part),
        });
        parts.flatten().collect()
    })
}

fn read(found: &FoundModule) -> ListRow {
    let manifest = formats::read_manifest(&found.folder);
    let field = |name: &str| manifest.as_ref()?.1.get(name).and_then(Value::as_str).map(str::to_owned);
    let valid = manifest
        .as_ref()
        .is_some_and(|(_, manifest)| cognitive_contract::manifest::violations(manifest).is_empty());
    ListRow {
        name: found.name.clone(),
        version: field("version"),
        tier: field("tier"),
        format: manifest.as_ref().map(|(format, _)| format.to_string()),
        origin: found.origin,
        hides: found.hides.clone(),
        path: found.folder.path().map(|path| path.display().to_string()),
        responsibility: field("responsibility"),
        valid,
    }
}

fn cells(row: &ListRow) -> Vec<String> {
    // One very long field must not push the others off the screen.
    let text = |value: &Option<String>| value.as_deref().map_or("-", |value| cut(value, 200)).to_owned();
    let mut origin = row.origin.word().to_owned();
    if !row.hides.is_empty() {
        let hides: Vec<&str> = row.hides.iter().map(|origin| origin.word()).collect();
        origin = format!("{origin}, shadows {}", hides.join(", "));
    }
    let what = if row.valid { text(&row.responsibility) } else { format!("{BAD}broken{BAD:#}") };
    vec![
        format!("{NOTE}{}{NOTE:#}", row.name),
        text(&row.version),
        text(&row.tier),
        format!("{FAINT}{origin}{FAINT:#}"),
        what,
    ]
}
