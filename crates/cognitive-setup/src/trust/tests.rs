//! The settings of an untrusted file that take effect, and those that do not.

use super::*;
use crate::settings::{OverrideScope, RungChoice, SettingOverrides, Settings};

fn sifted(says: &str, below: &str) -> (Config, Vec<String>) {
    sifted_in(says, below, &[])
}

fn sifted_in(says: &str, below: &str, environment: &[(&str, &str)]) -> (Config, Vec<String>) {
    let (says, below) = (Config::parse(says).unwrap(), Config::parse(below).unwrap());
    let look_up = |name: &str| {
        environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    let (counts, held) = sift(&says, &below, Path::new("cognitive.yaml"), &look_up);
    (counts, held.into_iter().map(|held| held.setting).collect())
}

#[test]
fn a_stranger_stores_no_input_for_review_and_switches_no_review_off() {
    let own = "review: {rules: [{when: 'confidence < 0.6'}], max_open: 9}";
    let (counts, held) = sifted("review: {rules: [{when: 'true'}], max_open: 0, max_decided: 0}", own);
    assert_eq!(held, ["review.rules", "review.max_open", "review.max_decided"]);
    let both = counts.or(Config::parse(own).unwrap()).review;
    assert_eq!(both, Config::parse(own).unwrap().review);
    assert!(sifted(own, own).1.is_empty(), "what the user says too needs no trust");
    let trusted = Config::parse("review: {rules: [{when: 'ok'}]}").unwrap().or(Config::parse(own).unwrap());
    assert_eq!(trusted.review.rules.unwrap().len(), 2, "also a trusted file takes no rule away");
}

#[test]
fn settings_that_move_keys_data_or_records_are_held_back() {
    let everything = "
base_url: https://me:pw@thief/v1?k=1
model: embedded//etc/x.gguf
exec_min_confidence: 0.1
max_calls: 1000
audit: {enabled: false, payloads: true, path: /x, required: true, keep: {records: 1}}
context: {not_secret: [token]}
media: {allow_http: true, trusted_origins: ['http://10.0.0.1'], roots: [/], keep_metadata: true, uploads: /u}
serve: {host: 0.0.0.0, port: 9000, cors: ['https://thief.example'], modules: [m]}
modules: {m: {model: /y.GGUF, reask: 1}}
";
    let (counts, held) = sifted(everything, "");
    assert_eq!(
        held,
        [
            "model",
            "base_url",
            "max_calls",
            "exec_min_confidence",
            "audit.enabled",
            "audit.payloads",
            "audit.path",
            "audit.required",
            "audit.keep",
            "context.not_secret",
            "media.allow_http",
            "media.trusted_origins",
            "media.roots",
            "media.keep_metadata",
            "media.uploads",
            "serve.host",
            "serve.cors",
            "modules.m.model",
        ]
    );
    assert_eq!(counts.untrusted_address.as_ref().unwrap().url, "https://me:pw@thief/v1?k=1");
    let run = RunSettings { reask: Some(1), ..RunSettings::default() };
    assert_eq!(counts.modules["m"], ModuleConfig { run, ..ModuleConfig::default() });
    assert_eq!((counts.serve.port, counts.serve.modules.as_ref().map(Vec::len)), (Some(9000), Some(1)));
    let left = Config {
        untrusted_address: None,
        modules: std::collections::BTreeMap::new(),
        serve: ServeConfig::default(),
        ..counts
    };
    assert_eq!(left, Config::default());
}

#[test]
fn a_strangers_file_makes_nobody_fetch_a_large_model_or_open_a_file() {
    for (says, held) in [
        ("default_model: qwen-1.5b\n", "default_model"),
        ("default_model: embedded/QWEN-0.5b\n", "default_model"),
        ("default_model: /etc/x.gguf\n", "default_model"),
        ("model: embedded/qwen-0.5b\n", "model"),
        ("provider: embedded\nmodel: qwen2.5-coder-0.5b-instruct-q4_k_m\n", "model"),
        ("model: qwen-0.5b\n", "model"),
        ("modules: {m: {model: embedded/qwen-0.5b}}\n", "modules.m.model"),
    ] {
        let (counts, found) = sifted(says, "");
        assert_eq!(found, [held], "{says}");
        assert_eq!((counts.default_model, counts.model), (None, None), "{says}");
    }
    for (says, user) in [
        ("default_model: smollm2\n", ""),
        ("default_model: mine\n", ""),
        ("default_model: qwen-0.5b\n", "default_model: qwen-0.5b\n"),
        ("provider: ollama\nmodel: qwen-0.5b\n", ""),
        ("model: qwen-0.5b\n", "provider: ollama\n"),
    ] {
        assert_eq!(sifted(says, user).1, Vec::<String>::new(), "{says}");
    }
}

#[test]
fn what_only_the_run_is_about_counts_and_so_does_what_is_stricter() {
    let harmless = "
provider: anthropic
model: claude-x
timeout_seconds: 5
reask: 1
max_calls: 64
strict_parse: true
early_stop: true
receipt: true
exec_min_confidence: 0.95
audit: {enabled: true, payloads: false}
media: {max_size_mb: 3, shortest_side: 1}
modules: {m: {provider: ollama, receipt: true}}
";
    let (counts, held) = sifted_in(harmless, "", &[("ANTHROPIC_API_KEY", "k")]);
    assert_eq!(held, Vec::<String>::new());
    let mut says = Config::parse(harmless).unwrap();
    says.base_url_of = None;
    assert_eq!(counts, says);
}

// A project may demand more of answers than the user, and never less. (D-33)
#[test]
fn d_33_a_project_makes_runs_stricter_and_never_laxer() {
    let own = "strict_parse: true\ntimeout_seconds: 9\nclimb: {below_confidence: 0.9, above_risk: low}\n";
    for (says, setting) in [
        ("strict_parse: false\n", "strict_parse"),
        ("timeout: 10\n", "timeout"),
        ("climb: {below_confidence: 0}\n", "climb.below_confidence"),
        ("climb: {above_risk: high}\n", "climb.above_risk"),
        ("climb: {unless_agreed: 0.1}\n", "climb.unless_agreed"),
    ] {
        let (counts, held) = sifted(says, own);
        assert_eq!((counts, held), (Config::default(), vec![setting.to_owned()]), "{says}");
        assert_eq!(sifted(says, "").1, [""; 0], "{says} loosens nothing of a user without rules");
    }
    for says in ["timeout_seconds: 1\n", "climb: {below_confidence: 0.95, above_risk: none}\n"] {
        assert_eq!(sifted(says, own).1, [""; 0], "{says}");
    }
}

// What is shown about a setting goes into bug reports.
#[test]
fn a_setting_that_is_held_back_shows_no_password() {
    let says = "
audit: {path: 'postgres://u:PLANTED@db.example/x?password=PLANTED'}
base_url: https://u:PLANTED@h/v1
serve: {shared: 'redis://:PLANTED@cache.example', otlp: 'http://u:PLANTED@collector.example'}
";
    let (_, held) = sift(&Config::parse(says).unwrap(), &Config::default(), Path::new("x"), &|_| None);
    let shown = serde_json::to_string(&held).unwrap();
    assert!(held.len() == 4 && !shown.contains("PLANTED"), "{shown}");
    assert!(shown.contains("db.example") && shown.contains("cache.example"), "{shown}");
}

#[test]
fn what_the_user_says_too_needs_no_trust_and_the_choice_of_the_user_stays() {
    let same = "provider: OpenAI\nbase_url: https://a\naudit: {path: /b}\n";
    assert_eq!(
        sifted(same, "provider: openai\nbase_url: https://a\naudit: {path: /b}\n").1,
        Vec::<String>::new()
    );
    let (counts, held) = sifted(
        "provider: openai\nmodel: m\nmedia: {max_size_mb: 9}\n",
        "provider: ollama\nmedia: {max_size_mb: 5}\n",
    );
    assert_eq!(held, ["provider", "media.max_size_mb"]);
    assert_eq!((counts.provider, counts.model), (None, None));
    assert_eq!(sifted("provider: anthropic\n", "base_url: https://a\n").1, ["provider"]);
    let (_, held) = sifted("modules: {m: {provider: openai}}\n", "provider: ollama\n");
    assert_eq!(held, ["modules.m.provider"]);
    let (_, held) =
        sifted("modules: {m: {provider: vllm}}\n", "provider: ollama\nmodules: {m: {provider: vllm}}\n");
    assert_eq!(held, Vec::<String>::new());
}

// An untrusted project cannot move the inputs of any module to another service.
#[test]
fn a_project_cannot_move_inputs_from_where_they_go_without_it() {
    let key = [("OPENAI_API_KEY", "k")];
    let local = "providers: [embedded/smollm2]\n";
    let server = "providers: [llama-cpp/x]\n";
    for user in [local, server, "provider: ollama\n", "modules: {m: {provider: ollama}}\n"] {
        for (says, setting) in [
            ("modules: {m: {provider: openai}}\n", "modules.m.provider"),
            ("modules: {m: {provider: openai, model: x}}\n", "modules.m.provider"),
            ("modules: {m: {model: x}}\n", "modules.m.model"),
        ] {
            let same_service = says.contains("{model") && !user.starts_with("providers");
            let expected = if same_service { Vec::new() } else { vec![setting.to_owned()] };
            assert_eq!(sifted_in(says, user, &key).1, expected, "{user} {says}");
        }
    }
    assert_eq!(sifted_in("provider: openai\n", "provider: ollama\n", &key).1, ["provider"]);
    // A user's list overrides it, except for a module whose model the user names.
    for user in [local, server] {
        assert_eq!(sifted_in("provider: openai\n", user, &key).1, Vec::<String>::new(), "{user}");
        let named = format!("{user}modules: {{m: {{model: x}}}}\n");
        assert_eq!(sifted_in("provider: anthropic\n", &named, &key).1, ["provider"], "{user}");
    }
    // The environment also belongs to the user, although the configuration of a module overrides it.
    let environment = [("LLM_PROVIDER", "ollama"), key[0]];
    assert_eq!(sifted_in("modules: {m: {provider: openai}}\n", "", &environment).1, ["modules.m.provider"]);
    // So does a default: without the key of another service, inputs stay here.
    assert_eq!(sifted_in("provider: mistral\n", "", &[("MISTRAL_API_KEY", "k")]).1, ["provider"]);
    assert_eq!(sifted_in("provider: anthropic\n", "", &key).1, ["provider"]);
    // Allowed: the same service, and models on this machine if the user sets nothing.
    for says in
        ["provider: openai\n", "modules: {m: {model: x}}\n", "provider: embedded\n", "provider: ollama\n"]
    {
        assert_eq!(sifted_in(says, "", &key).1, Vec::<String>::new(), "{says}");
    }
}

/// A small generator, so that every failure can be repeated from its seed.
struct Choices(u64);

impl Choices {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap_or(0)
    }

    /// Some lines of these, one for each kind at most.
    fn lines(&mut self, kinds: &[&[&str]]) -> String {
        let mut text = String::new();
        for kind in kinds {
            if self.below(3) == 0
                && let Some(line) = kind.get(self.below(kind.len()))
            {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }
}

const SETTINGS: &[&[&str]] = &[
    &[
        "provider: openai",
        "provider: ollama",
        "provider: embedded",
        "provider: llamacpp",
        "provider: compatible",
    ],
    &["model: gpt-x", "model: openai/gpt-x", "model: embedded/smollm2", "model: embedded/qwen-1.5b"],
    &["default_model: smollm2", "default_model: /etc/weights.gguf", "default_model: qwen-1.5b"],
    &["providers: [embedded/smollm2]", "providers: [openai/gpt-x, ollama/x]", "providers: [ollama/x]"],
    &["base_url: https://elsewhere.example/v1", "base_url: http://127.0.0.1:9/v1"],
    &["max_cost: 0.5", "max_cost: 50"],
    &["max_calls: 5", "max_calls: 5000"],
    &["timeout: 5", "timeout: 5000"],
    &["max_output_tokens: 50", "max_output_tokens: 500000"],
    &["strict_parse: true", "strict_parse: false"],
    &["exec_min_confidence: 0.1", "exec_min_confidence: 0.99"],
    &["climb: {below_confidence: 0.2}", "climb: {below_confidence: 0.95}", "climb: {above_risk: high}"],
    &["budget: {per_day: 1, per_key: 1}", "budget: {per_day: 900}", "budget: {per_key: 900}"],
    &["prices: {file: free.yaml, as_of: 2026-01-01}"],
    &[
        "audit: {path: /tmp/x.db}",
        "audit: {enabled: false}",
        "audit: {required: true}",
        "audit: {required: false}",
    ],
    &["context: {not_secret: [password]}"],
    &["review: {rules: [{when: 'true'}]}", "review: {max_open: 1}"],
    &[
        "media: {allow_http: true}",
        "media: {trusted_origins: ['http://10.0.0.1']}",
        "media: {roots: [/etc]}",
        "media: {max_size_mb: 900}",
        "media: {uploads: /etc}",
    ],
    &[
        "modules: {m: {provider: openai}}",
        "modules: {m: {provider: ollama, model: x}}",
        "modules: {m: {model: gpt-y}}",
        "modules: {m: {model: embedded//etc/w.gguf}}",
        "modules: {m: {local_only: true}}",
        "modules: {m: {local_only: false, provider: openai}}",
        "modules: {m: {max_calls: 900, timeout: 900, strict_parse: false}}",
    ],
];

const VARIABLES: &[&[&str]] = &[
    &["OPENAI_API_KEY=k"],
    &["LLM_PROVIDER=openai", "LLM_PROVIDER=ollama", "LLM_PROVIDER=embedded"],
    &["LLM_MODEL=gpt-z", "LLM_MODEL=embedded/smollm2"],
    &["OPENAI_BASE_URL=https://own.example/v1"],
    &["OLLAMA_HOST=far.example:11434", "OLLAMA_HOST=127.0.0.1:11434"],
];

/// Returns the providers that a module would call. One whose address is refused is not called.
fn reached(config: &Config, environment: Environment<'_>, module: Option<&str>) -> Vec<ProviderChoice> {
    let resolved =
        Settings::resolve(&SettingOverrides::default(), config, environment, OverrideScope::Process);
    let Ok(settings) = resolved else { return Vec::new() };
    let own = module.and_then(|name| settings.of_module.get(name)).and_then(|own| own.model.clone());
    let rungs = match own {
        Some(Ok(own)) => vec![own],
        Some(Err(_)) => Vec::new(),
        None => {
            let (provider, refused_address) = (settings.provider, settings.refused_address);
            let first = RungChoice { name: String::new(), provider, refused_address };
            std::iter::once(first).chain(settings.rungs).collect()
        }
    };
    rungs.into_iter().filter(|rung| rung.refused_address.is_none()).map(|rung| rung.provider).collect()
}

/// Whether a limit of the user still holds: unset limits of the project are those of the user.
fn is_no_laxer<T: PartialOrd>(now: Option<T>, before: Option<T>) -> bool {
    before.is_none_or(|before| now.is_some_and(|now| now <= before))
}

// For random files of users and strangers: what is reached was reached before, and limits only tighten.
#[test]
fn a_strangers_file_reaches_nothing_new_and_loosens_no_limit() {
    let mut checked = 0;
    for seed in 1..=1_000_u64 {
        let mut choices = Choices(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (own, says) = (choices.lines(SETTINGS), choices.lines(SETTINGS));
        let variables = choices.lines(VARIABLES);
        let environment = |name: &str| {
            let mut known = variables.lines().filter_map(|line| line.split_once('='));
            known.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
        };
        let (Ok(below), Ok(project)) = (Config::parse(&own), Config::parse(&says)) else { continue };
        let (counts, _) = sift(&project, &below, Path::new("cognitive.yaml"), &environment);
        let with = counts.or(below.clone());
        let told = || format!("seed {seed}\nuser:\n{own}\nproject:\n{says}\nvariables:\n{variables}");
        let before = Destinations { below: &below, environment: &environment };
        for module in [None, Some("m"), Some("other")] {
            let reached = reached(&with, &environment, module);
            let known = destinations(&below, &environment, module).unwrap_or_default();
            for choice in &reached {
                let is_known = known.iter().any(|known| same_place(known, choice));
                // Another port of this machine is no other place, if no key is sent there.
                let is_same_service = known.iter().any(|known| known.name() == choice.name());
                let is_harmless =
                    before.is_local(choice) && (is_same_service || !before.has_user_choice(module));
                assert!(is_known || is_harmless, "{choice:?} of {module:?}\n{}", told());
            }
            let run = |config: &Config| {
                let own = module.and_then(|name| config.modules.get(name));
                own.map_or(config.run, |own| own.run.or(config.run))
            };
            let (now, was) = (run(&with), run(&below));
            assert!(is_no_laxer(now.max_cost, was.max_cost), "max_cost\n{}", told());
            assert!(is_no_laxer(now.timeout, was.timeout), "timeout\n{}", told());
            assert!(is_no_laxer(now.max_output_tokens, was.max_output_tokens), "tokens\n{}", told());
            assert!(now.call_limit() <= was.call_limit(), "max_calls\n{}", told());
            assert!(now.is_strict() || !was.is_strict(), "strict_parse\n{}", told());
            let local = |config: &Config| module.and_then(|name| config.modules.get(name)?.local_only);
            assert!(local(&with) == Some(true) || local(&below) != Some(true), "local_only\n{}", told());
        }
        assert!(is_no_laxer(with.budget.per_day, below.budget.per_day), "per_day\n{}", told());
        assert!(is_no_laxer(with.budget.per_key, below.budget.per_key), "per_key\n{}", told());
        let gate = |config: &Config| config.exec_min_confidence.unwrap_or(0.9);
        assert!(gate(&with) >= gate(&below), "exec_min_confidence\n{}", told());
        let climb = (with.climb.below_confidence, below.climb.below_confidence);
        assert!(climb.1.is_none_or(|was| climb.0.is_some_and(|now| now >= was)), "climb\n{}", told());
        assert_eq!(with.base_url, below.base_url, "{}", told());
        assert_eq!(with.prices, below.prices, "{}", told());
        assert_eq!(with.context, below.context, "{}", told());
        assert_eq!(
            (&with.audit.path, with.audit.enabled),
            (&below.audit.path, below.audit.enabled),
            "{}",
            told()
        );
        assert!(with.audit.required == Some(true) || below.audit.required != Some(true), "{}", told());
        assert_eq!(
            (&with.media.roots, &with.media.uploads),
            (&below.media.roots, &below.media.uploads),
            "{}",
            told()
        );
        assert_eq!(with.media.trusted_origins, below.media.trusted_origins, "{}", told());
        assert_eq!(with.media.allow_http, below.media.allow_http, "{}", told());
        assert!(is_no_laxer(with.media.max_size_mb, below.media.max_size_mb), "{}", told());
        checked += 1;
    }
    assert!(checked > 500, "only {checked} pairs were valid");
}
