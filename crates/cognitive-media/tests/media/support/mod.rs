//! Generated files of every type, and the media port under test.

pub mod documents;
pub mod pictures;

use bytes::Bytes;
use cognitive_contract::Failure;
use cognitive_contract::media::{
    AcceptedForm, FormedMedia, MediaFacts, MediaLimits, MediaSource, MediaType, judge,
};
use cognitive_media::{Documents, Media, Worker};
pub use cognitive_testkit::timed_media;

/// The port, with a separate process for documents.
pub fn media() -> Media {
    let program = env!("CARGO_BIN_EXE_cognitive-media-worker");
    Media::new(Documents::InWorker(Worker::new(program.into(), &[])))
}

/// Examines an item as the runtime does before it selects a provider.
pub async fn examine(bytes: &[u8], claimed: MediaType) -> Result<MediaFacts, Failure> {
    let facts = media().examine(Bytes::copy_from_slice(bytes), claimed).await?;
    judge(&facts, &MediaLimits::default())?;
    Ok(facts)
}

/// Examines and converts an item as the runtime does.
pub async fn fit(bytes: &[u8], claimed: MediaType, form: &AcceptedForm) -> Result<FormedMedia, Failure> {
    let facts = examine(bytes, claimed).await?;
    media().fit(Bytes::copy_from_slice(bytes), &facts, Some(form)).await
}

/// Returns the code of a failure, or `ok`.
pub fn code<T>(result: Result<T, Failure>) -> &'static str {
    result.map_or_else(|failure| failure.code().number(), |_| "ok")
}

/// The types that most providers accept.
pub const USUAL: &[MediaType] = &[MediaType::Png, MediaType::Jpeg, MediaType::Webp, MediaType::Gif];

/// A valid file of every type.
pub fn samples() -> Vec<(MediaType, Vec<u8>)> {
    vec![
        (MediaType::Png, pictures::png(8, 6)),
        (MediaType::Jpeg, pictures::jpeg(40, 30)),
        (MediaType::Gif, pictures::gif(3)),
        (MediaType::Webp, pictures::webp(8, 6)),
        (MediaType::Mp3, timed_media::mp3(40)),
        (MediaType::Wav, timed_media::wav(8_000, 8_000)),
        (MediaType::Ogg, timed_media::ogg(50)),
        (MediaType::WebmAudio, timed_media::webm(false, 50)),
        (MediaType::WebmVideo, timed_media::webm(true, 50)),
        (MediaType::Mp4, timed_media::mp4(b"isom", 50, (320, 240))),
        (MediaType::Quicktime, timed_media::mp4(b"qt  ", 50, (320, 240))),
        (MediaType::Pdf, documents::with_text("Hello")),
    ]
}
