//! Two sources of one option: the more specific one wins, and another party only tightens limits. (D-33)

use cognitive_testkit::OptionCase;
use serde_json::{Value, json};

use super::run_options::{Seen, Setup, ask};
use super::surfaces::{CLIENTS, Surface};
use super::table::Table;

const COMMANDS: [Surface; 5] =
    [Surface::Run, Surface::RunStream, Surface::TestLive, Surface::Eval, Surface::Batch];
const SERVERS: [Surface; 4] =
    [Surface::ServeSync, Surface::ServeEvents, Surface::ServeLines, Surface::ServeSocket];
const AGENTS: [Surface; 2] = [Surface::McpStdio, Surface::McpHttp];

/// Expects the option of the case to be in effect, or not to be.
fn expect(seen: &Seen, case: &OptionCase, surface: Surface, is_in_effect: bool) -> Result<bool, String> {
    match seen.honours(case, surface) {
        Ok(false) => Ok(false),
        honoured if honoured.is_ok() == is_in_effect => Ok(true),
        _ => Err(seen.to_string()),
    }
}

/// The sources of a seed, the most specific one first; each is set with its value.
fn sources(surface: Surface) -> Vec<&'static str> {
    if COMMANDS.contains(&surface) {
        ["flag", "module", "project", "user"].to_vec()
    } else if SERVERS.contains(&surface) || surface == Surface::TypeScript {
        ["request", "module", "flag", "project", "user"].to_vec()
    } else if AGENTS.contains(&surface) {
        ["module", "flag", "project", "user"].to_vec()
    } else if surface == Surface::Python {
        ["request", "module", "project", "user"].to_vec()
    } else {
        ["request", "module", "flag", "user"].to_vec()
    }
}

/// Sets the seed 7 in one source and 8 in another.
fn seeds(first: &'static str, second: &'static str) -> Setup<'static> {
    let mut setup = Setup::default();
    for (source, seed, flag) in [(second, 8, "--seed=8"), (first, 7, "--seed=7")] {
        match source {
            "flag" => setup.flags = vec![flag],
            "request" => setup.options = json!({ "seed": seed }),
            "project" => setup.project = json!({ "seed": seed }),
            "module" => setup.user["modules"] = json!({ "words": { "seed": seed } }),
            _ => setup.user["seed"] = json!(seed),
        }
    }
    setup
}

// D-33
#[test]
fn the_more_specific_source_of_an_option_wins_on_every_surface() {
    let case = OptionCase::from_name("seed");
    let mut table = Table::new("order of sources");
    for surface in Surface::ALL.into_iter().chain(CLIENTS) {
        for pair in sources(surface).windows(2) {
            let (first, second, case) = (pair[0], pair[1], &case);
            table.cell(format!("{first} over {second} on {surface:?}"), move || {
                expect(&ask(case, surface, "words", &seeds(first, second)), case, surface, true)
            });
        }
    }
    table.run();
}

// A switch that a file turns on can be turned off for one run.
#[test]
fn a_flag_and_a_request_turn_a_switch_off() {
    let cases = ["receipt", "no_cache", "strict_parse", "early_stop"].map(OptionCase::from_name);
    let mut table = Table::new("switches that are turned off");
    for case in &cases {
        // Without an early stop only the time limit ends the call.
        let on = json!({ case.name: true, "timeout": 1 });
        let own = json!({ "modules": { "words": on.clone() } });
        for surface in COMMANDS.into_iter().filter(|surface| case.name != "no_cache" || surface.has_cache()) {
            let flag = format!("--{}=false", case.name.replace('_', "-"));
            let user = own.clone();
            table.cell(format!("{flag} on {surface:?}"), move || {
                let setup = Setup { user, flags: vec![&flag], ..Setup::default() };
                expect(&ask(case, surface, "words", &setup), case, surface, false)
            });
        }
        for surface in SERVERS.into_iter().chain(CLIENTS) {
            // Strict parsing is a limit of the operator, which a caller of a server cannot loosen.
            let is_limit =
                case.name == "strict_parse" && ![Surface::Library, Surface::Python].contains(&surface);
            let user = on.clone();
            table.cell(format!("{} false by request on {surface:?}", case.name), move || {
                let setup = Setup { user, options: json!({ case.name: false }), ..Setup::default() };
                expect(&ask(case, surface, "words", &setup), case, surface, is_limit)
            });
        }
    }
    table.run();
}

/// Limits, each with a value that is looser than the one of its case.
fn limits() -> [(&'static str, Value); 4] {
    [
        ("max_calls", json!(50)),
        ("max_cost", json!(50)),
        ("max_output_tokens", json!(900)),
        ("timeout", json!(3_600)),
    ]
}

// A project is another party: without trust it loosens no limit of the user.
#[test]
fn a_project_loosens_a_limit_only_with_trust() {
    let mut table = Table::new("trust");
    for (name, looser) in limits().into_iter().chain([("strict_parse", json!(false))]) {
        let case = OptionCase::from_name(name);
        for (surface, is_trusted) in Surface::ALL
            .into_iter()
            .chain([Surface::Python, Surface::TypeScript])
            .flat_map(|surface| [(surface, false), (surface, true)])
        {
            // Its service falls silent: with a longer limit, the run would not end.
            if name == "timeout" && is_trusted {
                continue;
            }
            for project in [json!({ name: looser }), json!({ "modules": { "words": { name: looser } } })] {
                let case = case.clone();
                table.cell(format!("{project}, trusted: {is_trusted}, on {surface:?}"), move || {
                    let environment = if is_trusted { vec![("COGN_TRUST_PROJECT", "1")] } else { Vec::new() };
                    let user = json!({ case.name: case.value });
                    let setup = Setup { user, project, environment, ..Setup::default() };
                    expect(&ask(&case, surface, "words", &setup), &case, surface, !is_trusted)
                });
            }
        }
    }
    table.run();
}

// A caller of a server tightens the limits of the operator and loosens none, however the operator set them.
#[test]
fn a_request_loosens_no_limit_of_the_operator() {
    let mut table = Table::new("limits of the operator");
    for (name, looser) in limits().into_iter().chain([("strict_parse", json!(false))]) {
        let case = OptionCase::from_name(name);
        for surface in SERVERS.into_iter().chain([Surface::TypeScript]) {
            for way in ["flag", "file", "module"] {
                let (case, options) = (case.clone(), json!({ name: looser }));
                table.cell(format!("{options} over {way} on {surface:?}"), move || {
                    let mut setup = Setup { options, ..Setup::default() };
                    match way {
                        "flag" => setup.flags = case.flag.to_vec(),
                        "file" => setup.user = json!({ case.name: case.value }),
                        _ => setup.user = json!({ "modules": { "words": { case.name: case.value } } }),
                    }
                    expect(&ask(&case, surface, "words", &setup), &case, surface, true)
                });
            }
        }
    }
    table.run();
}
