//! Where a worker answers a request: prompt, grammar, session, text, report. One try, unless the grammar is such that its
//! end is not certain; then nothing is said before it is known. Refuses a contract that no grammar can keep: every answer
//! from here is lawful.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use cognitive_contract::ports::{
    Attempt, DecodeMode, FailedTry, FailureKind, ModelEnd, ProviderError, Usage,
};
use cognitive_schema::ProviderSchema;
use serde_json::{Value, json};

use crate::chat::{self, ChatForm, ChatPrompt};
use crate::decide::Decisions;
use crate::generate::{GenerateRequest, Generated, Halt, compose};
use crate::grammar::{Grammar, Guide};
use crate::model::LanguageModel;
use crate::provider::OpenError;
use crate::queue::{Job, Queue, WorkerReport};
use crate::sessions::IdleSessions;
use crate::utf8::Characters;
use cognitive_llama::FeedError;

/// The longest answer where nobody said.
const DEFAULT_BUDGET: u64 = 512;
/// The seed where nobody said. Any number will do, as long as it is always the same.
const DEFAULT_SEED: u64 = 2_718_281_828;
/// How often an answer without a certain end is tried.
const MAX_TRIES: u64 = 3;

type Load = dyn Fn() -> Result<Arc<dyn LanguageModel>, OpenError> + Send + Sync;

/// Everything that workers share.
#[derive(Clone)]
pub(crate) struct LocalWorker {
    model: String,
    load: Arc<Load>,
    threads: usize,
    slices: bool,
    tools: OnceLock<Result<Arc<LoadedModel>, OpenError>>,
}

/// What there is once the weights are loaded.
pub(crate) struct LoadedModel {
    weights: Arc<dyn LanguageModel>,
    guide: Guide,
    sessions: Mutex<IdleSessions>,
}

impl LocalWorker {
    pub(crate) fn new(
        model: &str,
        load: impl Fn() -> Result<Arc<dyn LanguageModel>, OpenError> + Send + Sync + 'static,
        threads: usize,
    ) -> Self {
        Self { model: model.to_owned(), load: Arc::new(load), threads, slices: false, tools: OnceLock::new() }
    }

    pub(crate) fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.model);
    }

    /// From now on there are as many workers as cores, so each computes alone.
    pub(crate) fn serve_many(&mut self) {
        (self.threads, self.slices, self.tools) = (1, true, OnceLock::new());
    }

    /// The weights and what belongs to them, loaded at the first call.
    pub(crate) fn tools(&self) -> Result<&Arc<LoadedModel>, OpenError> {
        let load = || {
            let weights = (self.load)()?;
            let guide = Guide::new(Arc::clone(&weights), self.slices).map_err(OpenError::Vocabulary)?;
            Ok(Arc::new(LoadedModel { weights, guide, sessions: Mutex::default() }))
        };
        self.tools.get_or_init(load).as_ref().map_err(Clone::clone)
    }

    /// Answers one request.
    pub(crate) fn serve(&self, job: &Job, queue: &Queue) -> Result<ModelEnd, ProviderError> {
        let began = Instant::now();
        if job.is_late() {
            return Err(ProviderError::Timeout);
        }
        let answer = match job.call.schema.as_deref().and_then(broken_promise) {
            // Known before the weights are, and whatever they are.
            Some(why) => Err(ProviderError::Unsupported(why)),
            None => {
                let tools = self.tools().map_err(|error| ProviderError::Unavailable(error.to_string()))?;
                JobRun { desk: self, tools, job, queue, began }.answer()
            }
        };
        answer.inspect_err(|error| {
            let mut attempt = Attempt::new(DecodeMode::Grammar, error.to_string(), began.elapsed());
            // There is no key here that could be wrong: it is the file that will not do.
            let unfit = matches!(error, ProviderError::Misconfigured(_) | ProviderError::Unavailable(_));
            attempt.failed = unfit.then(|| FailedTry::new(FailureKind::Unsuitable));
            job.report(WorkerReport::Attempt(attempt));
        })
    }
}

/// What is to be written, whatever the dice.
struct Task<'a> {
    grammar: &'a Grammar,
    prompt: &'a ChatPrompt,
    decisions: &'a Decisions,
    budget: usize,
}

/// One request at the desk.
struct JobRun<'a> {
    desk: &'a LocalWorker,
    tools: &'a LoadedModel,
    job: &'a Job,
    queue: &'a Queue,
    began: Instant,
}

