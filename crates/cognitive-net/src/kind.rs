//! The supported services and their facts: names, default models and addresses, and the names of their environment
//! variables. Does not read the variables.

use std::fmt;

use crate::llm::compatible_services::dialect;

// The macro makes the list of all kinds of the same lines as the enum.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident,)*) => {
        /// A kind of provider.
        ///
        /// Exhaustive on purpose: a table of another module, such as the dialects, does not compile while a new kind is
        /// missing in it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        const ALL: &[Kind] = &[$(Kind::$kind),*];
    };
}

kinds! {
    /// OpenAI.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Google Gemini.
    Gemini,
    /// An Ollama server.
    Ollama,
    /// `DeepSeek`.
    DeepSeek,
    /// Qwen, on Alibaba's `DashScope`.
    Qwen,
    /// Moonshot's Kimi.
    Moonshot,
    /// `MiniMax`.
    MiniMax,
    /// Mistral.
    Mistral,
    /// Groq.
    Groq,
    /// `OpenRouter`.
    OpenRouter,
    /// The server of llama.cpp.
    LlamaCpp,
    /// A vLLM server.
    Vllm,
    /// LM Studio.
    LmStudio,
    /// Any service with OpenAI's chat completions API, at a configured address.
    Compatible,
}

/// The facts about a kind.
struct Facts {
    name: &'static str,
    also: &'static [&'static str],
    model: Option<&'static str>,
    base: Option<&'static str>,
    base_variable: &'static str,
    key_variable: Option<&'static str>,
    needs_key: bool,
}

impl Kind {
    /// The services that are chosen by their credentials alone, in this order. A key of another service is ignored: it must
    /// not redirect inputs. (S-07)
    pub const CHOSEN_BY_KEY: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// Returns every kind.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().copied()
    }

    /// Returns the kind with this name. Case and punctuation are ignored.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = plain(name);
        Self::all().find(|kind| {
            let facts = kind.facts();
            plain(facts.name) == name || facts.also.contains(&name.as_str())
        })
    }

    /// Returns the name, which is also the part before the slash in `meta.model`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns the default model; `None` for servers whose models only their operator knows.
    #[must_use]
    pub fn default_model(self) -> Option<&'static str> {
        self.facts().model
    }

    /// Returns the default base URL; `None` for a service at a configured address.
    #[must_use]
    pub fn default_base_url(self) -> Option<&'static str> {
        self.facts().base
    }

    /// Returns the environment variable that overrides the base URL.
    #[must_use]
    pub fn base_url_variable(self) -> &'static str {
        self.facts().base_variable
    }

    /// Returns the environment variable that holds the key.
    #[must_use]
    pub fn key_variable(self) -> Option<&'static str> {
        self.facts().key_variable
    }

    /// Returns whether the service requires a key.
    #[must_use]
    pub fn needs_key(self) -> bool {
        self.facts().needs_key
    }

    /// Returns whether the service has an API of OpenAI: chat completions, and often Responses.
    #[must_use]
    pub fn speaks_openai(self) -> bool {
        dialect(self).is_some()
    }

    /// Returns the name in traces: `gen_ai.provider.name` of the OpenTelemetry conventions, or the own name of a
    /// service that they do not list.
    #[must_use]
    pub fn telemetry_name(self) -> &'static str {
        match self {
            Self::Gemini => "gcp.gemini",
            Self::Mistral => "mistral_ai",
            Self::Moonshot => "moonshot_ai",
            // The conventions use the same word for the first four, and have none for the others.
            Self::OpenAi
            | Self::Anthropic
            | Self::DeepSeek
            | Self::Groq
            | Self::Ollama
            | Self::Qwen
            | Self::MiniMax
            | Self::OpenRouter
            | Self::LlamaCpp
            | Self::Vllm
            | Self::LmStudio
            | Self::Compatible => self.name(),
        }
    }

    fn facts(self) -> Facts {
        match self {
            Self::OpenAi => cloud("openai", "gpt-5.4-mini", "https://api.openai.com/v1", OPENAI),
            Self::Anthropic => Facts {
                also: &["claude"],
                ..cloud("anthropic", "claude-sonnet-5", "https://api.anthropic.com", ANTHROPIC)
            },
            Self::Gemini => Facts {
                also: &["google"],
                ..cloud("gemini", "gemini-flash-latest", "https://generativelanguage.googleapis.com", GEMINI)
            },
            Self::Ollama => OLLAMA,
            Self::DeepSeek => cloud("deepseek", "deepseek-flash", "https://api.deepseek.com", DEEPSEEK),
            Self::Qwen => Facts {
                also: &["dashscope"],
                ..cloud("qwen", "qwen-plus", "https://dashscope.aliyuncs.com/compatible-mode/v1", DASHSCOPE)
            },
            Self::Moonshot => Facts {
                also: &["kimi"],
                ..cloud("moonshot", "kimi-k2.6", "https://api.moonshot.ai/v1", MOONSHOT)
            },
            Self::MiniMax => cloud("minimax", "MiniMax-M3", "https://api.minimax.io/v1", MINIMAX),
            Self::Mistral => cloud("mistral", "mistral-small-latest", "https://api.mistral.ai/v1", MISTRAL),
            Self::Groq => cloud("groq", "openai/gpt-oss-20b", "https://api.groq.com/openai/v1", GROQ),
            // Its router would choose a model whose price is not known before the call.
            Self::OpenRouter => {
                cloud("openrouter", "openai/gpt-5.4-mini", "https://openrouter.ai/api/v1", OPENROUTER)
            }
            // The server serves one model and ignores the name.
            Self::LlamaCpp => Facts {
                model: Some("default"),
                ..local("llama-cpp", "http://127.0.0.1:8080/v1", ("LLAMACPP_API_KEY", "LLAMACPP_BASE_URL"))
            },
            Self::Vllm => local("vllm", "http://127.0.0.1:8000/v1", ("VLLM_API_KEY", "VLLM_BASE_URL")),
            Self::LmStudio => {
                local("lm-studio", "http://127.0.0.1:1234/v1", ("LMSTUDIO_API_KEY", "LMSTUDIO_BASE_URL"))
            }
            Self::Compatible => Facts {
                also: &["openaicompatible", "custom"],
                base: None,
                ..local("compatible", "", ("LLM_API_KEY", "LLM_BASE_URL"))
            },
        }
    }
}

