//! Media in inputs and answers: recognition of items, supported types, limits, and the port that fetches and examines
//! bytes. Does no file or network access, and decodes nothing.

mod answer_media;
mod facts;
mod item;
mod kind;
mod limits;
mod output;
mod port;
mod redaction;
mod upload;

pub use answer_media::{check_output, inline, unfit_bytes};
pub use facts::{MediaFacts, judge, too_large};
pub use item::{Checksum, Item, ItemSource, decoded_length, find};
pub use kind::{Category, MediaType};
pub use limits::MediaLimits;
pub use output::{EmbeddedMedia, MediaLocation, ProducedMedia, embedded_media, find_output, refer};
pub use port::{
    AcceptedForm, FormedMedia, LoadedMedia, MediaPart, MediaSource, Reference, ReportedMedia, UrlFetch,
    WantedMedia,
};
pub(crate) use redaction::hide_in_item;
pub use redaction::{hide_secrets, holds_secrets};
pub use upload::{AnnouncedUpload, KeptUpload, NewUpload, UploadReader, UploadSink, UploadStore};
