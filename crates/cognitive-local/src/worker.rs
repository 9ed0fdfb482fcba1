//! Answers one request in a worker: prompt, grammar, memory, text, report. Many workers run in parallel, and the model
//! reads their texts in batches. There is one try, unless the grammar has no certain end; then nothing is reported
//! before the answer is complete. Refuses a contract that no grammar can enforce, so every answer is valid.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use cognitive_contract::ports::{
    Attempt, DecodeMode, FailedTry, FailureKind, ModelEnd, ProviderError, Usage,
};
use cognitive_contract::thinking::ThoughtOutcome;
use cognitive_schema::ProviderSchema;
use serde_json::{Value, json};

use crate::beginnings::{Beginnings, PromptText};
use crate::chat::{self, ChatForm, ChatPrompt, TurnMarks};
use crate::decide::{DecisionRequest, Decisions, JudgeProfile, trained_for};
use crate::generate::{GenerateRequest, GenerationResult, Halt, compose};
use crate::grammar::{Grammar, Guide};
use crate::model::LanguageModel;
use crate::provider::OpenError;
use crate::queue::{Job, Queue, WorkerReport};
use crate::text_memory::TextMemory;
use crate::thought::{self, Thought, ThoughtForm, ThoughtRequest};
use crate::utf8::Characters;
use cognitive_llama::FeedError;

/// The default token limit of an answer. Without it, a small model may write until its context is full.
const DEFAULT_BUDGET: u64 = 512;
/// The default seed. Any constant is fine.
const DEFAULT_SEED: u64 = 2_718_281_828;
/// The number of tries for an answer without a certain end. Each try costs as much as the first one.
const MAX_TRIES: u64 = 3;
/// The default memory for keys and values, in bytes. Requests beyond it wait, because the system would otherwise end
/// the process.
const DEFAULT_ROOM: u64 = 1 << 30;

type Load = dyn Fn() -> Result<Arc<dyn LanguageModel>, OpenError> + Send + Sync;

/// The state shared by all workers.
#[derive(Clone)]
pub(crate) struct LocalWorker {
    pub(crate) model: String,
    load: Arc<Load>,
    slices: bool,
    /// The memory for keys and values of all texts, in bytes.
    room: u64,
    tools: OnceLock<Result<Arc<LoadedModel>, OpenError>>,
}

/// The loaded weights, and the state that depends on them.
pub(crate) struct LoadedModel {
    pub(crate) weights: Arc<dyn LanguageModel>,
    pub(crate) guide: Guide,
    pub(crate) beginnings: Beginnings,
    room: TextMemory,
}

#[cfg(test)]
impl LoadedModel {
    /// The number of requests that wait for memory.
    pub(crate) fn waiting_for_room(&self) -> usize {
        self.room.waiting_requests()
    }
}

impl LocalWorker {
    pub(crate) fn new(
        model: &str,
        load: impl Fn() -> Result<Arc<dyn LanguageModel>, OpenError> + Send + Sync + 'static,
    ) -> Self {
        let (model, load) = (model.to_owned(), Arc::new(load));
        Self { model, load, slices: false, room: DEFAULT_ROOM, tools: OnceLock::new() }
    }

    pub(crate) fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.model);
    }

    /// Optimises for cheap tokens at the cost of a longer start.
    pub(crate) fn serve_many(&mut self) {
        (self.slices, self.tools) = (true, OnceLock::new());
    }

    /// Sets the memory limit for keys and values, in bytes.
    pub(crate) fn limit_room(&mut self, bytes: u64) {
        (self.room, self.tools) = (bytes, OnceLock::new());
    }

    /// Returns the loaded model; loads it at the first call.
    pub(crate) fn tools(&self) -> Result<&Arc<LoadedModel>, OpenError> {
        let load = || {
            let weights = (self.load)()?;
            let guide = Guide::new(Arc::clone(&weights), self.slices).map_err(OpenError::Vocabulary)?;
            let tokens = usize::try_from(self.room / weights.bytes_per_token().max(1)).unwrap_or(usize::MAX);
            let (beginnings, room) = (Beginnings::default(), TextMemory::new(tokens));
            Ok(Arc::new(LoadedModel { weights, guide, beginnings, room }))
        };
        self.tools.get_or_init(load).as_ref().map_err(Clone::clone)
    }

    /// Answers one request.
    pub(crate) fn serve(&self, job: &Job, queue: &Queue) -> Result<ModelEnd, ProviderError> {
        let began = Instant::now();
        if job.is_late() {
            return Err(ProviderError::Timeout);
        }
        let answer = match job.call.schema.as_deref().and_then(unenforced_parts) {
            // Checked before the weights are loaded, because it does not depend on them.
            Some(why) => Err(ProviderError::Unsupported(why)),
            None => {
                let tools = self.tools().map_err(|error| ProviderError::Unavailable(error.to_string()))?;
                JobRun { worker: self, tools, job, queue, began }.answer()
            }
        };
        answer.inspect_err(|error| {
            let mut attempt = Attempt::new(DecodeMode::Grammar, error.to_string(), began.elapsed());
            // There is no key that could be wrong: the file itself is unsuitable.
            let unfit = matches!(error, ProviderError::Misconfigured(_) | ProviderError::Unavailable(_));
            attempt.failed = unfit.then(|| FailedTry::new(FailureKind::Unsuitable));
            job.report(WorkerReport::Attempt(attempt));
        })
    }
}