/// Returns a name without case and punctuation.
fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The variables of a service: for its key, and for another base URL.
type Variables = (&'static str, &'static str);

const OPENAI: Variables = ("OPENAI_API_KEY", "OPENAI_BASE_URL");
const ANTHROPIC: Variables = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL");
const GEMINI: Variables = ("GEMINI_API_KEY", "GEMINI_BASE_URL");
const DEEPSEEK: Variables = ("DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL");
const DASHSCOPE: Variables = ("DASHSCOPE_API_KEY", "DASHSCOPE_BASE_URL");
const MOONSHOT: Variables = ("MOONSHOT_API_KEY", "MOONSHOT_BASE_URL");
const MINIMAX: Variables = ("MINIMAX_API_KEY", "MINIMAX_BASE_URL");
const MISTRAL: Variables = ("MISTRAL_API_KEY", "MISTRAL_BASE_URL");
const GROQ: Variables = ("GROQ_API_KEY", "GROQ_BASE_URL");
const OPENROUTER: Variables = ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL");

const OLLAMA: Facts = Facts {
    name: "ollama",
    also: &[],
    model: Some("llama3.2"),
    base: Some("http://127.0.0.1:11434"),
    base_variable: "OLLAMA_HOST",
    key_variable: None,
    needs_key: false,
};

/// A hosted service that requires a key.
fn cloud(name: &'static str, model: &'static str, base: &'static str, variables: Variables) -> Facts {
    let (key, base_variable) = variables;
    Facts {
        name,
        also: &[],
        model: Some(model),
        base: Some(base),
        base_variable,
        key_variable: Some(key),
        needs_key: true,
    }
}

/// A self-hosted server: its key is optional, and only its operator knows its models.
fn local(name: &'static str, base: &'static str, variables: Variables) -> Facts {
    Facts { model: None, needs_key: false, ..cloud(name, "", base, variables) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    // CLI-005: the documented names, and the variables for them.
    #[test]
    fn cli_005_names_and_variables() {
        for (name, kind, key, base) in [
            ("openai", Kind::OpenAi, Some("OPENAI_API_KEY"), "OPENAI_BASE_URL"),
            ("anthropic", Kind::Anthropic, Some("ANTHROPIC_API_KEY"), "ANTHROPIC_BASE_URL"),
            ("minimax", Kind::MiniMax, Some("MINIMAX_API_KEY"), "MINIMAX_BASE_URL"),
            ("gemini", Kind::Gemini, Some("GEMINI_API_KEY"), "GEMINI_BASE_URL"),
            ("ollama", Kind::Ollama, None, "OLLAMA_HOST"),
        ] {
            assert_eq!(Kind::parse(name), Some(kind));
            assert_eq!((kind.key_variable(), kind.base_url_variable()), (key, base));
        }
    }

    #[test]
    fn spellings() {
        for (name, kind) in [
            ("OpenAI", Kind::OpenAi),
            (" claude ", Kind::Anthropic),
            ("llama.cpp", Kind::LlamaCpp),
            ("LM Studio", Kind::LmStudio),
            ("lmstudio", Kind::LmStudio),
            ("openai-compatible", Kind::Compatible),
            ("Kimi", Kind::Moonshot),
        ] {
            assert_eq!(Kind::parse(name), Some(kind), "{name}");
        }
        assert_eq!(Kind::parse("stub"), None);
        assert_eq!(Kind::parse(""), None);
    }

    #[test]
    fn the_tour_and_the_page_on_thinking_name_every_kind() {
        let pages = [
            ("docs/tour.md", include_str!("../../../docs/tour.md")),
            ("docs/thinking.md", include_str!("../../../docs/thinking.md")),
        ];
        for (page, text) in pages.map(|(page, text)| (page, plain(text))) {
            for kind in Kind::all() {
                assert!(text.contains(&plain(kind.name())), "{page} lacks {kind}");
            }
        }
    }

    #[test]
    fn every_kind_is_found_by_its_own_name_and_no_other_is() {
        let names: BTreeSet<&str> = Kind::all().map(Kind::name).collect();
        assert_eq!(names.len(), Kind::all().count());
        assert!(Kind::all().all(|kind| Kind::parse(kind.name()) == Some(kind)));
        assert!(Kind::all().all(|kind| !kind.needs_key() || kind.default_model().is_some()));
    }
}
