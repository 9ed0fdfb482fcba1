//! The options of all runs, by every way to set them: a flag, the files of user and project, the configuration of the module, the
//! request. (D-27, D-33)

use cognitive_testkit::{FakeModel, FakeRequest, Home, OptionCase};
use serde_json::{Value, json};

use super::surfaces::{Ask, CLIENTS, Surface};
use super::table::Table;

/// A way to set an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Flag,
    UserFile,
    /// The entry of the module in the user's file.
    UserModule,
    ProjectFile,
    ProjectModule,
    Request,
}

impl Way {
    const ALL: [Self; 6] =
        [Self::Flag, Self::UserFile, Self::UserModule, Self::ProjectFile, Self::ProjectModule, Self::Request];

    /// Returns whether a surface has it; `refusals` has the others.
    fn is_there(self, surface: Surface) -> bool {
        match (self, surface) {
            // A program gives the library one configuration, and no file of a project.
            (Self::Flag, Surface::Python) | (Self::ProjectFile | Self::ProjectModule, Surface::Library) => {
                false
            }
            (Self::Request, surface) => surface.has_requests(),
            _ => true,
        }
    }
}

/// Everything that is set in a cell.
#[derive(Default, Clone)]
pub(super) struct Setup<'a> {
    pub(super) user: Value,
    pub(super) project: Value,
    pub(super) flags: Vec<&'a str>,
    pub(super) options: Value,
    pub(super) environment: Vec<(&'a str, &'a str)>,
}

impl Setup<'_> {
    /// Sets an option by one way.
    pub(super) fn by(way: Way, case: &OptionCase, module: &str) -> Self {
        let top = json!({ case.name: case.value });
        let own = json!({ "modules": { module: top } });
        let mut setup = Self::default();
        match way {
            Way::Flag => setup.flags = case.flag.to_vec(),
            Way::UserFile => setup.user = top,
            Way::UserModule => setup.user = own,
            Way::ProjectFile => setup.project = top,
            Way::ProjectModule => setup.project = own,
            Way::Request => setup.options = top,
        }
        // Below a limit of a day, an ignored time limit never ends the run: the default of a minute would look the same.
        if case.name == "timeout" && setup.user.is_null() {
            setup.user = json!({ "timeout": 86_400 });
        }
        setup
    }
}

/// The requests of the service and the last envelope of a cell.
pub(super) struct Seen {
    pub(super) requests: Vec<FakeRequest>,
    pub(super) envelope: Value,
}

impl Seen {
    /// Returns whether the option was honoured; `Ok(false)` if the surface is not on this machine.
    pub(super) fn honours(&self, case: &OptionCase, surface: Surface) -> Result<bool, String> {
        if surface.is_missing(&self.envelope) {
            return Ok(false);
        }
        let is_honoured = case.is_honoured(&self.requests, &self.envelope)
            || surface == Surface::Batch && limits_the_batch(case, self);
        if is_honoured { Ok(true) } else { Err(self.to_string()) }
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} requests, {}", self.requests.len(), self.envelope)
    }
}

/// A batch whose rows would fail or cost too much stops before its first row and says so. (`docs/batch.md`)
fn limits_the_batch(case: &OptionCase, seen: &Seen) -> bool {
    let summary = seen.envelope.as_str().unwrap_or_default();
    case.name == "max_cost" && seen.requests.is_empty() && summary.contains("stopped")
}

/// Runs a module on a surface as often as the case needs.
pub(super) fn ask(case: &OptionCase, surface: Surface, module: &str, setup: &Setup<'_>) -> Seen {
    let service = case.service();
    let home = crate::home();
    case.write_modules(&home);
    configure(&home, setup);
    asked(&home, &service, surface, (module, json!({})), setup, case.runs())
}

pub(super) fn configure(home: &Home, setup: &Setup<'_>) {
    if !setup.user.is_null() {
        home.user_config(&setup.user.to_string());
    }
    if !setup.project.is_null() {
        home.project_config(&setup.project.to_string());
    }
}