impl JobRun<'_> {
    fn answer(&mut self) -> Result<ModelEnd, ProviderError> {
        let call = &self.job.call;
        let any_object = json!({ "type": "object", "x-guidance": { "whitespace_flexible": false } });
        let schema: &Value = call.schema.as_ref().map_or(&any_object, |lowered| &lowered.schema);
        let grammar = self.tools.guide.grammar(schema);
        let grammar = grammar.map_err(|refusal| ProviderError::Unsupported(refusal.to_string()))?;
        let form = ChatForm::of(self.tools.weights.chat_template(), self.tools.weights.vocabulary())?;
        let marks = form.marks(self.tools.weights.vocabulary())?;
        let prompt = chat::prompt(call, &marks);
        let wanted = usize::try_from(call.max_output_tokens.unwrap_or(DEFAULT_BUDGET)).unwrap_or(usize::MAX);
        let shortest = grammar.shortest.unwrap_or(0);
        let budget = chat::room(&prompt, self.tools.weights.context_length(), shortest, wanted)?;
        let seed = call.seed.unwrap_or(DEFAULT_SEED);
        let (decisions, read) = self.decide(&grammar).map_err(|halt| self.failure(halt))?;
        let task = Task { grammar: &grammar, prompt: &prompt, decisions: &decisions, budget };
        let written = match grammar.shortest {
            Some(_) => self.stream(&task, seed),
            None => self.try_again(&task, seed),
        };
        let written = written.map_err(|halt| self.failure(halt))?;
        let read = read + if written.asked { prompt.tokens.len() } else { 0 };
        Ok(self.end(read, written))
    }

    /// What the contract wants decided, and how many tokens were read for it. A text that does not fit is left to the
    /// writer.
    fn decide(&self, grammar: &Grammar) -> Result<(Decisions, usize), Halt> {
        if !Decisions::are_wanted(&grammar.schema) {
            return Ok((Decisions::default(), 0));
        }
        let mut session = Arc::clone(&self.tools.weights).session(self.desk.threads);
        let vocabulary = self.tools.weights.vocabulary();
        let input = &self.job.call.input;
        match Decisions::make(&grammar.schema, input, &mut *session, vocabulary, &|| self.must_stop()) {
            Ok(made) => Ok(made),
            Err(FeedError::Full) => Ok((Decisions::default(), 0)),
            Err(FeedError::Cancelled) => Err(Halt::Stopped),
        }
    }

    fn must_stop(&self) -> bool {
        self.queue.sweep();
        self.job.is_cancelled() || self.job.is_late()
    }

    /// An answer that is heard while it is written.
    fn stream(&self, task: &Task<'_>, seed: u64) -> Result<Generated, Halt> {
        let mut characters = Characters::default();
        self.write(task, seed, &mut |bytes| {
            let text = characters.push(bytes);
            if !text.is_empty() {
                self.job.report(WorkerReport::Piece(text));
            }
        })
    }

    /// An answer that is heard when it is whole, since it may not get there: then other dice are tried.
    fn try_again(&self, task: &Task<'_>, seed: u64) -> Result<Generated, Halt> {
        let mut last = Halt::Stopped;
        for again in 0..MAX_TRIES {
            let mut text = Vec::new();
            let written = self.write(task, seed.wrapping_add(again), &mut |bytes| {
                text.extend_from_slice(bytes);
            });
            match written {
                Ok(written) => {
                    self.job.report(WorkerReport::Piece(String::from_utf8_lossy(&text).into_owned()));
                    return Ok(written);
                }
                Err(Halt::Stopped) => return Err(Halt::Stopped),
                Err(halt) => last = halt,
            }
        }
        Err(last)
    }

    fn write(&self, task: &Task<'_>, seed: u64, out: &mut dyn FnMut(&[u8])) -> Result<Generated, Halt> {
        let vocabulary = self.tools.weights.vocabulary();
        let order = GenerateRequest {
            grammar: task.grammar,
            vocabulary,
            prompt: &task.prompt.tokens,
            input: &self.job.call.input,
            decisions: task.decisions,
            budget: task.budget,
            temperature: self.job.call.temperature,
            seed,
        };
        let mut session = self.sessions().take(task.prompt, &self.tools.weights, self.desk.threads);
        let written = compose(&mut *session, &order, &|| self.must_stop(), out);
        self.sessions().give_back(session);
        written
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, IdleSessions> {
        // Whatever panicked, the sessions in the list are whole.
        self.tools.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self, halt: Halt) -> ProviderError {
        match halt {
            Halt::Stopped if self.job.is_late() => ProviderError::Timeout,
            Halt::Stopped => ProviderError::Interrupted("the caller no longer waits for it".to_owned()),
            Halt::Lost(why) => ProviderError::Interrupted(why),
        }
    }

    fn end(&self, read: usize, written: Generated) -> ModelEnd {
        let mut outcome = "ok".to_owned();
        if written.closed {
            outcome.push_str("; brought to an end at the token limit");
        }
        let decode = self.job.call.schema.as_ref().map_or(DecodeMode::JsonMode, |_| DecodeMode::Grammar);
        self.job.report(WorkerReport::Attempt(Attempt::new(decode, outcome, self.began.elapsed())));
        let mut end = ModelEnd::complete(&self.desk.model, decode);
        end.usage = Some(Usage { input_tokens: read as u64, output_tokens: written.tokens as u64 });
        end.confidence_from = written.confidence_from;
        end.weights_sha256 = self.tools.weights.sha256().map(str::to_owned);
        end
    }
}

/// What of a contract the grammar does not know, if an answer could break it.
fn broken_promise(lowered: &ProviderSchema) -> Option<String> {
    let first = lowered.gaps().next()?;
    let path = if first.path.is_empty() { "/" } else { &first.path };
    let others = match lowered.gaps().count() - 1 {
        0 => String::new(),
        1 => ", and one more".to_owned(),
        count => format!(", and {count} more"),
    };
    Some(format!("the grammar cannot express `{}` at `{path}`{others}", first.keyword))
}
