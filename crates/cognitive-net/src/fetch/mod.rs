//! Media that a caller only names: a URL becomes bytes, without becoming a way into the network of this machine.
//!
//! `address` says which addresses are public, `rules` which URLs may be fetched, `guard` sends requests, `get` fetches media.
//! The check is made on the addresses that are dialled: the client's own resolver hands on only what was judged, a redirect
//! starts over, and the other end of the connection is looked at once more. Media carry no cookie, no key and no proxy, and
//! nothing is kept. The packages of [`registry`](crate::registry) pass the same guard.

mod address;
mod get;
pub(crate) mod guard;
mod rules;

pub use get::Fetcher;
pub use guard::Lookup;
pub use rules::{Policy, Reason, Refusal, check_url};
