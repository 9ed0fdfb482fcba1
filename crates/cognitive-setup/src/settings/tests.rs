//! The precedence of flags, environment and configuration files.

use cognitive_contract::ErrorCode;

use super::*;
use crate::config::UntrustedAddress;

fn decide(
    args: &SettingOverrides,
    config: &Config,
    environment: &[(&str, &str)],
) -> Result<Settings, Failure> {
    let look_up = |name: &str| {
        environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    Settings::resolve(args, config, &look_up, OverrideScope::Runs("m"))
}

fn service(settings: &Settings) -> (&'static str, Option<&str>, Option<&str>) {
    match &settings.provider {
        ProviderChoice::Service(service) => {
            (service.kind.name(), service.model.as_deref(), service.base_url.as_deref())
        }
        other => panic!("{other:?}"),
    }
}

// S-07: flag, then environment, then configuration, then the first service with credentials.
#[test]
fn precedence_is_flag_environment_configuration_credentials() {
    let flag = SettingOverrides {
        provider: Some("ollama".into()),
        model: Some("f".into()),
        ..SettingOverrides::default()
    };
    let config = Config { provider: Some("gemini".into()), model: Some("c".into()), ..Config::default() };
    let environment = [("LLM_PROVIDER", "anthropic"), ("LLM_MODEL", "e"), ("OPENAI_API_KEY", "k")];
    assert_eq!(service(&decide(&flag, &config, &environment).unwrap()), ("ollama", Some("f"), None));
    let none = SettingOverrides::default();
    assert_eq!(service(&decide(&none, &config, &environment).unwrap()), ("anthropic", Some("e"), None));
    assert_eq!(service(&decide(&none, &config, &environment[2..]).unwrap()), ("gemini", Some("c"), None));
    assert_eq!(
        service(&decide(&none, &Config::default(), &environment[2..]).unwrap()),
        ("openai", None, None)
    );
    assert_eq!(
        decide(&none, &Config::default(), &[]).unwrap().provider,
        ProviderChoice::Embedded { weights: WeightsChoice::Usual }
    );
}

fn typed(provider: Option<&str>, model: Option<&str>) -> SettingOverrides {
    SettingOverrides {
        provider: provider.map(str::to_owned),
        model: model.map(str::to_owned),
        ..SettingOverrides::default()
    }
}

// S-07 also applies to the embedded model, in every way to name it.
#[test]
fn the_embedded_model_is_named_like_any_other_and_never_pushes_itself_in() {
    let key = ("OPENAI_API_KEY", "k");
    let config = |provider: &str| Config { provider: Some(provider.into()), ..Config::default() };
    let name = |args: &SettingOverrides, config: &Config, environment: &[(&str, &str)]| match decide(
        args,
        config,
        environment,
    )
    .unwrap()
    .provider
    {
        ProviderChoice::Embedded { .. } => EMBEDDED,
        ProviderChoice::Service(service) => service.kind.name(),
        ProviderChoice::Replay => "replay",
    };
    let none = typed(None, None);
    assert_eq!(name(&typed(Some("embedded"), None), &config("gemini"), &[key]), "embedded");
    assert_eq!(name(&typed(None, Some("embedded//x.gguf")), &config("gemini"), &[key]), "embedded");
    assert_eq!(name(&none, &config("gemini"), &[("LLM_PROVIDER", "embedded"), key]), "embedded");
    assert_eq!(name(&none, &config("gemini"), &[("LLM_MODEL", "embedded//x.gguf"), key]), "embedded");
    assert_eq!(name(&none, &config("embedded"), &[key]), "embedded");
    // A source with higher precedence wins.
    assert_eq!(name(&typed(Some("ollama"), None), &config("embedded"), &[]), "ollama");
    assert_eq!(name(&none, &config("embedded"), &[("LLM_PROVIDER", "ollama")]), "ollama");
    assert_eq!(name(&none, &Config::default(), &[key]), "openai");
    // This names the weights, not the provider.
    assert_eq!(name(&none, &Config::default(), &[key, ("COGN_MODEL", "/x.gguf")]), "openai");
}

#[test]
fn the_weights_of_the_embedded_model_come_from_flag_environment_and_file_in_this_order() {
    use crate::weights::{QWEN_0_5B, QWEN_1_5B, SMOLLM2};

    let variable = ("COGN_MODEL", "/env.gguf");
    let file = |path: &str| WeightsChoice::File(PathBuf::from(path));
    let (small, half, large) =
        (WeightsChoice::Known(&SMOLLM2), WeightsChoice::Known(&QWEN_0_5B), WeightsChoice::Known(&QWEN_1_5B));
    let embedded = Some("embedded");
    for (provider, model, environment, config, expected) in [
        (None, None, &[variable][..], "", file("/env.gguf")),
        (None, Some("embedded//flag.gguf"), &[variable], "", file("/flag.gguf")),
        (None, Some("embedded/near.GGUF"), &[], "", file("near.GGUF")),
        (embedded, Some("/flag.gguf"), &[variable], "", file("/flag.gguf")),
        (None, Some("embedded/smollm2-135m-instruct-q4_1"), &[], "", small.clone()),
        (embedded, Some("smollm2"), &[variable], "default_model: qwen-1.5b", small),
        (None, Some("qwen-0.5b"), &[], "", half.clone()),
        (embedded, Some("Qwen2.5-Coder-1.5B-Instruct-Q4_K_M"), &[variable], "", large.clone()),
        (None, None, &[("LLM_MODEL", "embedded/qwen-0.5b"), variable], "model: qwen-1.5b", half.clone()),
        (embedded, None, &[variable], "model: embedded/qwen-0.5b", file("/env.gguf")),
        (None, None, &[], "model: embedded/qwen-0.5b\ndefault_model: qwen-1.5b", half.clone()),
        (None, None, &[], "modules: {m: {model: qwen-0.5b}}\nmodel: qwen-1.5b", half),
        (None, None, &[], "default_model: qwen-1.5b", large.clone()),
        (embedded, None, &[variable], "default_model: qwen-1.5b", file("/env.gguf")),
        // It belongs to another service, which was not chosen.
        (embedded, None, &[("LLM_MODEL", "gpt-5.4-mini")], "", WeightsChoice::Usual),
        (embedded, None, &[], "provider: ollama\nmodel: qwen-0.5b\ndefault_model: qwen-1.5b", large),
    ] {
        let config = Config::parse(config).unwrap();
        let decided = decide(&typed(provider, model), &config, environment).unwrap().provider;
        assert_eq!(decided, ProviderChoice::Embedded { weights: expected }, "{model:?} {environment:?}");
    }
}

#[test]
fn a_default_model_that_does_not_exist_is_said_only_where_it_counts() {
    let config = Config::parse("default_model: qwen-9b\n").unwrap();
    let failure = decide(&SettingOverrides::default(), &config, &[]).unwrap_err();
    assert_eq!(failure.message(), "unknown embedded model in `default_model`: `qwen-9b`");
    assert!(failure.suggestion().unwrap().contains("`qwen-0.5b`"), "{:?}", failure.suggestion());
    assert!(decide(&SettingOverrides::default(), &config, &[("OPENAI_API_KEY", "k")]).is_ok());
    assert!(decide(&typed(None, Some("embedded/smollm2")), &config, &[]).is_ok());
}

#[test]
fn a_model_that_was_added_is_chosen_by_its_name() {
    let home = tempfile::tempdir().unwrap();
    let models = home.path().join(".cache/cogn/models");
    std::fs::create_dir_all(&models).unwrap();
    std::fs::write(models.join("mine.gguf.added"), r#"{"length": 4, "sha256": "h", "from": "/x"}"#).unwrap();
    let environment = [(env_vars::HOME, home.path().to_str().unwrap())];
    let chosen = decide(&typed(None, Some("embedded/Mine")), &Config::default(), &environment).unwrap();
    let ProviderChoice::Embedded { weights: WeightsChoice::Added(added) } = chosen.provider else { panic!() };
    assert_eq!((added.name.as_str(), added.length, added.sha256.as_str()), ("mine", 4, "h"));
    assert!(decide(&typed(None, Some("embedded/../mine")), &Config::default(), &environment).is_err());
}

#[test]
fn a_model_that_nobody_here_has_is_not_replaced_by_the_embedded_one() {
    for (args, environment) in [
        (typed(None, Some("gpt-5.4-mini")), &[][..]),
        (typed(Some("embedded"), Some("gpt-5.4-mini")), &[]),
        (typed(None, None), &[("LLM_MODEL", "gpt-5.4-mini")]),
        (typed(None, Some("embedded/other")), &[]),
        (typed(None, None), &[("LLM_MODEL", "embedded/other")]),
        (typed(Some("embedded"), None), &[("LLM_MODEL", "embedded/other")]),
    ] {
        let failure = decide(&args, &Config::default(), environment).unwrap_err();
        assert_eq!(failure.code(), ErrorCode::ProviderUnavailable);
        assert!(failure.suggestion().unwrap().contains("--provider"));
    }
}

#[test]
fn fetching_can_be_forbidden() {
    let offline = |args: &SettingOverrides, environment: &[(&str, &str)]| {
        decide(args, &Config::default(), environment).unwrap().offline
    };
    let none = SettingOverrides::default();
    assert!(!offline(&none, &[]) && !offline(&none, &[("COGN_OFFLINE", "0")]));
    assert!(offline(&none, &[("COGN_OFFLINE", "1")]));
    assert!(offline(&SettingOverrides { no_pull: true, ..SettingOverrides::default() }, &[]));
}

#[test]
fn an_address_belongs_to_the_provider_beside_it() {
    let config =
        Config { provider: Some("openai".into()), base_url: Some("http://own".into()), ..Config::default() };
    let none = SettingOverrides::default();
    assert_eq!(service(&decide(&none, &config, &[]).unwrap()).2, Some("http://own"));
    let other = SettingOverrides { provider: Some("anthropic".into()), ..SettingOverrides::default() };
    assert_eq!(service(&decide(&other, &config, &[]).unwrap()).2, None);
}

#[test]
fn an_untrusted_address_gets_no_key_and_no_input() {
    let with = |provider: &str, url: &str| {
        let of = Some(provider.to_owned());
        let untrusted = UntrustedAddress {
            url: url.to_owned(),
            of: of.clone(),
            file: PathBuf::from("/p/cognitive.yaml"),
        };
        Config { provider: of, untrusted_address: Some(untrusted), ..Config::default() }
    };
    let none = SettingOverrides::default();
    let key = ("VLLM_API_KEY", "k");
    let here = with("vllm", "http://me:pw@127.0.0.1:1/v1?x=1");
    // Allowed without a key, and only on this machine.
    let used = decide(&none, &here, &[]).unwrap();
    assert!(used.refused_address.is_none());
    assert_eq!(service(&used).2, Some("http://me:pw@127.0.0.1:1/v1?x=1"));
    for (config, environment) in [(&here, &[key][..]), (&with("vllm", "https://elsewhere/v1"), &[])] {
        let settings = decide(&none, config, environment).unwrap();
        assert_eq!(service(&settings).2, None);
        let refused = settings.refused_address.unwrap();
        assert!(refused.message().contains("/p/cognitive.yaml") && !refused.message().contains("pw"));
        assert!(refused.suggestion().unwrap().contains("`cogn trust`"));
    }
    // The user who starts the process takes precedence, and an address belongs to the provider next to it.
    let typed = SettingOverrides { base_url: Some("http://own".into()), ..SettingOverrides::default() };
    assert_eq!(service(&decide(&typed, &here, &[key]).unwrap()).2, Some("http://own"));
    let by_environment = [key, ("VLLM_BASE_URL", "http://e")];
    assert_eq!(service(&decide(&none, &here, &by_environment).unwrap()).2, Some("http://e"));
    let other = SettingOverrides { provider: Some("openai".into()), ..SettingOverrides::default() };
    let settings = decide(&other, &here, &[("OPENAI_API_KEY", "k")]).unwrap();
    assert!(settings.refused_address.is_none() && service(&settings).2.is_none());
}

#[test]
fn unknown_names_and_odd_numbers_are_refused() {
    let args = SettingOverrides { provider: Some("opnai".into()), ..SettingOverrides::default() };
    let failure = decide(&args, &Config::default(), &[]).unwrap_err();
    assert_eq!(failure.code(), ErrorCode::ProviderUnavailable);
    assert!(failure.suggestion().unwrap().contains("openai"));
    let config = Config { exec_min_confidence: Some(90.0), ..Config::default() };
    assert!(decide(&SettingOverrides::default(), &config, &[]).is_err());
}

#[test]
fn a_module_can_differ_and_the_books_can_be_closed() {
    let mut config = Config::parse("reask: 1\nmodules: {m: {reask: 3, receipt: true}}\n").unwrap();
    let settings = decide(&SettingOverrides::default(), &config, &[("HOME", "/h")]).unwrap();
    let own = settings.of_module["m"].settings.or(settings.general);
    assert_eq!((own.reask, own.receipt), (Some(3), Some(true)));
    assert_eq!(settings.store, Some(PathBuf::from("/h/.cognitive/cognitive.db")));
    config.audit.enabled = Some(false);
    assert_eq!(decide(&SettingOverrides::default(), &config, &[("HOME", "/h")]).unwrap().store, None);
}

/// Returns the provider of module `m`: as the root of a run, or as any module of a process.
fn of_m(args: &SettingOverrides, config: &str, environment: &[(&str, &str)], is_root: bool) -> String {
    let look_up = |name: &str| {
        environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    let config = Config::parse(config).unwrap();
    let scope = if is_root { OverrideScope::Runs("m") } else { OverrideScope::Process };
    let settings = Settings::resolve(args, &config, &look_up, scope).unwrap();
    let own = settings.of_module.get("m").and_then(|own| own.model.clone());
    let choice = own.map_or(settings.provider, |choice| choice.unwrap().provider);
    match choice {
        ProviderChoice::Service(service) => {
            format!("{}/{}", service.kind.name(), service.model.unwrap_or_default())
        }
        other => other.name().to_owned(),
    }
}

// D-33: a flag of this run, the module, a flag of the whole server, the environment, the files.
#[test]
fn the_configuration_of_a_module_stands_between_its_run_and_the_process() {
    let config = "provider: gemini\nmodel: g\nmodules: {m: {provider: ollama, model: o}}\n";
    let environment = [("LLM_PROVIDER", "anthropic"), ("LLM_MODEL", "a")];
    let (none, flag) = (typed(None, None), typed(Some("openai"), None));
    assert_eq!(of_m(&flag, config, &environment, true), "openai/");
    assert_eq!(of_m(&none, config, &environment, true), "ollama/o");
    assert_eq!(of_m(&flag, config, &environment, false), "ollama/o");
    assert_eq!(of_m(&flag, "provider: gemini\n", &environment, false), "openai/");
    assert_eq!(of_m(&none, "provider: gemini\n", &environment, false), "anthropic/a");
    // Only its model differs: it uses the general provider.
    let model = "modules: {m: {model: own}}\n";
    assert_eq!(of_m(&flag, model, &environment, false), "openai/own");
    assert_eq!(of_m(&none, model, &environment, true), "anthropic/own");
    // The list of providers does not apply to a module with a model.
    let list = "providers: [openai/x, gemini]\nmodules: {m: {provider: embedded}}\n";
    assert_eq!(of_m(&none, list, &[("OPENAI_API_KEY", "k")], false), "embedded");
}

#[test]
fn an_address_that_was_typed_for_a_server_is_not_for_the_other_provider_of_a_module() {
    let address = |config: &str| {
        let args =
            SettingOverrides { base_url: Some("http://typed".to_owned()), ..typed(Some("openai"), None) };
        let config = Config::parse(config).unwrap();
        let settings = Settings::resolve(&args, &config, &|_| None, OverrideScope::Process).unwrap();
        match settings.of_module["m"].model.clone().unwrap().unwrap().provider {
            ProviderChoice::Service(service) => service.base_url,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(address("modules: {m: {provider: anthropic}}\n"), None);
    assert_eq!(address("modules: {m: {provider: openai, model: x}}\n").as_deref(), Some("http://typed"));
    assert_eq!(address("modules: {m: {model: x}}\n").as_deref(), Some("http://typed"));
}

/// Returns the API of each model that module `m` would call.
fn apis(
    flag: Option<OpenAiApi>,
    config: &str,
    scope: OverrideScope<'_>,
) -> Result<Vec<Option<OpenAiApi>>, Failure> {
    let args = SettingOverrides { api: flag, ..SettingOverrides::default() };
    let key = |name: &str| (name == "OPENAI_API_KEY").then(|| "k".to_owned());
    let settings = Settings::resolve(&args, &Config::parse(config).unwrap(), &key, scope)?;
    let api = |choice: &ProviderChoice| match choice {
        ProviderChoice::Service(service) => service.api,
        _ => None,
    };
    if let Some(own) = settings.of_module.get("m").and_then(|own| own.model.clone()) {
        return Ok(vec![api(&own?.provider)]);
    }
    let rungs = settings.rungs.iter().map(|rung| api(&rung.provider));
    Ok(std::iter::once(api(&settings.provider)).chain(rungs).collect())
}

// D-33: the API has the precedence of the model.
#[test]
fn the_api_is_chosen_like_the_model() {
    use OpenAiApi::{Chat, Responses};
    let (run, process) = (OverrideScope::Runs("m"), OverrideScope::Process);
    for (flag, config, scope, expected) in [
        (None, "", run, vec![None]),
        (None, "api: responses\n", run, vec![Some(Responses)]),
        (Some(Chat), "api: responses\n", run, vec![Some(Chat)]),
        (None, "api: responses\nmodules: {m: {api: chat}}\n", run, vec![Some(Chat)]),
        (None, "api: responses\nmodules: {m: {api: chat}}\n", process, vec![Some(Chat)]),
        (Some(Responses), "modules: {m: {api: chat}}\n", run, vec![Some(Responses)]),
        (Some(Responses), "modules: {m: {api: chat}}\n", process, vec![Some(Chat)]),
        // An API next to another provider belongs to that provider.
        (None, "provider: vllm\napi: responses\nmodules: {m: {provider: openai}}\n", run, vec![None]),
        // Of several models, it concerns those with a choice.
        (
            None,
            "providers: [openai/x, anthropic/y, vllm/z]\napi: chat\n",
            run,
            vec![Some(Chat), None, Some(Chat)],
        ),
        (Some(Chat), "providers: [anthropic/y, openai/x]\n", process, vec![None, Some(Chat)]),
        (
            None,
            "providers: [openai/x, vllm/z]\nmodules: {m: {api: chat}}\n",
            run,
            vec![Some(Chat), Some(Chat)],
        ),
        // One that is for all is for those with a choice.
        (None, "api: chat\nmodules: {m: {provider: anthropic}}\n", run, vec![None]),
    ] {
        assert_eq!(apis(flag, config, scope).unwrap(), expected, "{flag:?} {config}");
    }
}

// D-27: an API that chooses nothing is refused.
#[test]
fn d_27_an_api_without_a_choice_is_refused() {
    let (run, process) = (OverrideScope::Runs("m"), OverrideScope::Process);
    let chat = Some(OpenAiApi::Chat);
    for (flag, config, scope, said) in [
        (chat, "provider: anthropic\n", run, "`anthropic` has not both"),
        (chat, "provider: embedded\n", run, "`embedded` has not both"),
        (None, "provider: gemini\napi: chat\n", run, "`gemini` has not both"),
        (None, "modules: {m: {provider: ollama, api: chat}}\n", run, "`ollama` has not both"),
        (chat, "providers: [anthropic/x, embedded/smollm2]\n", run, "none of `providers` has both"),
        (None, "providers: [openai/x]\nmodules: {m: {api: chat}}\n", process, "needs `provider` or `model`"),
    ] {
        let failure = apis(flag, config, scope).unwrap_err();
        assert!(failure.message().contains(said), "{config}: {failure}");
    }
    assert!(Config::parse("api: soap\n").unwrap_err().contains("`chat` or `responses`"));
}
