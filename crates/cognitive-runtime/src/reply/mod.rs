//! The only reader of replies: finds the answer in a model's text, at once or while it is being written (D-01, D-09).
//!
//! `grammar.rs` finds objects in raw text that comes in pieces of any size, `json.rs` reads one of them; both report
//! to a [`JsonListener`]. [`ReplyScanner`] feeds the live readers: the stream and the early stop. `find.rs` pushes
//! the whole text through the same grammar and lets `choose.rs` select the answer. For every text and every split,
//! the objects, the liberties and the verdict are the same.

mod choose;
mod envelope_cursor;
mod event;
mod fence;
mod find;
mod grammar;
mod json;
mod liberty;
mod outline;
mod scanner;
mod skip;
mod strict;
mod string;
mod tags;
#[cfg(test)]
mod tests;
mod token;
mod tree;
mod word;

pub(crate) use self::envelope_cursor::{EnvelopeCursor, EnvelopeMember};
pub use self::event::{Bracket, BreakCause, BrokenValue, JsonEvent, JsonListener, Lead, ReplyFinding};
pub use self::find::Draft;
pub(crate) use self::find::{Leniency, UnreadableReason, UnreadableReply, bounds, find};
pub use self::liberty::{Liberty, LibertyRule};
pub use self::scanner::ReplyScanner;
pub(crate) use self::scanner::scan_text;
pub(crate) use self::tree::ValueTree;
