//! Every run option on the surface of Restate, by every way to set it: the request, the files of user and project, the configuration
//! of the module, also for a part. The worker starts as users start it, and the test takes the place of the Restate server. A cell is
//! judged by what the model service received or by the envelope. (D-27, D-33)

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "in a test, a panic is the report, and each table prints its number of cells"
)]

mod protocol;

use cognitive_testkit::{Home, OptionCase, TestServer};
use serde_json::{Value, json};

/// The option that is set in a cell.
#[derive(Default, Clone)]
struct Setup {
    user: Value,
    project: Value,
    options: Value,
    is_trusted: bool,
}

/// Runs a module as often as the case needs; returns a complaint unless the option is in effect as expected.
fn cell(case: &OptionCase, module: &str, setup: &Setup, is_in_effect: bool) -> Result<(), String> {
    let (service, home) = (case.service(), Home::new(env!("CARGO_BIN_EXE_cogn-restate")));
    case.write_modules(&home);
    let is_bounded = case.name != "timeout" || !setup.user.is_null();
    // Below a limit of a day, an ignored time limit never ends the run: the default of a minute would look the same.
    home.user_config(&if is_bounded { setup.user.to_string() } else { "timeout: 86400\n".to_owned() });
    if !setup.project.is_null() {
        home.project_config(&setup.project.to_string());
    }
    let url = service.url();
    let mut environment = vec![("OPENAI_API_KEY", "sk-test-test-test"), ("OPENAI_BASE_URL", url.as_str())];
    if setup.is_trusted {
        environment.push(("COGN_TRUST_PROJECT", "1"));
    }
    let mut command = home.command(&["--listen", "127.0.0.1:0"], &environment);
    let worker = TestServer::try_spawn(&mut command).map_err(|ended| format!("{ended:?}"))?;
    let mut input = json!({});
    if !setup.options.is_null() {
        input["_options"] = setup.options.clone();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut envelope = Value::Null;
    for _ in 0..case.runs() {
        let path = format!("{module}/run");
        envelope = runtime.block_on(protocol::invoke(&worker.address, &path, "one", &input));
    }
    let requests = service.requests();
    let text = envelope.to_string();
    // The failure of a part is reported in the words of its composition.
    let has_failed = |word: &str| module == "chain" && envelope["ok"] != true && text.contains(word);
    let of_part = match case.name {
        "max_calls" => has_failed("E4100"),
        "max_cost" => has_failed("E4101"),
        "timeout" => has_failed("E2002"),
        "strict_parse" => has_failed("E1000"),
        "early_stop" => has_failed("E3001"),
        _ => false,
    };
    if (of_part || case.is_honoured(&requests, &envelope)) == is_in_effect {
        return Ok(());
    }
    Err(format!("{}: {} requests, {envelope}", case.name, requests.len()))
}

/// Runs the cells of each case in a thread of its own, prints their number and reports the failed ones.
fn run(name: &str, cells: impl Fn(&OptionCase) -> Vec<(String, Result<(), String>)> + Sync) {
    let (cases, cells) = (OptionCase::all(), &cells);
    let results: Vec<(String, Result<(), String>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = cases.iter().map(|case| scope.spawn(move || cells(case))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let failed: Vec<_> = results.iter().filter(|(_, result)| result.is_err()).collect();
    println!("{name}: {} cells, {} failed", results.len(), failed.len());
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn every_way_sets_an_option() {
    run("options of a run", |case| {
        let top = json!({ case.name: case.value });
        let of = |module: &str| json!({ "modules": { module: top } });
        let user = |user: Value| Setup { user, ..Setup::default() };
        let project = |project: Value| Setup { project, ..Setup::default() };
        let mut ways = vec![
            ("request", "words", Setup { options: top.clone(), ..Setup::default() }),
            ("user file", "words", user(top.clone())),
            ("entry of the user", "words", user(of("words"))),
            ("project file", "words", project(top.clone())),
            ("entry of the project", "words", project(of("words"))),
            ("request", "chain", Setup { options: top.clone(), ..Setup::default() }),
            ("entry of the run above", "chain", user(of("chain"))),
        ];
        // A receipt and the number of calls concern the whole run.
        if !["receipt", "max_calls"].contains(&case.name) {
            ways.push(("entry of the part", "chain", user(of("words"))));
        }
        let cells = ways.into_iter().map(|(way, module, setup)| {
            (format!("{} of {module} by {way}", case.name), cell(case, module, &setup, true))
        });
        cells.collect()
    });
}

// The seed stands for all: one rule merges them.
#[test]
fn the_more_specific_source_wins_and_a_caller_loosens_no_limit() {
    run("order of sources", |case| {
        let top = json!({ case.name: case.value });
        let looser = match case.name {
            "max_calls" | "max_cost" => json!(50),
            "max_output_tokens" => json!(900),
            "strict_parse" => json!(false),
            _ => Value::Null,
        };
        let mut cells = Vec::new();
        if !looser.is_null() {
            let looser = json!({ case.name: looser });
            let setup = Setup { user: top.clone(), options: looser.clone(), ..Setup::default() };
            cells.push((format!("{looser} by request"), cell(case, "words", &setup, true)));
            for is_trusted in [false, true] {
                let setup =
                    Setup { user: top.clone(), project: looser.clone(), is_trusted, ..Setup::default() };
                let name = format!("{looser} by a project, trusted: {is_trusted}");
                cells.push((name, cell(case, "words", &setup, !is_trusted)));
            }
        }
        if case.name == "seed" {
            let own = json!({ "modules": { "words": { "seed": 8 } } });
            let over_module = Setup { user: own, options: top.clone(), ..Setup::default() };
            cells.push(("request over module".to_owned(), cell(case, "words", &over_module, true)));
            let over_file =
                Setup { user: json!({ "seed": 8, "modules": { "words": top } }), ..Setup::default() };
            cells.push(("module over file".to_owned(), cell(case, "words", &over_file, true)));
        }
        cells
    });
}

#[test]
fn an_option_that_does_not_exist_is_refused() {
    run("refusals", |case| {
        let mut cells = Vec::new();
        for (name, value) in [("reaks", json!(1)), ("schemas", json!(false)), (case.name, json!([]))] {
            let setup = Setup { options: json!({ name: value }), ..Setup::default() };
            let result = cell(case, "words", &setup, true);
            let said = result.err().unwrap_or_default();
            let is_refused = said.contains("E1001") && said.contains(": 0 requests");
            let named = format!("{name} by request");
            cells.push((named, if is_refused { Ok(()) } else { Err(said) }));
        }
        let setup = Setup { user: json!({ "reaks": 1 }), ..Setup::default() };
        let said = cell(case, "words", &setup, true).err().unwrap_or_default();
        let is_refused = said.contains("unknown setting `reaks`");
        cells.push(("reaks in a file".to_owned(), if is_refused { Ok(()) } else { Err(said) }));
        cells
    });
}

#[test]
fn without_its_option_a_cell_is_seen_to_fail() {
    run("no option", |case| {
        // The service of the others falls silent, so a run without these options would not end.
        // A service keeps no answers between invocations, so it always asks again.
        let ends = case.ends_by_itself() && case.name != "no_cache";
        let seen = ends.then(|| (case.name.to_owned(), cell(case, "words", &Setup::default(), false)));
        seen.into_iter().collect()
    });
}
