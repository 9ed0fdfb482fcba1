//! Builds a provider from a configuration. Validates what it can without a request: the key exists, the address is a
//! URL, a model is named. Reads no environment variables and no files.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use cognitive_contract::media::Category;
use cognitive_contract::ports::{Provider, ProviderError};
use cognitive_ports::openai_api::OpenAiApi;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::kind::Kind;
use crate::llm::anthropic::{self, Anthropic};
use crate::llm::compatible_services::dialect;
use crate::llm::gemini::Gemini;
use crate::llm::ollama::{self, Ollama};
use crate::llm::openai::OpenAi;
use crate::llm::remote::Remote;
use crate::llm::responses::{Responses, api_for};
use crate::llm::terms::Memory;
use crate::llm::{Endpoint, Wire};
use crate::redact::Redactor;
use crate::retry::{Pause, RealPause};
use crate::secret::Secret;
use crate::service::Service;

/// The configuration of a provider: model, address and key.
#[derive(Clone)]
#[non_exhaustive]
pub struct ProviderConfig {
    /// The kind of provider.
    pub kind: Kind,
    /// The model; `None` for the default of the kind.
    pub model: Option<String>,
    /// The key.
    pub key: Option<Secret>,
    /// The base URL; `None` for the default of the kind. For [`Kind::Ollama`] a host is enough.
    pub base_url: Option<String>,
    /// The API of a service that has both of OpenAI's; `None` for the one that the model needs.
    pub api: Option<OpenAiApi>,
    /// The media kinds that the model accepts; `None` for those that its service documents. Only the operator of a
    /// local server knows which media its model supports.
    pub media: Option<Vec<Category>>,
    /// The proxy setting.
    pub proxies: Proxies,
    /// Allows sending the key over `http://` to another machine, where the network path can read it.
    pub plain_http: bool,
    /// The clock and jitter for the pauses between attempts.
    pub pause: Arc<dyn Pause>,
}

/// The proxy setting of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Proxies {
    /// Uses the proxies of the environment: `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`.
    #[default]
    OfTheMachine,
    /// Connects directly to the service.
    None,
}

impl ProviderConfig {
    /// Creates a configuration with the default model and address of the kind, and without a key.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            model: None,
            key: None,
            base_url: None,
            api: None,
            media: None,
            proxies: Proxies::default(),
            plain_http: false,
            pause: Arc::new(RealPause),
        }
    }

    /// Sets the model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(mut self, key: Option<Secret>) -> Self {
        self.key = key;
        self
    }

    /// Sets the base URL.
    #[must_use]
    pub fn with_base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// Sets the API of a service that has both of OpenAI's.
    #[must_use]
    pub fn with_api(mut self, api: OpenAiApi) -> Self {
        self.api = Some(api);
        self
    }

    /// Sets the media kinds that the model accepts.
    #[must_use]
    pub fn with_media(mut self, media: impl Into<Vec<Category>>) -> Self {
        self.media = Some(media.into());
        self
    }

    /// Sets the proxy setting.
    #[must_use]
    pub fn with_proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Allows sending the key over `http://` to another machine. Intended for private networks.
    #[must_use]
    pub fn with_plain_http(mut self) -> Self {
        self.plain_http = true;
        self
    }

    /// Sets the clock and jitter for the pauses between attempts.
    #[must_use]
    pub fn with_pause(mut self, pause: Arc<dyn Pause>) -> Self {
        self.pause = pause;
        self
    }
}

/// Shows no key, not even one in the address.
impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let redactor = Redactor::new(self.key.as_ref(), None);
        f.debug_struct("ProviderConfig")
            .field("kind", &self.kind)
            .field("model", &self.model)
            .field("key", &self.key)
            .field("base_url", &self.base_url.as_deref().map(|base| redactor.clean(base)))
            .field("api", &self.api)
            .field("proxies", &self.proxies)
            .finish_non_exhaustive()
    }
}

/// Builds a provider. Fails with [`ProviderError::Misconfigured`] if a setting is missing or invalid. Makes no
/// request.
pub fn provider(config: ProviderConfig) -> Result<Arc<dyn Provider>, ProviderError> {
    Ok(Arc::new(remote(&config)?))
}

