//! Media that a caller only names: a URL becomes bytes, without becoming a way into the network of this machine.
//!
//! `address` says which addresses are public, `rules` which URLs may be fetched, `get` fetches. The check is made on the
//! addresses that are dialled: the client's own resolver hands on only what was judged, a redirect starts over, and the
//! other end of the connection is looked at once more. Carries no cookie, no key and no proxy, and keeps nothing.

mod address;
mod get;
mod rules;

pub use get::{Fetcher, Lookup};
pub use rules::{Policy, Reason, Refusal, check_url};
