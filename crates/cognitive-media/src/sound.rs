//! Audio and video: the duration, and the frame size of video. Counts packets and decodes none. Ignores the duration in
//! headers, with one exception: the data length of a WAV, which may claim more than the file has.

use std::io::Cursor;
use std::time::Duration;

use bytes::Bytes;
use cognitive_contract::Failure;
use cognitive_contract::media::{Category, MediaFacts, MediaLimits, MediaType};
use symphonia::core::codecs::CodecParameters;
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, Track};
use symphonia::core::io::{MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;

use crate::fault::{broken_file, cut_short, too_much};
use crate::reader::{ByteReader, size};
use crate::sniff::id3_length;

/// The most packets: two hours of the smallest packets that codecs produce.
const MAX_PACKETS: u64 = 3_000_000;

/// Returns the facts about audio or video. (E1011, E1013)
pub(crate) fn examine(bytes: &Bytes, kind: MediaType) -> Result<MediaFacts, Failure> {
    let mut facts = MediaFacts::new(kind, u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    if kind == MediaType::Wav {
        facts.duration = Some(wav(bytes)?);
        return Ok(facts);
    }
    let mut format = open(bytes, kind)?;
    facts.size = film_size(format.tracks());
    if kind.category() == Category::Video && !format.tracks().iter().any(is_film) {
        return Err(broken_file(kind, "has no video track"));
    }
    facts.duration = Some(scan(format.as_mut(), kind)?);
    Ok(facts)
}

fn open(bytes: &Bytes, kind: MediaType) -> Result<Box<dyn FormatReader>, Failure> {
    let start = if kind == MediaType::Mp3 { id3_length(bytes) } else { 0 };
    let source = Cursor::new(bytes.slice(start.min(bytes.len())..));
    let stream = MediaSourceStream::new(Box::new(source), MediaSourceStreamOptions::default());
    let probe = symphonia::default::get_probe();
    let options = (FormatOptions::default(), MetadataOptions::default());
    let format = probe
        .probe(&Hint::new(), stream, options.0, options.1)
        .map_err(|error| failure_of_error(kind, &error))?;
    let wanted: &[&str] = match kind {
        MediaType::Mp3 => &["mp3", "mp2", "mp1"],
        MediaType::Ogg => &["ogg"],
        MediaType::WebmAudio | MediaType::WebmVideo => &["matroska", "webm", "mkv"],
        _ => &["isomp4"],
    };
    // The first bytes have identified the type; a reader for another type must not be used.
    if wanted.contains(&format.format_info().short_name) && !format.tracks().is_empty() {
        Ok(format)
    } else {
        Err(broken_file(kind, "has no playable track"))
    }
}

fn failure_of_error(kind: MediaType, error: &Error) -> Failure {
    match error {
        Error::LimitError(_) => too_much(kind, "exceeds the limits of its format"),
        Error::IoError(_) => cut_short(kind),
        _ => broken_file(kind, "cannot be read"),
    }
}

fn is_film(track: &Track) -> bool {
    matches!(track.codec_params, Some(CodecParameters::Video(_)))
}

fn film_size(tracks: &[Track]) -> Option<(u32, u32)> {
    tracks.iter().find_map(|track| match &track.codec_params {
        Some(CodecParameters::Video(film)) => Some((u32::from(film.width?), u32::from(film.height?))),
        _ => None,
    })
}

/// Returns the end of the last packet. A file that breaks off after some packets is valid: live recordings do.
fn scan(format: &mut dyn FormatReader, kind: MediaType) -> Result<Duration, Failure> {
    let bases: Vec<_> = format.tracks().iter().map(|track| (track.id, track.time_base)).collect();
    let enough = MediaLimits::length_of(kind.category()).unwrap_or(Duration::MAX);
    let mut longest = Duration::ZERO;
    for count in 0..MAX_PACKETS {
        let packet = match format.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) if count > 0 => return Ok(longest),
            Ok(None) => return Err(broken_file(kind, "has no playable track")),
            Err(error) if count == 0 => return Err(failure_of_error(kind, &error)),
            Err(_) => return Ok(longest),
        };
        let base = bases.iter().find(|(id, _)| *id == packet.track_id).and_then(|(_, base)| *base);
        let Some(base) = base else { continue };
        let start = base.calc_time_saturating(packet.pts).as_nanos();
        let nanoseconds = start.saturating_add(base.calc_duration_saturating(packet.dur).as_nanos());
        let end = u64::try_from(nanoseconds.max(0)).map_or(Duration::MAX, Duration::from_nanos);
        longest = longest.max(end);
        // Long enough to be refused; the exact length does not matter.
        if longest > enough {
            return Ok(longest);
        }
    }
    Err(too_much(kind, "has too many parts"))
}

