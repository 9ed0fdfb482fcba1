//! Options that a surface does not have, and values that an option does not take: a clear error before a model is asked, and never
//! silence. `docs/configuration.md` has the reasons. (D-27)

use std::panic::{AssertUnwindSafe, catch_unwind};

use cognitive_testkit::OptionCase;
use serde_json::{Value, json};

use super::run_options::{Setup, asked, configure};
use super::surfaces::Surface;
use super::table::Table;

const COMMANDS: [Surface; 5] =
    [Surface::Run, Surface::RunStream, Surface::TestLive, Surface::Eval, Surface::Batch];
const SERVERS: [Surface; 4] =
    [Surface::ServeSync, Surface::ServeEvents, Surface::ServeLines, Surface::ServeSocket];
const AGENTS: [Surface; 2] = [Surface::McpStdio, Surface::McpHttp];

/// Expects an error that names the option, and no request of a model. A process that ends before it answers shows its output in
/// the panic of its test.
fn refuses(surface: Surface, input: Value, setup: &Setup<'_>, name: &str) -> Result<bool, String> {
    let case = OptionCase::from_name("seed");
    let (service, home) = (case.service(), crate::home());
    case.write_modules(&home);
    configure(&home, setup);
    let run = || asked(&home, &service, surface, ("words", input.clone()), setup, 1).envelope;
    let said = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(envelope) if surface.is_missing(&envelope) => return Ok(false),
        Ok(envelope) if envelope["ok"] == true => return Err(format!("not refused: {envelope}")),
        Ok(envelope) => envelope.to_string(),
        Err(panic) => super::table::message(&*panic),
    };
    let is_clear = said.contains(name) && service.requests().is_empty();
    if is_clear { Ok(true) } else { Err(format!("{} requests, {said}", service.requests().len())) }
}

/// Names that no file has, or only below `modules`.
const NOT_IN_FILES: [&str; 6] = ["no_validate", "schemas", "enforcement", "max_tokens", "no_pull", "reaks"];

#[test]
fn a_file_with_an_unknown_option_is_refused_on_every_surface() {
    let mut table = Table::new("unknown options of files");
    for surface in Surface::ALL.into_iter().chain([Surface::Python, Surface::TypeScript]) {
        for name in NOT_IN_FILES {
            let own = json!({ "modules": { "words": { name: 1 } } });
            for (user, project) in
                [(json!({ name: 1 }), Value::Null), (Value::Null, json!({ name: 1 })), (own, Value::Null)]
            {
                table.cell(format!("{user} {project} on {surface:?}"), move || {
                    let setup = Setup { user, project, ..Setup::default() };
                    refuses(surface, json!({}), &setup, &format!("`{name}`"))
                });
            }
        }
        // It concerns a module and its parts, so it has no place for all runs.
        table.cell(format!("local_only of all on {surface:?}"), move || {
            let setup = Setup { user: json!({ "local_only": true }), ..Setup::default() };
            refuses(surface, json!({}), &setup, "`local_only`")
        });
    }
    table.run();
}

// D-27: nothing is accepted and ignored.
#[test]
fn a_request_with_an_unknown_option_is_refused() {
    let mut table = Table::new("unknown options of requests");
    // The model of a request is one of those that the operator offers, and the others are the operator's alone.
    let names = [
        "schemas",
        "no_validate",
        "enforcement",
        "local_only",
        "provider",
        "base_url",
        "api",
        "no_pull",
        "max_tokens",
        "reaks",
    ];
    // In Rust and TypeScript, the type checker finds an option that does not exist.
    for surface in SERVERS.into_iter().chain([Surface::Python]) {
        // A program in Python decides about schemas.
        let is_own = |name: &str| surface == Surface::Python && name == "schemas";
        for name in names.into_iter().filter(|name| !is_own(name)) {
            table.cell(format!("{name} on {surface:?}"), move || {
                let setup = Setup { options: json!({ name: true }), ..Setup::default() };
                refuses(surface, json!({}), &setup, name)
            });
        }
    }
    // Agents set no options of runs.
    for surface in AGENTS {
        for case in OptionCase::all() {
            table.cell(format!("{} on {surface:?}", case.name), move || {
                let input = json!({ "_options": { case.name: case.value } });
                refuses(surface, input, &Setup::default(), "`_options`")
            });
        }
    }
    table.run();
}

