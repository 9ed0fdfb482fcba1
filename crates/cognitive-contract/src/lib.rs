//! The rules of Cognitive Modules, as code: error codes, envelopes, manifests, policies and the ports of the
//! runtime.
//!
//! A *module* is an AI task with a contract. Its manifest says what the module may do, its prompt tells the
//! model what to do, and its schema describes input and output. Every run answers with one [`envelope`]:
//! `{ok, meta, data}` or `{ok: false, meta, error, partial_data?}`. Middleware routes on `meta` and never needs
//! to read `data`: `meta` holds the [`Confidence`], the [`Risk`] and a one-line explanation.
//!
//! Suggested reading order:
//!
//! 1. [`code`]: every published error code and who has to act on it. [`failure`]: a failed run. [`violation`]:
//!    one broken rule.
//! 2. [`meta`], [`envelope`]: the answer, valid by construction, and the check of answers from elsewhere.
//!    [`envelope_schema`]: the same contract as a JSON Schema.
//! 3. [`format`](mod@format), [`manifest`]: the file formats of a module and the defaults of its manifest.
//! 4. [`module`]: manifest, compiled contract ([`cognitive_schema`]) and prompt together. It checks answers.
//! 5. Rules about answers: [`insights`] (observations beyond the schema), [`risk`] (aggregation), [`tier`] (the
//!    `exec` gate), [`repair`] (form, never meaning), [`wrap_v21`] (answers of older formats).
//! 6. Building blocks of a run: [`media`], [`context`] (data besides the input), [`tools`], [`policy`] (allowed tools
//!    and callers), [`capabilities`] (what a runtime supports), [`compose`] (modules made of modules),
//!    [`thinking`] (a bounded thought before the answer), [`trained`] (weights learned from labelled cases),
//!    [`stream`] (an answer in chunks).
//! 7. [`ports`]: the traits that a runtime implements or receives; [`batch_service`], [`spending`] and [`span`]
//!    are further ones.
//!
//! [`run_settings`] — the options of a run and the rule that merges them. [`review`] — answers that people judge, and what that says about confidence; [`archive`] — questions about past runs.
//! [`workshop`] — the files of modules for those who change them. [`address`] — addresses and paths as others may read them. [`editor_schema`] — schemas as editors want them.
//! [`recorded_reply`] — what a model wrote, kept so that it is read the same way again.
//! [`built`] — what a text takes once it is read. [`SharedText`] — texts that many calls send, written once.
//!
//! - JSON: [`json`] (strict parsing), [`json_cmp`] (equality and order), [`numbers`] (numbers that parsing
//!   would change), [`large_json`] (very long strings), [`built`] (memory of a parsed text), [`editor_schema`].
//! - Cost: [`money`], [`prices`].
//! - Records: [`archive`] (queries about past runs), [`review`] (human decisions and calibration), [`trace`].
//! - Text: [`text`], [`address`] (URLs and paths without secrets), [`SharedText`] (a text that many calls
//!   send).
//! - Files: [`workshop`] (editing modules and their cases).
//!
//! This crate does no I/O: it opens no file and no socket, reads no clock and no environment, and prints
//! nothing. Everything external is passed in. It never panics on data that a caller, a module author
//! or a model controls.
//!
//! ```
//! use cognitive_contract::Envelope;
//! use serde_json::json;
//!
//! let answer = json!({
//!     "ok": true,
//!     "meta": { "confidence": 0.92, "risk": "low", "explain": "Two issues found" },
//!     "data": { "rationale": "Line 3 builds SQL from user input." }
//! });
//! assert!(Envelope::from_value(answer).is_ok());
//!
//! let vague = json!({ "ok": true, "meta": { "confidence": "high" }, "data": {} });
//! let violations = Envelope::from_value(vague).unwrap_err();
//! assert_eq!(violations.len(), 4); // confidence, risk, explain and rationale, all at once
//! ```

pub mod code;
pub mod failure;
pub mod violation;

pub mod envelope;
pub mod envelope_schema;
pub mod meta;

pub mod editor_schema;
pub mod format;
pub mod manifest;
pub mod module;
pub mod trained;

pub mod insights;
pub mod repair;
pub mod risk;
mod risk_level;
pub mod tier;
pub mod wrap_v21;

pub mod address;
pub mod archive;
mod audit;
pub mod batch_service;
pub mod built;
pub mod capabilities;
pub mod compose;
pub mod context;
pub mod json;
pub mod json_cmp;
pub mod large_json;
pub mod media;
pub mod money;
pub mod numbers;
pub mod policy;
pub mod prices;
pub mod review;
pub mod run_settings;
pub mod spending;
pub mod stream;
pub mod thinking;

mod part_journal;
mod port_future;
pub mod ports;
mod provider_error;
pub mod recorded_reply;
mod shared_text;
pub mod span;
pub mod text;
pub mod tools;
pub mod trace;
mod usage;
pub mod workshop;

pub use capabilities::Capabilities;
pub use code::ErrorCode;
pub use envelope::{Envelope, Outcome};
pub use failure::Failure;
pub use format::Format;
pub use manifest::Manifest;
pub use meta::{Confidence, Meta, Warning};
pub use module::{Enforcement, Module, WorkedExample};
pub use recorded_reply::RecordedReply;
pub use risk_level::Risk;
pub use run_settings::RunSettings;
pub use shared_text::SharedText;
pub use violation::Violation;