pub(super) fn asked(
    home: &Home,
    service: &FakeModel,
    surface: Surface,
    (module, input): (&str, Value),
    setup: &Setup<'_>,
    times: usize,
) -> Seen {
    let url = service.url();
    let mut environment = vec![("OPENAI_API_KEY", "sk-test-test-test"), ("OPENAI_BASE_URL", url.as_str())];
    environment.extend(&setup.environment);
    let (flags, options) = (&setup.flags[..], setup.options.clone());
    let ask = Ask { module, input, environment: &environment, flags, options };
    let mut envelope = Value::Null;
    for _ in 0..times {
        envelope = surface.envelope(home, &ask);
    }
    Seen { requests: service.requests(), envelope }
}

#[test]
fn every_way_sets_an_option_on_every_surface() {
    let cases = OptionCase::all();
    let mut table = Table::new("options of a run");
    for case in &cases {
        for surface in Surface::ALL.into_iter().chain(CLIENTS) {
            for way in Way::ALL.into_iter().filter(|way| way.is_there(surface)) {
                table.cell(format!("{} by {way:?} on {surface:?}", case.name), move || {
                    ask(case, surface, "words", &Setup::by(way, case, "words")).honours(case, surface)
                });
            }
        }
    }
    table.run();
}

// A part takes the options of the run above it, and those of its own entry. (D-33)
#[test]
fn a_part_gets_the_options_of_the_run_above_it_and_its_own() {
    let cases = OptionCase::all();
    let surfaces =
        [Surface::Run, Surface::ServeSync, Surface::ServeEvents, Surface::McpStdio, Surface::Batch];
    let mut table = Table::new("options of a part");
    for case in &cases {
        for surface in surfaces.into_iter().chain([Surface::Library, Surface::Python]) {
            for (way, module) in [
                (Way::Flag, "words"),
                (Way::UserFile, "words"),
                (Way::UserModule, "words"),
                (Way::UserModule, "chain"),
                (Way::Request, "chain"),
            ] {
                // A receipt and the number of calls concern the whole run.
                let is_whole = ["receipt", "max_calls"].contains(&case.name)
                    && (way, module) == (Way::UserModule, "words");
                if is_whole || !way.is_there(surface) {
                    continue;
                }
                let name = format!("{} of a part by {way:?} of {module} on {surface:?}", case.name);
                table.cell(name, move || part(case, surface, &Setup::by(way, case, module)));
            }
        }
    }
    table.run();
}

/// Runs the composition and judges its part.
fn part(case: &OptionCase, surface: Surface, setup: &Setup<'_>) -> Result<bool, String> {
    let seen = ask(case, surface, "chain", setup);
    let envelope = seen.envelope.to_string();
    // The failure of a part is reported in the words of its composition.
    let has_failed =
        |words: &[&str]| seen.envelope["ok"] != true && words.iter().any(|word| envelope.contains(word));
    let is_seen = match case.name {
        "max_calls" => seen.requests.is_empty() && has_failed(&["E4100"]),
        "max_cost" => seen.requests.is_empty() && has_failed(&["E4101"]),
        "timeout" => has_failed(&["E2002", "E2011"]),
        "strict_parse" => has_failed(&["E1000"]),
        "early_stop" => has_failed(&["E3001", "E2001"]),
        _ => false,
    };
    if is_seen { Ok(true) } else { seen.honours(case, surface) }
}

// The service of the other two falls silent, so a run without these options would not end.
#[test]
fn without_its_option_a_cell_is_seen_to_fail() {
    let cases = OptionCase::all();
    let mut table = Table::new("no option");
    for case in cases.iter().filter(|case| case.ends_by_itself()) {
        let can_fail = |surface: &Surface| case.name != "no_cache" || surface.has_cache();
        for surface in Surface::ALL.into_iter().chain(CLIENTS).filter(can_fail) {
            table.cell(format!("no {} on {surface:?}", case.name), move || {
                let seen = ask(case, surface, "words", &Setup::default());
                match seen.honours(case, surface) {
                    Ok(true) => Err(seen.to_string()),
                    Ok(false) => Ok(false),
                    Err(_) => Ok(true),
                }
            });
        }
    }
    table.run();
}
