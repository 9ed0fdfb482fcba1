//! The provider, the model, its address and its API, by every way to set them. Two services are running; a cell is judged by which of them
//! was asked, and for which model.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cognitive_testkit::{FakeModel, OptionCase};
use serde_json::{Value, json};

use super::run_options::{Setup, configure};
use super::surfaces::{Ask, Surface};
use super::table::{Table, message};

/// An option of the choice of a model: its settings on top of those that all cells have.
struct ModelCase {
    name: &'static str,
    flags: [&'static str; 2],
    variable: Option<(&'static str, &'static str)>,
    file: Value,
}

const OWN: &str = "own";

/// The address of the other service in the settings of a case.
const OTHER_ADDRESS: &str = "OTHER";

fn cases() -> [ModelCase; 4] {
    [
        ModelCase {
            name: "provider",
            flags: ["--provider", "mistral"],
            variable: Some(("LLM_PROVIDER", "mistral")),
            file: json!({ "provider": "mistral" }),
        },
        ModelCase {
            name: "model",
            flags: ["--model", OWN],
            variable: Some(("LLM_MODEL", OWN)),
            file: json!({ "model": OWN }),
        },
        ModelCase {
            name: "base_url",
            flags: ["--base-url", OTHER_ADDRESS],
            variable: Some(("OPENAI_BASE_URL", OTHER_ADDRESS)),
            file: json!({ "provider": "openai", "base_url": OTHER_ADDRESS }),
        },
        ModelCase {
            name: "api",
            flags: ["--api", "responses"],
            variable: None,
            file: json!({ "api": "responses" }),
        },
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Flag,
    Environment,
    UserFile,
    UserModule,
    Project,
    TrustedProject,
    TrustedProjectModule,
}

impl Way {
    const ALL: [Self; 7] = [
        Self::Flag,
        Self::Environment,
        Self::UserFile,
        Self::UserModule,
        Self::Project,
        Self::TrustedProject,
        Self::TrustedProjectModule,
    ];

    fn is_module(self) -> bool {
        matches!(self, Self::UserModule | Self::TrustedProjectModule)
    }
}

/// Runs a cell. Without trust, the file of a project moves no input; a model of the same service takes effect.
fn cell(case: &ModelCase, surface: Surface, way: Way) -> Result<bool, String> {
    let seed = OptionCase::from_name("seed");
    let (default, other, home) = (seed.service(), seed.service(), crate::home());
    seed.write_modules(&home);
    let addresses = [default.url(), other.url()];
    let put = |text: &str| text.replace(OTHER_ADDRESS, &addresses[1]);
    let file: Value = serde_json::from_str(&put(&case.file.to_string())).unwrap();
    let variable = case.variable.map(|(name, value)| (name, put(value)));
    let flags = case.flags.map(put);
    // A variable with the address beats a file, so without one the cell is about the file alone.
    let is_address_of_file = case.name == "base_url" && !matches!(way, Way::Flag | Way::Environment);
    let keys = [("OPENAI_API_KEY", "sk-default-default"), ("MISTRAL_API_KEY", "sk-own-own-own-own")];
    let mut environment = keys.to_vec();
    environment.push(("MISTRAL_BASE_URL", &addresses[1]));
    if !is_address_of_file {
        environment.push(("OPENAI_BASE_URL", &addresses[0]));
    }
    let mut setup = Setup::default();
    let own = json!({ "modules": { "words": file.clone() } });
    match way {
        Way::Flag => setup.flags = flags.iter().map(String::as_str).collect(),
        Way::Environment => environment.extend(variable.iter().map(|(name, value)| (*name, value.as_str()))),
        Way::UserFile => setup.user = file,
        Way::UserModule => setup.user = own,
        Way::Project | Way::TrustedProject => setup.project = file,
        Way::TrustedProjectModule => setup.project = own,
    }
    if matches!(way, Way::TrustedProject | Way::TrustedProjectModule) {
        environment.push(("COGN_TRUST_PROJECT", "1"));
    }
    configure(&home, &setup);
    let ask = Ask {
        module: "words",
        input: json!({}),
        environment: &environment,
        flags: &setup.flags,
        options: Value::Null,
    };
    // A surface that does not start says why in the panic of its test.
    let envelope = catch_unwind(AssertUnwindSafe(|| surface.envelope(&home, &ask)));
    let envelope = envelope.unwrap_or_else(|panic| Value::String(message(&*panic)));
    if surface.is_missing(&envelope) {
        return Ok(false);
    }
    let asked = [&default, &other].map(FakeModel::requests);
    let is_own = asked[0].first().is_some_and(|request| request.body["model"] == OWN);
    let is_response = asked[0].first().is_some_and(|request| request.path.ends_with("/responses"));
    let counts = asked.map(|requests| requests.len());
    let is_right = match (case.name, way) {
        ("model", _) => counts == [1, 0] && is_own,
        // The same service is asked, so it needs no trust.
        ("api", _) => counts == [1, 0] && is_response,
        // Held back: the default service answers, or none if only the file has an address.
        ("provider", Way::Project) => counts == [1, 0],
        ("base_url", Way::Project) => counts == [0, 0] && envelope.to_string().contains("untrusted address"),
        _ => counts == [0, 1],
    };
    if is_right { Ok(true) } else { Err(format!("{counts:?} requests, {envelope}")) }
}

#[test]
fn every_way_chooses_the_model_on_every_surface() {
    let cases = cases();
    let mut table = Table::new("choice of the model");
    for case in &cases {
        for surface in Surface::ALL.into_iter().chain([Surface::Python, Surface::TypeScript]) {
            for way in Way::ALL {
                // The address is no option of a module, and a program in Python has no flags.
                let is_missing = case.name == "base_url" && way.is_module()
                    || case.variable.is_none() && way == Way::Environment
                    || way == Way::Flag && surface == Surface::Python;
                if !is_missing {
                    table.cell(format!("{} by {way:?} on {surface:?}", case.name), move || {
                        cell(case, surface, way)
                    });
                }
            }
        }
    }
    table.run();
}