/// The document to write, independent of the seed.
struct Task<'a> {
    grammar: &'a Grammar,
    prompt: &'a ChatPrompt,
    decisions: &'a Decisions,
    budget: usize,
}

/// One request in a worker.
struct JobRun<'a> {
    worker: &'a LocalWorker,
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
        let form =
            ChatForm::from_template(self.tools.weights.chat_template(), self.tools.weights.vocabulary())?;
        let marks = form.marks(self.tools.weights.vocabulary())?;
        let mut prompt = chat::prompt(call, &marks);
        let wanted = usize::try_from(call.max_output_tokens.unwrap_or(DEFAULT_BUDGET)).unwrap_or(usize::MAX);
        let shortest = grammar.shortest.unwrap_or(0);
        let budget = chat::room(&prompt, self.tools.weights.context_length(), shortest, wanted)?;
        let thought = self.thought_limit(&prompt, budget);
        // The texts of decisions and thoughts are never longer than this.
        let needed = prompt.tokens.len() + budget + thought.map_or(0, |limit| limit + thought::MAX_MARKS);
        let share = self.tools.room.take(needed, &|| self.must_stop());
        let _share = share.ok_or_else(|| self.failure(Halt::Stopped))?;
        let (decisions, read) = self.decide(&grammar, &marks).map_err(|halt| self.failure(halt))?;
        let fixed = prompt.tokens.get(..prompt.fixed).unwrap_or_default();
        let mut text = self.tools.beginnings.text(fixed, &self.tools.weights);
        let thought = match thought {
            Some(limit) => {
                prompt = chat::prompt(call, &marks.with_opening(form.thought_form().opening));
                Some(self.think(&mut text, form.thought_form(), &mut prompt, limit)?)
            }
            None => None,
        };
        let task = Task { grammar: &grammar, prompt: &prompt, decisions: &decisions, budget };
        let written = match grammar.shortest {
            Some(_) => self.stream(&mut text, &task),
            None => self.try_again(&mut text, &task),
        };
        let written = written.map_err(|halt| self.failure(halt))?;
        // Tokens that the model wrote itself are counted as output.
        let own = thought.as_ref().map_or(0, |thought| thought.written);
        let asked = written.asked || thought.is_some();
        let read = read + if asked { prompt.tokens.len().saturating_sub(own) } else { 0 };
        Ok(self.end(read, written, thought.as_ref()))
    }

    fn seed(&self) -> u64 {
        self.job.call.seed.unwrap_or(DEFAULT_SEED)
    }

    /// Returns the token limit of the thought, if one is requested and fits. The answer has priority over the thought.
    fn thought_limit(&self, prompt: &ChatPrompt, budget: usize) -> Option<usize> {
        let wanted = self.job.call.thinking.map_or(0, |tokens| tokens as usize);
        let taken = prompt.tokens.len().saturating_add(budget).saturating_add(thought::MAX_MARKS);
        let limit = wanted.min(self.tools.weights.context_length().saturating_sub(taken));
        Some(limit).filter(|limit| *limit > 0)
    }

    /// Lets the model think first. The thought becomes part of the prompt.
    fn think(
        &self,
        text: &mut PromptText<'_>,
        form: ThoughtForm,
        prompt: &mut ChatPrompt,
        limit: usize,
    ) -> Result<Thought, ProviderError> {
        let request = ThoughtRequest {
            vocabulary: self.tools.weights.vocabulary(),
            prompt: &prompt.tokens,
            form,
            limit,
            temperature: self.job.call.temperature,
            seed: self.seed(),
        };
        text.rewind_to(&prompt.tokens);
        let thought = thought::think(text, &request, &|| self.must_stop());
        let thought = thought.map_err(|halt| self.failure(halt))?;
        prompt.tokens.extend_from_slice(&thought.tokens);
        Ok(thought)
    }

    /// Makes the decisions of the contract, and returns them with the number of tokens read. If the text does not fit,
    /// the decisions are left to the writer.
    fn decide(&self, grammar: &Grammar, marks: &TurnMarks<'_>) -> Result<(Decisions, usize), Halt> {
        if !Decisions::are_requested(&grammar.schema) {
            return Ok((Decisions::default(), 0));
        }
        let (call, weights) = (&self.job.call, &self.tools.weights);
        let request = DecisionRequest {
            schema: &grammar.schema,
            input: &call.input,
            examples: &call.examples,
            marks,
            vocabulary: weights.vocabulary(),
            profile: JudgeProfile::for_parameters(weights.parameters()),
            trained: trained_for(&call.trained, weights.sha256()),
        };
        let begin = |fixed: &[u32]| self.tools.beginnings.text(fixed, weights);
        match Decisions::make(&request, begin, &|| self.must_stop()) {
            Ok(made) => Ok(made),
            Err(FeedError::Full) => Ok((Decisions::default(), 0)),
            Err(FeedError::Cancelled) => Err(Halt::Stopped),
        }
    }

    fn must_stop(&self) -> bool {
        self.queue.sweep();
        self.job.is_cancelled() || self.job.is_late()
    }

    /// Writes an answer that is streamed.
    fn stream(&self, reading: &mut PromptText<'_>, task: &Task<'_>) -> Result<GenerationResult, Halt> {
        let mut characters = Characters::default();
        self.write(reading, task, self.seed(), &mut |bytes| {
            let text = characters.push(bytes);
            if !text.is_empty() {
                self.job.report(WorkerReport::Piece(text));
            }
        })
    }

    /// Writes an answer that is reported when complete, because a try may fail: then another seed is used.
    fn try_again(&self, reading: &mut PromptText<'_>, task: &Task<'_>) -> Result<GenerationResult, Halt> {
        let mut last = Halt::Stopped;
        for again in 0..MAX_TRIES {
            let mut text = Vec::new();
            let written = self.write(reading, task, self.seed().wrapping_add(again), &mut |bytes| {
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

    fn write(
        &self,
        reading: &mut PromptText<'_>,
        task: &Task<'_>,
        seed: u64,
        out: &mut dyn FnMut(&[u8]),
    ) -> Result<GenerationResult, Halt> {
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
        reading.rewind_to(&task.prompt.tokens);
        compose(reading, &order, &|| self.must_stop(), out)
    }

    fn failure(&self, halt: Halt) -> ProviderError {
        match halt {
            Halt::Stopped if self.job.is_late() => ProviderError::Timeout,
            Halt::Stopped => {
                ProviderError::Interrupted("the caller no longer waits for the answer".to_owned())
            }
            Halt::Lost(why) => ProviderError::Interrupted(why),
        }
    }

    fn end(&self, read: usize, written: GenerationResult, thought: Option<&Thought>) -> ModelEnd {
        let mut outcome = "ok".to_owned();
        if written.closed {
            outcome.push_str("; completed at the token limit");
        }
        let decode = self.job.call.schema.as_ref().map_or(DecodeMode::JsonMode, |_| DecodeMode::Grammar);
        self.job.report(WorkerReport::Attempt(Attempt::new(decode, outcome, self.began.elapsed())));
        let mut end = ModelEnd::complete(&self.worker.model, decode);
        let thoughts = thought.map_or(0, |thought| thought.written);
        let usage = Usage::new(read as u64, (written.tokens + thoughts) as u64);
        end.usage = Some(usage.with_thoughts(thoughts as u64));
        end.thinking = self.job.call.thinking.map(|tokens| match (tokens, thought) {
            (0, _) => ThoughtOutcome::Off,
            (_, None) => ThoughtOutcome::Ignored,
            (_, Some(thought)) if thought.closed => ThoughtOutcome::Closed,
            (_, Some(_)) => ThoughtOutcome::Ended,
        });
        end.confidence_from = written.confidence_from;
        end.weights_sha256 = self.tools.weights.sha256().map(str::to_owned);
        end
    }
}

/// Describes the parts of a contract that the grammar cannot enforce, if there are any.
fn unenforced_parts(lowered: &ProviderSchema) -> Option<String> {
    let first = lowered.gaps().next()?;
    let path = if first.path.is_empty() { "/" } else { &first.path };
    let others = match lowered.gaps().count() - 1 {
        0 => String::new(),
        1 => ", and one more".to_owned(),
        count => format!(", and {count} more"),
    };
    Some(format!("the grammar cannot express `{}` at `{path}`{others}", first.keyword))
}
