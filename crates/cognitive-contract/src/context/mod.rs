//! Context: what a run may know besides its input, said openly and by name.
//!
//! A caller hands context in as the input member `_context`, an object keyed by type; a module hands context on as
//! `_emitted_context`. The way of it: [`builder`] makes it, [`prepare()`] takes it aside and decides what the model
//! sees ([`sanitise`]), [`emit`] decides what of an answer is handed on, [`key`](mod@key) says under which name it is
//! kept, [`entry`] how long and for whom, [`flow`] who sees it among modules that call modules.
//!
//! Does no I/O and asks no clock: time and hashes are handed in. Refuses to let anything through that a module does
//! not declare, and never puts a value of a caller into a message.

pub mod builder;
pub mod emit;
pub mod entry;
pub mod flow;
pub mod key;
mod prepare;
pub mod sanitise;

pub use builder::{ContextBuilder, Role, Turn};
pub use emit::{Emission, Origin, emitted};
pub use entry::{Caps, ContextEntry, ContextFilter, ContextScope, Owner, Ttl, choose, usable};
pub use flow::{ContextFlow, handed_on};
pub use key::{Key, Variables, key};
pub use prepare::{
    Access, GivenInput, Prepared, declares, label, prepare, prepare_given, prepare_text, visible_to,
    without_context,
};
pub use sanitise::Sanitiser;

use crate::meta::Warning;
use crate::text::cut;

/// The member of an input that carries context.
pub const MEMBER: &str = "_context";

/// The member of an envelope that hands context on.
pub const EMITTED: &str = "_emitted_context";

/// The word of notices about context in `meta.warnings`.
const NOTICE: &str = "CONTEXT";

/// Names that a notice quotes, and characters of each: they come from callers and models.
const SHOWN: usize = 5;
const MAX_LENGTH: usize = 64;

/// One notice about several types; `None` if there are none.
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
