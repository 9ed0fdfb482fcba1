//! The duration of audio and video, independent of their headers.

use std::time::Duration;

use cognitive_contract::media::MediaType;

use crate::support::timed_media::{mp3, mp4, ogg, wav, webm};
use crate::support::{code, examine};

async fn milliseconds(bytes: &[u8], kind: MediaType) -> u128 {
    examine(bytes, kind).await.unwrap().duration.unwrap().as_millis()
}

#[tokio::test]
async fn media_006_packets_are_counted_not_headers_believed() {
    assert_eq!(milliseconds(&mp3(40), MediaType::Mp3).await, 40 * 1152 * 1000 / 44_100);
    let tagged = [b"ID3\x04\0\0\0\0\0\x10title and artist".to_vec(), mp3(40)].concat();
    assert_eq!(milliseconds(&tagged, MediaType::Mp3).await, 40 * 1152 * 1000 / 44_100);
    assert_eq!(milliseconds(&ogg(50), MediaType::Ogg).await, 1_000);
    assert_eq!(milliseconds(&webm(false, 50), MediaType::WebmAudio).await, 1_000);
    assert_eq!(milliseconds(&webm(true, 50), MediaType::WebmVideo).await, 1_000);
    assert_eq!(milliseconds(&mp4(b"isom", 50, (320, 240)), MediaType::Mp4).await, 5_000);
    assert_eq!(milliseconds(&mp4(b"qt  ", 50, (320, 240)), MediaType::Quicktime).await, 5_000);
    assert_eq!(milliseconds(&wav(8_000, 8_000), MediaType::Wav).await, 1_000);
}

#[tokio::test]
async fn media_006_too_long_is_e1011() {
    assert_eq!(code(examine(&wav(8_000, 8_000 * 600), MediaType::Wav).await), "ok");
    assert_eq!(code(examine(&wav(8_000, 8_000 * 660), MediaType::Wav).await), "E1011");
    // 23,000 frames of 26 ms are too long. The byte count cannot tell, because it depends on the codec.
    assert_eq!(code(examine(&mp3(23_000), MediaType::Mp3).await), "E1011");
    assert_eq!(code(examine(&mp4(b"isom", 3_000, (320, 240)), MediaType::Mp4).await), "ok");
    assert_eq!(code(examine(&mp4(b"isom", 3_001, (320, 240)), MediaType::Mp4).await), "E1011");
}

#[tokio::test]
async fn ext_media_the_size_of_a_film_is_known() {
    let facts = examine(&mp4(b"isom", 50, (3840, 2160)), MediaType::Mp4).await.unwrap();
    assert_eq!(facts.size, Some((3840, 2160)));
    assert_eq!(examine(&webm(true, 5), MediaType::WebmVideo).await.unwrap().size, Some((320, 240)));
    assert_eq!(code(examine(&mp4(b"isom", 50, (3841, 2160)), MediaType::Mp4).await), "E1015");
}

#[tokio::test]
async fn a_recording_that_breaks_off_has_ended_there() {
    let whole = webm(false, 50);
    let facts = examine(&whole[..whole.len() * 3 / 4], MediaType::WebmAudio).await.unwrap();
    assert!(facts.duration.unwrap() > Duration::from_millis(200));
    assert!(facts.duration.unwrap() < Duration::from_secs(1));
}

#[tokio::test]
async fn sec_003_film_is_no_sound_and_sound_no_film() {
    assert_eq!(code(examine(&webm(true, 5), MediaType::WebmAudio).await), "E1014");
    assert_eq!(code(examine(&webm(false, 5), MediaType::WebmVideo).await), "E1014");
    assert_eq!(code(examine(&mp4(b"qt  ", 5, (8, 8)), MediaType::Mp4).await), "E1014");
}
