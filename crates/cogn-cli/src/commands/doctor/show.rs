//! Prints the report for users: the important parts first, unconfigured parts only on request, and the next steps at
//! the end.

use std::path::Path;

use cognitive_setup::settings::EMBEDDED;
use cognitive_setup::weights::{SMOLLM2, megabytes};
use serde_json::Value;

use super::origins::SettingState;
use super::{Health, ProviderState};
use crate::printer::{BAD, DOUBT, FAINT, GOOD, HEAD, NOTE, Printer};
use crate::text_table::TextTable;

/// Prints the report. Unconfigured parts are shown only with `all`.
pub(super) fn show(health: &Health, all: bool, printer: &Printer) {
    printer.print_line(format!("{HEAD}cogn {}{HEAD:#}", health.version));
    for problem in &health.problems {
        printer.prose(&format!("{BAD}error{BAD:#}: {problem}"));
    }
    printer.print_line("");
    printer.table(&TextTable::facts(facts(health)));
    printer.print_line("");
    let files = health.files.iter().map(|file| {
        let style = if file.good { FAINT } else { DOUBT };
        vec![path(Some(&file.path)), format!("{style}{}{style:#}", file.says)]
    });
    printer.table(&TextTable::new(["FILE", "STATE"]).with(files));
    section(&settings(health, all), printer);
    let services = providers(health, all);
    section(&services, printer);
    let hidden = health.providers.iter().filter(|provider| !is_relevant(provider, health)).count();
    if !all && hidden > 0 {
        if services.is_empty() {
            printer.print_line("");
        }
        printer
            .print_line(format!("{FAINT}{hidden} services are not configured; `--all` shows them{FAINT:#}"));
    }
    if !health.next.is_empty() {
        printer.print_line(format!("\n{HEAD}next{HEAD:#}"));
        printer.table(&TextTable::bullets(health.next.iter().cloned()).indent(2));
    }
}

/// Prints a table with an empty line before it, if it has rows.
fn section(table: &TextTable, printer: &Printer) {
    if !table.is_empty() {
        printer.print_line("");
        printer.table(table);
    }
}

fn path(path: Option<&Path>) -> String {
    path.map_or_else(|| "-".to_owned(), |path| path.display().to_string())
}

fn facts(health: &Health) -> Vec<(&'static str, String)> {
    let bundled = health.modules - health.own_modules;
    let broken = if health.broken_modules.is_empty() {
        String::new()
    } else {
        format!(", {BAD}broken{BAD:#}: {}", health.broken_modules.join(", "))
    };
    let modules =
        format!("{}: {} of your own, {bundled} bundled{broken}", health.modules, health.own_modules);
    let mut facts = vec![
        ("provider", health.chosen_provider.unwrap_or("not decided").to_owned()),
        ("model", health.model.clone().unwrap_or_else(|| "-".to_owned())),
        ("embedded", format!("{} ({})", path(health.embedded.path.as_deref()), health.embedded.says)),
        ("modules", modules),
    ];
    for module in &health.hiding_modules {
        let hides: Vec<&str> = module.hides.iter().map(|origin| origin.word()).collect();
        facts.push(("", format!("{NOTE}{}{NOTE:#} shadows the one of: {}", module.name, hides.join(", "))));
    }
    facts.push(("audit", format!("{} ({})", path(health.store.path.as_deref()), health.store.says)));
    facts
}

/// Returns the settings that were changed, with their origins.
fn settings(health: &Health, all: bool) -> TextTable {
    let is_told = |state: &&SettingState| all || state.from != "default" || state.not_trusted.is_some();
    let row = |state: &SettingState| {
        let value = match &state.value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let from = state.variable.map_or_else(|| state.from.to_owned(), |variable| format!("`{variable}`"));
        let held = state.not_trusted.as_ref().map_or_else(String::new, |value| {
            format!("{DOUBT}not trusted{DOUBT:#}: {value} (see `cogn trust`)")
        });
        vec![format!("{NOTE}{}{NOTE:#}", state.setting), value, format!("{FAINT}{from}{FAINT:#}"), held]
    };
    TextTable::new(["SETTING", "VALUE", "FROM", ""]).with(health.settings.iter().filter(is_told).map(row))
}

/// Returns whether to show a provider to a user who did not ask for all of them.
fn is_relevant(provider: &ProviderState, health: &Health) -> bool {
    provider.configured || provider.says.is_some() || health.chosen_provider == Some(provider.name)
}

fn providers(health: &Health, all: bool) -> TextTable {
    let row = |provider: &ProviderState| {
        let state = match (&provider.says, provider.configured, provider.live) {
            (Some(says), ..) => format!("{BAD}{says}{BAD:#}"),
            (None, _, Some(_)) => format!("{GOOD}answers{GOOD:#}"),
            (None, true, None) => format!("{GOOD}configured{GOOD:#}"),
            (None, false, None) => format!("{FAINT}not configured{FAINT:#}"),
        };
        let text = |value: Option<&str>| value.unwrap_or("-").to_owned();
        vec![provider.name.to_owned(), state, text(provider.key), text(provider.address.as_deref())]
    };
    let told = health.providers.iter().filter(|provider| all || is_relevant(provider, health));
    TextTable::new(["PROVIDER", "STATE", "KEY", "ADDRESS"])
        .prose(1)
        .optional_columns(&[3])
        .with(told.map(row))
}

/// Returns the variable of the key that the chosen service needs and does not have.
fn missing_key(health: &Health) -> Option<&'static str> {
    let chosen = health.providers.iter().find(|provider| Some(provider.name) == health.chosen_provider)?;
    chosen.key.filter(|_| !chosen.configured)
}

/// Returns the next steps, the most important first.
pub(super) fn next(health: &Health, live: bool) -> Vec<String> {
    let mut next = Vec::new();
    if !health.problems.is_empty() {
        next.push(
            "Correct the errors above; until then these settings are ignored, and runs fail".to_owned(),
        );
    }
    if health.project_file.as_ref().is_some_and(|file| !file.trusted) {
        next.push("`cogn trust` shows the settings of the project's file, and trusts it".to_owned());
    }
    if let Some(module) = health.broken_modules.first() {
        next.push(format!("`cogn validate {module}` shows the findings"));
    }
    if health.chosen_provider == Some(EMBEDDED) {
        if health.embedded.damaged || !health.embedded.weights {
            let known = health.embedded.known.unwrap_or(&SMOLLM2);
            let (pull, size) = (known.pull_command(), megabytes(known.length));
            next.push(format!("`{pull}` downloads the weights of the embedded model ({size})"));
        }
        next.push(
            "Set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GEMINI_API_KEY` for modules that need reasoning; the \
             embedded model only labels and copies"
                .to_owned(),
        );
    } else if let Some(key) = missing_key(health) {
        next.push(format!("Set `{key}`: the service requires a key"));
    } else if !live && health.providers.iter().any(|provider| provider.configured) {
        next.push("`cogn doctor --live` checks that the configured services respond".to_owned());
    }
    next.push(if health.own_modules == 0 {
        "`cogn init NAME` creates a module".to_owned()
    } else {
        "`cogn test` tests your modules".to_owned()
    });
    next
}
