//! The model of a module holds wherever the module runs, also as a part of a composition. (D-33)

use cognitive_testkit::{FakeModel, Home};
use serde_json::{Value, json};

use super::surfaces::{Ask, Surface};

fn good() -> Value {
    json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
        "data": { "rationale": "r", "word": "w" },
    })
}

fn contract() -> Value {
    json!({
        "input": { "type": "object", "properties": { "text": { "type": "string" } } },
        "data": {
            "type": "object",
            "required": ["rationale", "word"],
            "properties": { "rationale": { "type": "string" }, "word": { "type": "string" } },
        },
    })
}

/// A home with the module `words`, and `whole`, which is made of it and has no prompt.
fn home() -> Home {
    let home = crate::home();
    home.module("words", "name: words\nversion: 1.0.0\nresponsibility: Find words\n", "Find.", &contract());
    let whole = "name: whole\nversion: 1.0.0\nresponsibility: Find words\n\
                 composition:\n  pattern: sequential\n  requires: [{name: words}]\n  dataflow:\n  \
                 - {from: input, to: words}\n  - {from: words.output, to: output}\n";
    home.module("whole", whole, "Find.", &contract());
    home
}

/// The model of `words`, in the configuration of the user; everything else asks the default service.
const CONFIG: &str = "provider: openai\nmodules: {words: {provider: mistral, model: own}}\n";

struct Services {
    default: FakeModel,
    own: FakeModel,
}

impl Services {
    fn start() -> Self {
        Self { default: FakeModel::with_answer(&good()), own: FakeModel::with_answer(&good()) }
    }

    fn environment(&self) -> Vec<(String, String)> {
        [
            ("OPENAI_API_KEY", "sk-default-default".to_owned()),
            ("OPENAI_BASE_URL", self.default.url()),
            ("MISTRAL_API_KEY", "sk-own-own-own-own".to_owned()),
            ("MISTRAL_BASE_URL", self.own.url()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    /// Runs a module on a surface and returns which services were asked: `default`, `own` or both.
    fn asked(
        &self,
        home: &Home,
        surface: Surface,
        module: &str,
        more: &[(&str, &str)],
        flags: &[&str],
    ) -> String {
        self.default.forget();
        self.own.forget();
        let environment = self.environment();
        let mut environment: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        environment.extend(more);
        let ask = Ask {
            module,
            input: json!({ "text": "t" }),
            environment: &environment,
            flags,
            options: Value::Null,
        };
        let envelope = surface.envelope(home, &ask);
        let own = self.own.requests();
        assert!(own.iter().all(|request| request.body["model"] == "own"), "{own:?}");
        match (self.default.requests().len(), own.len()) {
            (0, 1) => "own".to_owned(),
            (1, 0) => "default".to_owned(),
            other => format!("{other:?}: {envelope}"),
        }
    }
}

#[test]
fn the_model_of_a_module_answers_on_every_surface() {
    let services = Services::start();
    let home = home();
    home.user_config(CONFIG);
    for surface in Surface::ALL {
        assert_eq!(services.asked(&home, surface, "words", &[], &[]), "own", "{surface:?}");
        assert_eq!(services.asked(&home, surface, "whole", &[], &[]), "own", "as a part: {surface:?}");
    }
    home.user_config("provider: openai\n");
    for surface in Surface::ALL {
        assert_eq!(services.asked(&home, surface, "words", &[], &[]), "default", "{surface:?}");
    }
}

// A variable or a flag of a whole process does not beat the module; a flag of that very run does, except for its parts.
#[test]
fn who_decides_the_model_follows_one_order_on_every_surface() {
    let services = Services::start();
    let home = home();
    home.user_config("modules: {words: {provider: mistral, model: own}}\n");
    let variable = [("LLM_PROVIDER", "openai")];
    let flag = ["--provider", "openai"];
    for surface in Surface::ALL {
        let is_one_run = matches!(
            surface,
            Surface::Run | Surface::RunStream | Surface::TestLive | Surface::Eval | Surface::Batch
        );
        assert_eq!(services.asked(&home, surface, "words", &variable, &[]), "own", "{surface:?}");
        let by_flag = if is_one_run { "default" } else { "own" };
        assert_eq!(services.asked(&home, surface, "words", &[], &flag), by_flag, "{surface:?}");
        assert_eq!(services.asked(&home, surface, "whole", &[], &flag), "own", "as a part: {surface:?}");
    }
}

// An untrusted project moves no module to another service; its file is read and the run goes where it went without it.
#[test]
fn an_untrusted_project_moves_no_input_on_any_surface() {
    let services = Services::start();
    let home = home();
    home.user_config("providers: [mistral/own]\n");
    for project in [
        "modules: {words: {provider: openai}}\n",
        "modules: {words: {model: x}}\n",
        "modules: {words: {provider: openai, model: x}}\n",
        "provider: openai\n",
        "model: x\n",
        "providers: [openai]\n",
    ] {
        home.project_config(project);
        for surface in [Surface::Run, Surface::ServeSync, Surface::McpStdio, Surface::Batch] {
            assert_eq!(services.asked(&home, surface, "words", &[], &[]), "own", "{project} {surface:?}");
        }
        // With trust the file decides.
        if project.starts_with("modules: {words: {provider") {
            let trust = [("COGN_TRUST_PROJECT", "1")];
            assert_eq!(
                services.asked(&home, Surface::ServeSync, "words", &trust, &[]),
                "default",
                "{project}"
            );
        }
    }
}

// A module whose provider cannot be built says so in its envelope and sends its input nowhere; others answer.
#[test]
fn a_module_without_its_provider_sends_its_input_nowhere() {
    let services = Services::start();
    let home = home();
    home.user_config("provider: openai\nmodules: {words: {provider: anthropic}}\n");
    for surface in Surface::ALL {
        let environment = services.environment();
        let environment: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        services.default.forget();
        let ask = Ask {
            module: "whole",
            input: json!({ "text": "t" }),
            environment: &environment,
            flags: &[],
            options: Value::Null,
        };
        let envelope = surface.envelope(&home, &ask).to_string();
        assert!(envelope.contains("has no key"), "{surface:?}: {envelope}");
        assert_eq!(services.default.requests(), [], "{surface:?}");
    }
}
