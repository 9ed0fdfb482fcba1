//! Media: what bytes are, what they weigh, and a form that a provider takes.
//!
//! [`Media`] is the port [`MediaSource`](cognitive_contract::media::MediaSource) of the contract. It gets bytes from
//! files, from uploads and, by way of a port, from addresses; it looks into them without decoding them; and it brings
//! them into a form that fits: upright, one frame, no larger than needed, without notes about where they were taken.
//!
//! Everything here reads what strangers send. Sizes are judged before anything is decoded, every decoder has a limit of
//! memory, a panic ends in E1013, and documents are read in a process of their own ([`worker`]) that can be ended.

mod checksum;
mod fault;
mod files;
mod image;
mod pdf;
mod platform;
mod reader;
mod sniff;
mod sound;
mod source;
mod uploads;
pub mod worker;

pub use source::{Documents, Media};
pub use uploads::{UploadLimits, Uploads};
pub use worker::Worker;
