//! Run Cognitive Modules, AI tasks with a contract, from a Rust program.
//!
//! ```
//! use cogn::{Runtime, json};
//!
//! #[tokio::main]
//! async fn main() -> cogn::Result<()> {
//!     let runtime = Runtime::from_env()?; // modules, provider and stores as the command line has them
//!     let input = json!({ "text": "What a wonderful day, everything went well!" });
//!     let envelope = runtime.module("text-classifier")?.input(input).run().await; // an envelope, always
//!     match envelope.into_result() {
//!         Ok(data) => println!("{}", data["sentiment"]),
//!         Err(failure) => println!("{failure:?}"), // its code, what happened, and a hint
//!     }
//!     Ok(())
//! }
//! ```
//!
//! A [`Runtime`] has modules, a provider, stores and limits. [`Runtime::from_env`] resolves them like the command line
//! does; [`Runtime::builder`] takes them one by one and reads nothing else. [`Runtime::module`] prepares a run; its
//! answer is an [`Envelope`], whole or as a [`Stream`] of [`Chunk`]s. [`Envelope::data_as`] deserializes it into a type
//! of the program. A [`Failure`] is an error with a published code and a hint. The folder `examples` shows each of them,
//! a custom [`Provider`] and a custom [`Tool`].
//!
//! The crate `cognitive-setup` reads flags, environment and configuration; this crate exports a part of it. The file
//! `public-api.txt` lists all public items.
//!
//! # Features
//!
//! All are on by default. `net`: model services, media by address, the export of spans. `local`: the embedded model.
//! `media`: media in inputs. `store`: audit and stored context. Without a feature everything compiles, and a call that
//! needs it fails with a reason.

pub use cognitive_setup::{ModuleRun, Result, Runtime, RuntimeBuilder};

pub use cognitive_contract::money::Money;
pub use cognitive_contract::policy::ToolClass;
pub use cognitive_contract::ports::{
    CallSink, DecodeMode, Event, EventSink, Finish, ModelCall, ModelEnd, ModuleSource, PortFuture, Provider,
    ProviderError, Usage,
};
pub use cognitive_contract::stream::Chunk;
pub use cognitive_contract::tools::{
    FUNCTION_CALLING, Tool, ToolCall, ToolError, ToolReply, ToolRound, ToolSpec,
};
pub use cognitive_contract::{
    Confidence, Envelope, ErrorCode, Failure, Meta, Module, Outcome, Risk, Warning,
};
pub use futures_util::{Stream, StreamExt};
pub use serde_json::{Value, json};