/// Builds a provider like [`provider`], but with its fields visible to the crate.
pub(crate) fn remote(config: &ProviderConfig) -> Result<Remote, ProviderError> {
    let base = base(config)?;
    if sends_unprotected(config, &base) {
        let host = base.host_str().unwrap_or_default();
        let text = format!("would send its key over `http://`, where others can read it, to: `{host}`");
        return Err(config_error(config, &text));
    }
    let wire = wire(config, &base)?;
    let service = Service::new(&base, proxies(config.proxies, &base))?;
    let endpoint = wire.endpoint();
    let mut posted = endpoint.headers.clone();
    posted.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(Remote {
        name: config.kind.name(),
        calls: service.place(&endpoint.calls, &posted)?,
        list: service.place(&endpoint.list, &endpoint.headers)?,
        service,
        memory: Memory::new(wire.ladder(), wire.target(), wire.unsupported_features())
            .without_tools(wire.unsupported_with_tools()),
        wire,
        redactor: Redactor::new(config.key.as_ref(), Some(&base)),
        pause: Arc::clone(&config.pause),
        media: config.media.clone(),
        destination: OnceLock::new(),
    })
}

/// Disables proxies for a model on this machine: a proxy would resolve the loopback address to itself.
pub(crate) fn proxies(wanted: Proxies, base: &Url) -> Proxies {
    if is_loopback(base) { Proxies::None } else { wanted }
}

/// Returns whether a URL points to this machine.
pub(crate) fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Returns whether a provider's address points to this machine, so that no data leaves it.
#[must_use]
pub fn is_on_this_machine(kind: Kind, base_url: &str) -> bool {
    parse_base(kind, base_url).is_ok_and(|base| is_loopback(&base))
}

/// Returns whether a provider is refused because its key would be sent over `http://` to another machine.
#[must_use]
pub fn is_unprotected(config: &ProviderConfig) -> bool {
    base(config).is_ok_and(|base| sends_unprotected(config, &base))
}

/// Returns whether a key, or credentials in the address, would be sent over `http://` to another machine without
/// permission.
fn sends_unprotected(config: &ProviderConfig, base: &Url) -> bool {
    let carries_key = config.key.is_some() || !base.username().is_empty() || base.password().is_some();
    carries_key && base.scheme() == "http" && !is_loopback(base) && !config.plain_http
}

fn wire(config: &ProviderConfig, base: &Url) -> Result<Box<dyn Wire>, ProviderError> {
    let model = model(config)?;
    let headers = headers(config)?;
    if config.api.is_some() && !config.kind.speaks_openai() {
        return Err(config_error(config, "has its own API, so `api` has no effect"));
    }
    Ok(match (config.kind, dialect(config.kind)) {
        (Kind::Anthropic, _) => {
            let base = without_end(base, "/v1");
            let mut list = join(&base, "/v1/models");
            list.query_pairs_mut().append_pair("limit", "1000");
            let calls = join(&base, "/v1/messages");
            Box::new(Anthropic { endpoint: Endpoint { model, calls, list, headers } })
        }
        (Kind::Gemini, _) => {
            let base = without_end(base, "/v1beta");
            let model = model.strip_prefix("models/").unwrap_or(&model).to_owned();
            let mut calls = join(&base, &format!("/v1beta/models/{model}:streamGenerateContent"));
            calls.query_pairs_mut().append_pair("alt", "sse");
            let mut list = join(&base, "/v1beta/models");
            list.query_pairs_mut().append_pair("pageSize", "1000");
            Box::new(Gemini { endpoint: Endpoint { model, calls, list, headers } })
        }
        (kind, Some(dialect)) => {
            let api = api_for(config.api, kind, base, &model);
            let endpoint = openai_endpoint(api, model, base, headers);
            match api {
                OpenAiApi::Chat => Box::new(OpenAi { dialect, endpoint }),
                OpenAiApi::Responses => Box::new(Responses { dialect, endpoint }),
            }
        }
        (Kind::Ollama, None) => {
            let base = without_end(base, "/api");
            let (calls, list) = (join(&base, "/api/chat"), join(&base, "/api/tags"));
            Box::new(Ollama { endpoint: Endpoint { model, calls, list, headers } })
        }
        // A test builds every kind.
        (_, None) => return Err(config_error(config, "has no protocol in this version")),
    })
}

fn openai_endpoint(api: OpenAiApi, model: String, base: &Url, headers: HeaderMap) -> Endpoint {
    // Users sometimes paste the full endpoint URL.
    let base = OpenAiApi::ALL.iter().fold(base.clone(), |base, api| without_end(&base, api.path()));
    let (calls, list) = (join(&base, api.path()), join(&base, "/models"));
    Endpoint { model, calls, list, headers }
}

