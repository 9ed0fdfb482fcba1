//! The law of Cognitive Modules, as code.
//!
//! A *module* is an AI task with a contract: a manifest says what it may do, a prompt tells the model what to do,
//! a schema says what goes in and out. Whatever happens, a run answers with one [`envelope`]:
//! `{ok, meta, data}` or `{ok: false, meta, error, partial_data?}`. Middleware routes on `meta` — how sure
//! ([`Confidence`]), how risky ([`Risk`]), in one line why — and never needs to read `data`.
//!
//! Read the modules below in order and you know the domain:
//!
//! 1. [`code`] — every published error code and whose fault it is; [`failure`] — a run that did not work out.
//! 2. [`meta`], [`envelope`] — the answer, valid by construction, and the check of foreign answers.
//! 3. [`format`](mod@format), [`manifest`] — how a module is written down, and what holds where the author is silent.
//! 4. [`module`] — manifest, compiled contract ([`cognitive_schema`]) and prompt together, judging answers.
//! 5. The laws about answers: [`insights`] (insights), [`risk`] (aggregation), [`tier`] (the exec gate),
//!    [`repair`] (form, never meaning), [`wrap_v21`] (old answers).
//! 6. [`media`] — pictures, sound, film and documents. [`context`] — what a run may know besides its input. [`policy`] — tools and callers; [`capabilities`] — what a runtime can do and what it does when asked for more;
//!    [`compose`] — modules made of modules; [`json_cmp`] — when two values are the same;
//!    [`json`] — how texts are parsed; [`numbers`] — when reading would change a number; [`tools`] — what a model may call while it works; [`ports`] — what the runtime needs from outside. [`stream`] — an answer in pieces, written and read by one definition.
//!    [`thinking`] — a bounded thought before the answer. [`trained`] — what a model has learned from labelled cases.
//!
//! [`run_settings`] — the options of a run and the rule that merges them. [`review`] — answers that people judge, and what that says about confidence; [`archive`] — questions about past runs.
//! [`workshop`] — the files of modules for those who change them. [`address`] — addresses and paths as others may read them. [`editor_schema`] — schemas as editors want them.
//! [`built`] — what a text takes once it is read. [`SharedText`] — texts that many calls send, written once.
//!
//! This crate does no I/O: it opens no file and no socket, reads no clock and no environment, prints nothing.
//! What needs a door to the outside is handed in. It never panics on anything that a caller, a module author or a
//! model can influence.
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
pub use risk_level::Risk;
pub use run_settings::RunSettings;
pub use shared_text::SharedText;
pub use violation::Violation;
