//! The embedded model as a provider. Loads its weights at the first call, and reports clearly if that fails.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use cognitive_contract::ports::{
    CallSink, DecodeMode, Destination, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
};
use cognitive_schema::SchemaTarget;
use tokio::sync::mpsc;

use crate::decide::REASONS;
use crate::model::LanguageModel;
use crate::queue::{Job, Queue, QueueLimits, Work, WorkerReport};
use crate::weights_hash::{self, KnownHashes, NoHashMemory};
use crate::worker::LocalWorker;
use cognitive_llama::{Ensemble, Model, WeightsError};

/// The hint for missing or damaged weights.
const HINT: &str = "`cogn model pull [NAME]` fetches them";

/// The default number of parallel requests per core, and its minimum. More would hardly finish sooner, and each holds
/// its keys and values in memory.
const AT_ONCE_PER_CORE: usize = 4;
const LEAST_AT_ONCE: usize = 16;
/// The capabilities that no embedded model offers, and those that a small one does not offer.
const LACKED: [&str; 3] = ["long_context", "function_calling", "vision"];
const LACKED_BY_SMALL: [&str; 4] = ["reasoning", "long_context", "function_calling", "vision"];
/// The least file size, in bytes, of a model that reasons, with any block types.
const LEAST_THAT_REASONS: u64 = 300_000_000;
/// The default number of waiting requests. Later requests are refused at once, which is better than a timeout in the
/// queue.
const DEFAULT_WAITING: usize = 256;

/// The model inside this process: no key, no network, answers bound to the contract token by token.
pub struct EmbeddedProvider {
    model: String,
    /// The file of its weights, with its length and time; empty if they are part of the program.
    file: String,
    worker: Arc<LocalWorker>,
    queue: Arc<Queue>,
    /// The path of the file.
    path: Option<PathBuf>,
    /// True if the model can compare and order; computed at the first use.
    reasons: OnceLock<bool>,
}

/// The reason why the embedded model is unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The file does not exist.
    Missing(PathBuf),
    /// The file cannot be used as a model.
    Load(WeightsError),
    /// The vocabulary cannot be used with a grammar.
    Vocabulary(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "no weights; {HINT}: {}", path.display()),
            Self::Load(WeightsError::Damaged(why)) => write!(f, "the weights are damaged; {HINT}: {why}"),
            Self::Load(error) => write!(f, "the weights cannot be used: {error}"),
            Self::Vocabulary(why) => write!(f, "the vocabulary cannot be used: {why}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl EmbeddedProvider {
    /// Creates the provider for a file, named after the file. Only checks that the file exists; the first call loads
    /// it.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_before(path, Arc::new(NoHashMemory))
    }

    /// Like [`Self::open`], with a `witness` that knows the expected hash of the file.
    pub fn open_before(path: &Path, witness: Arc<dyn KnownHashes>) -> Result<Self, OpenError> {
        if !path.is_file() {
            return Err(OpenError::Missing(path.to_owned()));
        }
        let name =
            path.file_stem().map_or_else(|| "model".to_owned(), |stem| stem.to_string_lossy().into_owned());
        let (path, kept, file) = (path.to_owned(), path.to_owned(), stamp(path));
        let mut model = Self::new(&name, move || {
            Ok(batching(weights_hash::open(&path, &*witness).map_err(OpenError::Load)?))
        });
        (model.file, model.path) = (file, Some(kept));
        Ok(model)
    }

    /// Creates the provider for weights that are part of the program, with their hash.
    #[must_use]
    pub fn from_static(name: &str, bytes: &'static [u8], sha256: &'static str) -> Self {
        Self::new(name, move || {
            let model = Model::from_bytes(bytes).map_err(OpenError::Load)?;
            Ok(batching(model.with_sha256(sha256)))
        })
    }

    pub(crate) fn new(
        name: &str,
        load: impl Fn() -> Result<Arc<dyn LanguageModel>, OpenError> + Send + Sync + 'static,
    ) -> Self {
        let at_once = (cores() * AT_ONCE_PER_CORE).max(LEAST_AT_ONCE);
        Self {
            model: name.to_owned(),
            file: String::new(),
            path: None,
            reasons: OnceLock::new(),
            worker: Arc::new(LocalWorker::new(name, load)),
            queue: Arc::new(Queue::new(QueueLimits { at_once, waiting: DEFAULT_WAITING })),
        }
    }

    /// Returns whether the model is large enough to compare and order. Computed once; for a large file, its header is
    /// read.
    fn reasons(&self) -> bool {
        let look = || {
            let path = self.path.as_deref()?;
            let is_large = path.metadata().ok()?.len() >= LEAST_THAT_REASONS;
            is_large.then(|| Model::parameters_in(path).ok())?
        };
        *self.reasons.get_or_init(|| look().is_some_and(|parameters| parameters >= REASONS))
    }

    /// Returns the provider with another name.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.model);
        Arc::make_mut(&mut self.worker).rename(name);
        self
    }

    /// Returns the provider for a process that answers many requests: 60 ms more at the start, for cheaper tokens.
    #[must_use]
    pub fn for_server(mut self) -> Self {
        Arc::make_mut(&mut self.worker).serve_many();
        self
    }

    /// Returns the provider with other limits: the number of parallel requests, at least one, and of waiting requests.
    /// Further requests get a rate-limit error with a retry time.
    #[must_use]
    pub fn with_places(mut self, at_once: usize, waiting: usize) -> Self {
        self.queue = Arc::new(Queue::new(QueueLimits { at_once, waiting }));
        self
    }

    /// Returns the provider with this memory limit, in bytes, for the keys and values of all parallel requests.
    /// Requests that do not fit wait. A request that exceeds the limit runs alone.
    #[must_use]
    pub fn with_text_memory(mut self, bytes: u64) -> Self {
        Arc::make_mut(&mut self.worker).limit_room(bytes);
        self
    }

    /// Loads the weights now instead of at the first call.
    pub fn load(&self) -> Result<(), OpenError> {
        self.worker.tools().map(drop)
    }

    pub(crate) fn worker(&self) -> &LocalWorker {
        &self.worker
    }
}