/// Returns the duration of a WAV: that of its header, or that of its bytes if the header has none. (MEDIA-006)
fn wav(bytes: &[u8]) -> Result<Duration, Failure> {
    let cut = || cut_short(MediaType::Wav);
    let mut reader = ByteReader::new(bytes);
    reader.take(12).ok_or_else(cut)?;
    let mut rate = None;
    loop {
        let name = reader.take(4).ok_or_else(cut)?;
        let length = reader.le32().ok_or_else(cut)?;
        match name {
            b"fmt " => rate = Some(byte_rate(reader.take(size(length)).ok_or_else(cut)?)?),
            b"data" => {
                let Some(rate) = rate else {
                    return Err(broken_file(MediaType::Wav, "does not declare its format"));
                };
                return Ok(claimed_duration(length, reader.remaining_length(), rate));
            }
            _ => {
                reader.take(size(length)).ok_or_else(cut)?;
            }
        }
        if length & 1 == 1 {
            reader.take(1.min(reader.remaining_length())).ok_or_else(cut)?;
        }
    }
}

/// Computes the duration. Recorders that do not know the length in advance write the largest number, or zero.
fn claimed_duration(claimed: u32, present: usize, rate: u64) -> Duration {
    let present = u64::try_from(present).unwrap_or(u64::MAX);
    let length = match claimed {
        0 | u32::MAX => present,
        claimed => u64::from(claimed),
    };
    Duration::from_millis(length.saturating_mul(1000) / rate.max(1))
}

/// Returns the bytes per second. Computes them for plain samples, because the header field is often wrong.
fn byte_rate(header: &[u8]) -> Result<u64, Failure> {
    let mut reader = ByteReader::new(header);
    let fields = (reader.le16(), reader.le16(), reader.le32(), reader.le32(), reader.le16());
    let (Some(format), Some(channels), Some(rate), Some(said), Some(frame)) = fields else {
        return Err(cut_short(MediaType::Wav));
    };
    let plain = matches!(format, 1 | 3 | 6 | 7 | 0xfffe);
    let rate = if plain { u64::from(rate) * u64::from(frame) } else { u64::from(said) };
    if channels == 0 || rate == 0 {
        return Err(broken_file(MediaType::Wav, "has an invalid header"));
    }
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(claimed: u32, present: usize) -> Vec<u8> {
        let mut file = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        file.extend(8_000_u32.to_le_bytes());
        file.extend(8_000_u32.to_le_bytes());
        file.extend(b"\x01\0\x08\0data");
        file.extend(claimed.to_le_bytes());
        file.resize(file.len() + present, 0x80);
        file
    }

    #[test]
    fn media_006_a_header_that_claims_eleven_minutes_is_believed() {
        assert_eq!(wav(&wave(8_000 * 660, 100)).unwrap(), Duration::from_mins(11));
        assert_eq!(wav(&wave(8_000, 8_000)).unwrap(), Duration::from_secs(1));
    }

    #[test]
    fn a_recording_of_unknown_length_plays_as_long_as_it_lasts() {
        assert_eq!(wav(&wave(u32::MAX, 16_000)).unwrap(), Duration::from_secs(2));
        assert_eq!(wav(&wave(0, 16_000)).unwrap(), Duration::from_secs(2));
    }

    #[test]
    fn a_wav_that_does_not_say_how_it_plays_is_refused() {
        let mut silent = wave(8, 8);
        silent[24..28].fill(0);
        assert_eq!(wav(&silent).unwrap_err().code().number(), "E1013");
        assert_eq!(wav(b"RIFF\0\0\0\0WAVEdata\x08\0\0\0").unwrap_err().code().number(), "E1013");
        assert_eq!(wav(b"RIFF\0\0\0\0WAVEfmt ").unwrap_err().code().number(), "E1013");
    }
}