fn model(config: &ProviderConfig) -> Result<String, ProviderError> {
    let named = config.model.as_deref().map(str::trim).filter(|model| !model.is_empty());
    let model = named.or(config.kind.default_model());
    model.map(str::to_owned).ok_or_else(|| config_error(config, "has no default model: name one"))
}

fn base(config: &ProviderConfig) -> Result<Url, ProviderError> {
    let given = config.base_url.as_deref().map(str::trim).filter(|base| !base.is_empty());
    let Some(text) = given.or(config.kind.default_base_url()) else {
        let text = format!("has no default address: set `{}`", config.kind.base_url_variable());
        return Err(config_error(config, &text));
    };
    // The address may contain a password, so the message does not repeat it.
    parse_base(config.kind, text).map_err(|why| config_error(config, why))
}

fn parse_base(kind: Kind, text: &str) -> Result<Url, &'static str> {
    let text = text.trim();
    let text = if kind == Kind::Ollama { ollama::base_of_host(text) } else { text.to_owned() };
    let url = Url::parse(&text).map_err(|_| "has an address that is not a URL")?;
    let usable = matches!(url.scheme(), "http" | "https") && url.has_host();
    usable.then_some(url).ok_or("has an address that is not `http://` or `https://`")
}

/// Returns the headers of every request. The key is marked sensitive, so that it is never printed.
fn headers(config: &ProviderConfig) -> Result<HeaderMap, ProviderError> {
    let mut headers = HeaderMap::new();
    let (name, prefix) = match config.kind {
        Kind::Anthropic => {
            headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
            (HeaderName::from_static("x-api-key"), "")
        }
        Kind::Gemini => (HeaderName::from_static("x-goog-api-key"), ""),
        Kind::OpenAi
        | Kind::Ollama
        | Kind::DeepSeek
        | Kind::Qwen
        | Kind::Moonshot
        | Kind::MiniMax
        | Kind::Mistral
        | Kind::Groq
        | Kind::OpenRouter
        | Kind::LlamaCpp
        | Kind::Vllm
        | Kind::LmStudio
        | Kind::Compatible => (AUTHORIZATION, "Bearer "),
    };
    let Some(key) = &config.key else {
        return if config.kind.needs_key() { Err(no_key(config)) } else { Ok(headers) };
    };
    let value = HeaderValue::from_str(&format!("{prefix}{}", key.reveal()));
    let mut value = value
        .map_err(|_| config_error(config, "has a key with characters that an HTTP header cannot contain"))?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(headers)
}

fn no_key(config: &ProviderConfig) -> ProviderError {
    let variable = config.kind.key_variable().unwrap_or_default();
    config_error(config, &format!("needs a key: set `{variable}`"))
}

fn config_error(config: &ProviderConfig, why: &str) -> ProviderError {
    ProviderError::Misconfigured(format!("{} {why}", config.kind))
}

/// Appends to the path and keeps the query, which some gateways require.
fn join(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url
}

