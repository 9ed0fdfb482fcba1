//! Fetches media that a caller names by URL, without exposing this machine's network.
//!
//! `address` decides which addresses are public, `rules` which URLs may be fetched, `guard` sends requests, and `get`
//! fetches media. The check applies to the dialled addresses. The client's own resolver returns checked addresses
//! only, each redirect is checked like a new URL, and the connected address is checked again. Media requests use no
//! cookie, no key and no proxy, and nothing is cached. The packages of [`registry`](crate::registry) use the same
//! guard.

mod address;
mod get;
pub(crate) mod guard;
mod rules;

pub use get::Fetcher;
pub use guard::Lookup;
pub use rules::{Policy, Reason, Refusal, check_url};
