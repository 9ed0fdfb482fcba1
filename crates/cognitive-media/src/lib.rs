//! Media: recognises types, measures items, and converts them to a form that a provider accepts.
//!
//! [`Media`] implements the port [`MediaSource`](cognitive_contract::media::MediaSource) of the contract. It reads
//! bytes from files, from uploads and, through a port, from URLs. It inspects them without decoding. It converts
//! pictures: upright, one frame, no larger than needed, without metadata such as the location.
//!
//! All input is untrusted. Sizes are checked before decoding, every decoder has a memory limit, and a panic becomes
//! E1013. Documents are read in a separate process ([`worker`]) that can be killed.
//!
//! # Modules
//!
//! - The port: `source` loads, recognises and converts items. `files` opens files safely, and `uploads` stores uploads.
//! - Recognition: `sniff` (types by their bytes), `sound` (duration of audio and video), `reader` and `checksum`.
//! - Conversion: `image` (reads, rotates, strips and scales images), `pdf` (reads documents, in the process of
//!   [`worker`]).
//! - `fault` has the errors of this crate, `platform` the system-specific code.

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