/// Creates a model that reads the texts of all requests in batches, with all cores.
fn batching(model: Model) -> Arc<dyn LanguageModel> {
    Arc::new(Ensemble::new(Arc::new(model), cores()))
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Identifies a file of weights without reading it.
fn stamp(path: &Path) -> String {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let meta = path.metadata().ok();
    let length = meta.as_ref().map(std::fs::Metadata::len);
    let changed = meta.and_then(|meta| meta.modified().ok());
    format!("{} {length:?} {changed:?}", real.display())
}

impl Drop for EmbeddedProvider {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl fmt::Debug for EmbeddedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("model", &self.model).finish_non_exhaustive()
    }
}

impl Provider for EmbeddedProvider {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn identity(&self) -> String {
        format!("{} {}", self.file, self.model)
    }

    fn target(&self) -> Option<SchemaTarget> {
        Some(SchemaTarget::Grammar)
    }

    fn capabilities(&self) -> &[&str] {
        &["json_mode", "seed", "offline"]
    }

    /// A small model labels and copies. For other tasks it repeats its examples, which is worse than no answer.
    fn lacks(&self) -> &[&str] {
        if self.reasons() { &LACKED } else { &LACKED_BY_SMALL }
    }

    fn destination(&self) -> Option<Destination> {
        Some(Destination { model: Some(self.model.clone()), address: None })
    }

    fn is_local(&self) -> bool {
        true
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            let (reports, mut inbox) = mpsc::unbounded_channel();
            let left = Departure(Arc::default());
            let job = Job {
                call: call.clone(),
                deadline: Instant::now().checked_add(call.timeout),
                cancelled: Arc::clone(&left.0),
                reports,
            };
            let worker = Arc::clone(&self.worker);
            let work: Arc<Work> = Arc::new(move |job, queue| worker.serve(job, queue));
            self.queue.push(job, &work)?;
            sink.decode_mode(call.schema.as_ref().map_or(DecodeMode::JsonMode, |_| DecodeMode::Grammar));
            while let Some(report) = inbox.recv().await {
                match report {
                    WorkerReport::Piece(text) => sink.piece(&text),
                    WorkerReport::Attempt(attempt) => sink.attempt(attempt),
                    WorkerReport::End(end) => return end,
                }
            }
            Err(ProviderError::Unexpected("the embedded model stopped unexpectedly".to_owned()))
        })
    }
}

/// Notifies the worker when the caller is gone.
struct Departure(Arc<AtomicBool>);

impl Drop for Departure {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
