//! The rules of Cognitive Modules, as code: error codes, envelopes, manifests, policies and the ports of the
//! runtime.
//!
//! A *module* is an AI task with a contract. Its manifest says what the module may do, its prompt tells the
//! model what to do, and its schema describes input and output. Every run answers with one [`envelope`]:
//! `{ok, meta, data}` or `{ok: false, meta, error, partial_data?}`. Middleware routes on `meta` and never needs
//! to read `data`: `meta` holds the [`Confidence`], the [`Risk`] and a one-line explanation.
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
//!
//! # Modules
//!
//! In reading order:
//!
//! 1. Errors: [`code`] (every published error code and who has to act on it), [`failure`] (a failed run), [`violation`]
//!    (one broken rule).
//! 2. Answers: [`meta`], [`envelope`] (valid by construction), [`envelope_schema`] (the same contract as a JSON
//!    Schema).
//! 3. Files: [`format`](mod@format), [`manifest`] (settings with all defaults applied), [`editor_schema`] (schemas for
//!    editors).
//! 4. [`module`]: manifest, compiled contract ([`cognitive_schema`]) and prompt together. It checks answers.
//! 5. Rules about answers: [`insights`] (observations beyond the schema), [`risk`] (aggregation; `risk_level` has the
//!    levels), [`tier`] (the gate of strict modules), [`repair`] (form, never meaning), [`wrap_v21`] (answers of older
//!    formats).
//! 6. Parts of a run: [`media`], [`context`] (information besides the input), [`tools`], [`policy`] (allowed tools and
//!    callers), [`capabilities`] (what a runtime supports), [`compose`] (modules made of modules), [`thinking`] (a
//!    bounded thought before the answer), [`trained_model`] (weights learned from labelled cases), [`stream`] (an answer in
//!    chunks), [`run_settings`] (the options of a run, and how they are merged).
//! 7. Ports: [`ports`] (the traits that a runtime implements or receives), [`span`] (spans for a collector),
//!    `part_journal`, `provider_error` and `port_future`.
//! 8. Records: `audit` and `usage`, [`money`], [`trace`] (the tree of a run), [`recorded_reply`].
//! 9. JSON and text: [`json`] (strict parsing), [`json_cmp`] (equality and order), [`numbers`] (numbers that parsing
//!    would change), [`text`], `shared_text` ([`SharedText`], a text that many calls send), [`address`] (URLs and paths
//!    without secrets).
//! 10. [`lock`] (a mutex without poisoning).

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
pub mod trained_model;

pub mod insights;
pub mod repair;
pub mod risk;
mod risk_level;
pub mod tier;
pub mod wrap_v21;

pub mod address;
mod audit;
pub mod capabilities;
pub mod compose;
pub mod context;
pub mod json;
pub mod json_cmp;
pub mod lock;
pub mod media;
pub mod money;
pub mod numbers;
pub mod policy;
pub mod run_settings;
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