/// Removes a path suffix that will be appended again.
fn without_end(base: &Url, end: &str) -> Url {
    let mut url = base.clone();
    let path = base.path().trim_end_matches('/');
    url.set_path(path.strip_suffix(end).unwrap_or(path));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(kind: Kind, base: Option<&str>, model: &str) -> Result<Remote, ProviderError> {
        let config = ProviderConfig::new(kind).with_model(model).with_key(Secret::new("k3y-of-ours"));
        remote(&ProviderConfig { base_url: base.map(str::to_owned), ..config.with_plain_http() })
    }

    #[test]
    fn addresses_in_every_form_that_people_use() {
        for (kind, base, expected) in [
            (Kind::OpenAi, None, "https://api.openai.com/v1/chat/completions"),
            (Kind::OpenAi, Some("http://h/v1/"), "http://h/v1/chat/completions"),
            (Kind::Vllm, Some("http://h/v1/chat/completions"), "http://h/v1/chat/completions"),
            (
                Kind::Compatible,
                Some("https://h/x?api-version=2"),
                "https://h/x/chat/completions?api-version=2",
            ),
            (Kind::Anthropic, None, "https://api.anthropic.com/v1/messages"),
            (Kind::Anthropic, Some("https://h/claude/v1"), "https://h/claude/v1/messages"),
            (
                Kind::Gemini,
                Some("https://h/v1beta/"),
                "https://h/v1beta/models/m:streamGenerateContent?alt=sse",
            ),
            (Kind::Ollama, Some("gpu"), "http://gpu:11434/api/chat"),
            (Kind::Ollama, Some("http://gpu:1/api"), "http://gpu:1/api/chat"),
        ] {
            let remote = built(kind, base, "m").unwrap();
            assert_eq!(remote.wire.endpoint().calls.as_str(), expected);
        }
    }

    #[test]
    fn a_model_of_google_may_be_named_either_way() {
        let remote = built(Kind::Gemini, None, "models/gemini x").unwrap();
        assert!(
            remote.wire.endpoint().calls.path().ends_with("/v1beta/models/gemini%20x:streamGenerateContent")
        );
    }

    #[test]
    fn a_model_on_this_machine_needs_no_proxy() {
        for (base, expected) in [
            ("http://localhost:1", Proxies::None),
            ("http://127.0.0.2:1", Proxies::None),
            ("http://[::1]:1", Proxies::None),
            ("http://gpu.local", Proxies::OfTheMachine),
            ("https://10.0.0.1", Proxies::OfTheMachine),
        ] {
            let url = Url::parse(base).unwrap();
            assert_eq!(proxies(Proxies::OfTheMachine, &url), expected, "{base}");
        }
    }

    #[test]
    fn a_key_goes_over_http_to_this_machine_only() {
        let with = |base: &str| {
            ProviderConfig::new(Kind::Vllm)
                .with_model("m")
                .with_base_url(base)
                .with_key(Secret::new("k3y-of-ours"))
        };
        for base in [
            "http://h/v1",
            "http://10.0.0.1",
            "http://0.0.0.0",
            "http://127.0.0.1.nip.io",
            "http://localhost.evil",
        ] {
            let error = provider(with(base)).err().unwrap().to_string();
            assert!(error.contains("would send its key over `http://`"), "{base}: {error}");
            assert!(is_unprotected(&with(base)) && provider(with(base).with_plain_http()).is_ok(), "{base}");
            let keyless = ProviderConfig { key: None, ..with(base) };
            assert!(provider(keyless).is_ok(), "{base}");
        }
        for base in [
            "https://h/v1",
            "http://localhost:1",
            "http://127.9.9.9",
            "http://[::1]",
            "http://0x7f.1",
            "http://[::ffff:127.0.0.1]",
        ] {
            assert!(provider(with(base)).is_ok(), "{base}");
        }
        let inside = ProviderConfig::new(Kind::Vllm).with_model("m").with_base_url("http://me:pa55word@h");
        let error = provider(inside).err().unwrap().to_string();
        assert!(error.ends_with("to: `h`"), "{error}");
    }

    fn complaint(config: ProviderConfig) -> String {
        provider(config).err().unwrap().to_string()
    }

    // S-07: a named provider without credentials is an error, never a silent fallback to another one.
    #[test]
    fn what_is_missing_is_said_with_its_remedy() {
        let new = ProviderConfig::new;
        for (config, text) in [
            (new(Kind::OpenAi), "openai needs a key: set `OPENAI_API_KEY`"),
            (new(Kind::Compatible).with_model("m"), "compatible has no default address: set `LLM_BASE_URL`"),
            (new(Kind::Vllm), "vllm has no default model: name one"),
            (new(Kind::Vllm).with_base_url("nonsense"), "vllm has an address that is not a URL"),
            (
                new(Kind::Vllm).with_base_url("ftp://h").with_model("m"),
                "vllm has an address that is not `http://` or `https://`",
            ),
            (
                new(Kind::OpenAi).with_key(Secret::new("a\nb")),
                "openai has a key with characters that an HTTP header cannot contain",
            ),
        ] {
            assert_eq!(complaint(config), format!("provider refused the request: {text}"));
        }
        assert!(provider(new(Kind::Ollama)).is_ok());
        for kind in Kind::all() {
            let config = new(kind)
                .with_model("m")
                .with_key(Secret::new("k-of-a-test"))
                .with_base_url("http://127.0.0.1:9");
            assert!(provider(config).is_ok(), "{kind} has no protocol in `wire`");
        }
    }

    // ERR-015: neither a configuration nor a header shows the key.
    #[test]
    fn err_015_a_configuration_shows_no_key() {
        for kind in Kind::all() {
            let config = ProviderConfig::new(kind)
                .with_model("m")
                .with_key(Secret::new("k3y-of-ours"))
                .with_base_url("https://me:pa55word@h/v1?key=qu3ry");
            let remote = remote(&config).unwrap();
            let shown = format!("{config:?} {:?}", remote.wire.endpoint().headers);
            for secret in ["k3y-of-ours", "pa55word", "qu3ry"] {
                assert!(!shown.contains(secret), "{shown}");
            }
        }
    }
}
