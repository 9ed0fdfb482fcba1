//! Context: named, explicit information for a run in addition to its input.
//!
//! A caller passes context as the input member `_context`, an object keyed by type. A module passes context on as
//! `_emitted_context`. [`builder`] builds `_context`. [`prepare()`] separates it from the input and decides what the
//! model sees, with the help of [`sanitise`]. [`emit`] decides which context of an answer is passed on.
//! [`key`](mod@key) computes the key under which it is stored, [`entry`] its lifetime and owner. [`flow`] decides who
//! sees it among modules that call modules.
//!
//! Does no I/O and reads no clock: callers pass in times and hashes. Drops everything that a module does not declare,
//! and never puts a caller's value into a message.

pub mod builder;
pub mod emit;
pub mod entry;
pub mod flow;
pub mod key;
mod prepare;
pub mod sanitise;

pub use builder::{ContextBuilder, Role, Turn};
pub use emit::{Emission, Origin, check_emission, not_context};
pub use entry::{Caps, ContextEntry, ContextFilter, ContextScope, Owner, Ttl, choose, usable};
pub use flow::{ContextFlow, split_updates};
pub use key::{Key, Variables, key};
pub use prepare::{
    Access, GivenInput, PreparedInput, declares, label, prepare, prepare_given, prepare_text, visible_to,
    without_context,
};
pub use sanitise::Sanitiser;

use crate::meta::Warning;
use crate::text::cut;

/// The input member that carries context.
pub const MEMBER: &str = "_context";

/// The envelope member that passes context on.
pub const EMITTED: &str = "_emitted_context";

/// The code of context notices in `meta.warnings`.
const NOTICE: &str = "CONTEXT";

/// The most names that a notice quotes, and the most characters of each. They come from callers and models, so they
/// need a limit.
const SHOWN: usize = 5;
const MAX_LENGTH: usize = 64;

/// Builds one notice about several types; `None` if there are none.
fn notice<'a>(what: &str, kinds: impl IntoIterator<Item = &'a str>) -> Option<Warning> {
    let kinds: Vec<&str> = kinds.into_iter().collect();
    if kinds.is_empty() {
        return None;
    }
    let mut names: Vec<String> =
        kinds.iter().take(SHOWN).map(|kind| format!("`{}`", cut(kind, MAX_LENGTH))).collect();
    if kinds.len() > SHOWN {
        names.push(format!("and {} more", kinds.len() - SHOWN));
    }
    Some(Warning::new(NOTICE, format!("{what}: {}", names.join(", "))))
}

#[cfg(test)]
mod tests;
