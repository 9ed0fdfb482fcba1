//! The pipeline: takes an input and returns one envelope, whatever the model, the network or the caller does.
//!
//! Every surface — command line, HTTP, another module — enters by [`run`](run::run), [`stream()`] or [`repeat()`], a
//! program also by [`run_by_contract`] or [`chunks()`]. It passes a [`Host`]: the library of modules and a provider
//! behind a port. Each stage is one file, in the order of the run. The type that a stage passes to the next can only
//! be built by that stage.
//!
//! Opens no socket and no file itself, reads no environment variable, writes to no terminal. Does not know HTTP
//! status codes, exit codes or MCP. Always returns an [`Envelope`](cognitive_contract::Envelope).
//!
//! # Modules
//!
//! - A run: [`host`] and `run_options` (what a surface passes), [`run`](mod@run) (the entry), `pipeline` (the stages in
//!   order), [`stages`] (one file each), [`receipt`], [`ids`], [`clock`], `time_limit`, `panics`, `canonical`.
//! - Inputs: [`large_json`] (parses very long strings without copies), [`memory_estimate`] (the memory of a parsed text).
//! - Replies: [`reply`] (the only parser of model replies), [`early_stop`] (cancels hopeless calls, if the caller wants
//!   that).
//! - Streams: [`stream`](mod@stream) (an answer in chunks), [`chunks`](mod@chunks) (a run as an async iterator).
//! - Several calls: [`compose`] (modules made of modules), [`repeat`](mod@repeat) (until a condition holds), [`tools`],
//!   [`ladder`] (the model fallback chain), `attempt` (one model: call, verdict, repair prompts), `call_budget` (limits the calls of a run).
//! - Cost and memory: [`cost`] (limits and ceilings), [`run_context`] (stored context), `answer_cache`.
//! - Records: `audit` (the audit log), [`spans`], [`reply_recorder`] (remembers model replies), [`replay`] (answers with saved
//!   replies), [`review`] (human review).
//! - For surfaces: [`preview`](mod@preview) (the prompt without a call), [`declare`] (the capabilities of this
//!   runtime), [`throw`] (failures as Rust errors), `unavailable` (a provider that could not be built).

mod answer_cache;
mod attempt;
mod audit;
mod call_budget;
mod canonical;
pub mod chunks;
pub mod clock;
pub mod compose;
pub mod cost;
pub mod declare;
pub mod early_stop;
pub mod host;
pub mod ids;
pub mod ladder;
pub mod large_json;
pub mod memory_estimate;
mod panics;
mod pipeline;
pub mod preview;
pub mod receipt;
pub mod repeat;
pub mod replay;
pub mod reply;
pub mod reply_recorder;
pub mod review;
pub mod run;
pub mod run_context;
mod run_options;
pub mod spans;
pub mod stages;
pub mod stream;
pub mod throw;
mod time_limit;
pub mod tools;
mod unavailable;

pub use chunks::{Chunks, chunks};
pub use clock::Clock;
pub use cognitive_contract::run_settings::DEFAULT_MAX_CALLS;
pub use cost::{CostCeiling, PartCost};
pub use declare::{CONFORMANCE_LEVEL, Declaration, declaration};
pub use host::{Host, ModelChain, ModuleRef, ModuleSettings, RunOptions, RunPlan, RunRequest, Spending};
pub use ladder::{ClimbRules, Ladder};
pub use preview::{Preview, PreviewedCall, PreviewedPrompt, preview, preview_calls, preview_requests};
pub use repeat::{repeat, repeat_until};
pub use replay::Replay;
pub use reply_recorder::{ReplyRecorder, SeenReplies, SeenReply};
pub use review::Reviewing;
pub use run::{run, run_until};
pub use run_context::RunContext;
pub use spans::SpanParent;
pub use stream::{Delivery, Stream, session_id, stream};
pub use throw::{ModuleFailure, run_by_contract};
pub use unavailable::Unavailable;