#[test]
fn a_value_of_a_wrong_type_is_refused() {
    let cases = OptionCase::all();
    let mut table = Table::new("wrong values");
    for case in &cases {
        let wrong = json!({ case.name: [] });
        for surface in SERVERS.into_iter().chain([Surface::Python]) {
            let setup = Setup { options: wrong.clone(), ..Setup::default() };
            table.cell(format!("{wrong} by request on {surface:?}"), move || {
                refuses(surface, json!({}), &setup, "")
            });
        }
        for surface in [Surface::Run, Surface::ServeSync, Surface::McpStdio, Surface::Batch, Surface::Python]
        {
            for (user, project) in [(wrong.clone(), Value::Null), (Value::Null, wrong.clone())] {
                let setup = Setup { user, project, ..Setup::default() };
                table.cell(format!("{wrong} in a file on {surface:?}"), move || {
                    refuses(
                        surface,
                        json!({}),
                        &setup,
                        if case.name == "max_cost" { "US dollars" } else { "invalid type" },
                    )
                });
            }
        }
        for surface in COMMANDS.into_iter().chain([Surface::ServeSync, Surface::McpStdio]) {
            table.cell(format!("{} x on {surface:?}", case.flag[0]), move || {
                let flag = format!("{}=x", case.flag[0]);
                let setup = Setup { flags: vec![&flag], ..Setup::default() };
                refuses(surface, json!({}), &setup, case.flag[0])
            });
        }
    }
    table.run();
}

/// A command, its arguments, and the text of the refusal.
type Command = (&'static str, &'static [&'static str], &'static str);

// D-27: also by commands that ask no model.
#[test]
fn a_command_refuses_the_flags_that_it_would_ignore() {
    const CASES: [&str; 2] = ["--cases", "cases.jsonl"];
    let commands: [Command; 4] = [
        // It replays recorded replies.
        ("test", &["words"], "without `--live` or `--record`"),
        // It grades by recorded replies.
        ("verify", &["words"], "unexpected argument"),
        // It shows the parts of a module.
        ("compose", &["plan", "chain"], "without `--cost`"),
        // It learns from cases and runs no module; its time limit is that of a download.
        ("train", &["words", CASES[0], CASES[1]], "unexpected argument"),
    ];
    let models: [&[&str]; 5] = [
        &["--provider", "openai"],
        &["--model", "m"],
        &["--base-url", "http://127.0.0.1:9"],
        &["--api", "chat"],
        &["--no-pull"],
    ];
    let cases = OptionCase::all();
    let mut table = Table::new("flags of other commands");
    for (command, args, said) in commands {
        let flags = cases.iter().map(|case| case.flag).chain(models);
        // Training asks the model that its flags name.
        let has = |flag: &str| {
            command == "train" && ["--timeout", "--provider", "--model", "--no-pull"].contains(&flag)
        };
        for flag in flags.filter(|flag| !has(flag[0])) {
            table.cell(format!("{command} {}", flag[0]), move || {
                let home = crate::home();
                OptionCase::from_name("seed").write_modules(&home);
                home.write("cases.jsonl", "{\"input\": {}, \"expect\": {\"ok\": true}}\n");
                let output = home.run(&[&[command], args, flag].concat(), &[], "");
                let is_refused = output.code == Some(2) && output.err.contains(said);
                if is_refused { Ok(true) } else { Err(format!("{output:?}")) }
            });
        }
    }
    for surface in [Surface::TestLive, Surface::Eval, Surface::Batch, Surface::ServeSync, Surface::McpStdio] {
        // Remote callers and measurements always get the contract of the module.
        table.cell(format!("--no-validate on {surface:?}"), move || {
            let setup = Setup { flags: vec!["--no-validate"], ..Setup::default() };
            refuses(surface, json!({}), &setup, "")
        });
    }
    table.run();
}

#[test]
fn the_table_has_every_option_of_a_run() {
    let names: Vec<&str> = OptionCase::all().iter().map(|case| case.name).collect();
    let mut known = cognitive_contract::RunSettings::NAMES;
    assert_eq!(names.len(), known.len());
    known.sort_unstable();
    assert!(known.iter().all(|name| names.contains(name)), "{known:?}");
}
