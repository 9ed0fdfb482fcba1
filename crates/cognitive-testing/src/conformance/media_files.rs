//! Generates media files for vectors: images of an exact number of bytes, and recordings of silence.
//! The files are fully valid, so that a case fails only for the reason it names.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::ops::VectorStop;

/// The largest file. A larger one tests nothing that this one does not.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// One grey pixel in an uncompressed block, so that vectors do not depend on a compressor.
const PIXEL: [u8; 13] = [0x78, 0x01, 0x01, 0x02, 0x00, 0xfd, 0xff, 0x00, 0x80, 0x00, 0x82, 0x00, 0x81];

/// Returns the base64 text of the file that a generator describes.
pub(super) fn generate(members: &Map<String, Value>) -> Result<Value, VectorStop> {
    let bytes = match members.get("kind").and_then(Value::as_str) {
        Some("png") => png(number(members, "bytes")?),
        Some("wav") => wav(members)?,
        other => Err(format!("unknown kind of media: `{}`", other.unwrap_or_default())),
    };
    bytes.map(|bytes| Value::String(STANDARD.encode(bytes))).map_err(VectorStop::Broken)
}

fn number(members: &Map<String, Value>, name: &str) -> Result<u64, VectorStop> {
    let number = members.get(name).and_then(Value::as_u64);
    number.ok_or_else(|| VectorStop::Broken(format!("`media` needs a whole number `{name}`")))
}

/// An image of one pixel; a chunk that every reader skips pads it to the requested size.
fn png(bytes: u64) -> Result<Vec<u8>, String> {
    let length = usize::try_from(bytes).ok().filter(|_| bytes <= MAX_FILE_BYTES);
    let length =
        length.ok_or_else(|| format!("`media` supports no file above {} MiB", MAX_FILE_BYTES >> 20))?;
    let header = [0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0];
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut file, *b"IHDR", &header);
    // The remaining bytes: two chunks with their frames, and the frame of the padding.
    let rest = 12 + PIXEL.len() + 12;
    let padding = length.checked_sub(file.len() + rest + 12);
    let padding = padding.ok_or_else(|| format!("no picture has {bytes} bytes"))?;
    chunk(&mut file, *b"paDd", &vec![0; padding]);
    chunk(&mut file, *b"IDAT", &PIXEL);
    chunk(&mut file, *b"IEND", &[]);
    Ok(file)
}

fn chunk(file: &mut Vec<u8>, name: [u8; 4], content: &[u8]) {
    let mut hash = crc32fast::Hasher::new();
    hash.update(&name);
    hash.update(content);
    file.extend(u32::try_from(content.len()).unwrap_or(u32::MAX).to_be_bytes());
    file.extend(name);
    file.extend(content);
    file.extend(hash.finalize().to_be_bytes());
}

/// Generates silence.
fn wav(members: &Map<String, Value>) -> Result<Result<Vec<u8>, String>, VectorStop> {
    let [seconds, rate, bits, channels] = [
        number(members, "seconds")?,
        number(members, "rate")?,
        number(members, "bits")?,
        number(members, "channels")?,
    ];
    Ok(silence(seconds, rate, bits, channels).ok_or_else(|| "no recording has these numbers".to_owned()))
}

fn silence(seconds: u64, rate: u64, bits: u64, channels: u64) -> Option<Vec<u8>> {
    let frame = channels.checked_mul(bits / 8).filter(|frame| *frame > 0 && matches!(bits, 8 | 16))?;
    let length = seconds.checked_mul(rate)?.checked_mul(frame).filter(|length| *length <= MAX_FILE_BYTES)?;
    let (small, long) = (|number: u64| u16::try_from(number).ok(), |number: u64| u32::try_from(number).ok());
    let mut file = b"RIFF".to_vec();
    file.extend(long(length + 36)?.to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0");
    file.extend(small(channels)?.to_le_bytes());
    file.extend(long(rate)?.to_le_bytes());
    file.extend(long(rate.checked_mul(frame)?)?.to_le_bytes());
    file.extend(small(frame)?.to_le_bytes());
    file.extend(small(bits)?.to_le_bytes());
    file.extend(b"data");
    file.extend(long(length)?.to_le_bytes());
    let quiet = if bits == 8 { 0x80 } else { 0 };
    file.resize(file.len() + usize::try_from(length).ok()?, quiet);
    Some(file)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bytes(generator: Value) -> Vec<u8> {
        let value = generate(generator.as_object().unwrap()).unwrap();
        STANDARD.decode(value.as_str().unwrap()).unwrap()
    }

    #[test]
    fn a_picture_has_exactly_the_bytes_that_were_asked_for() {
        for length in [82, 83, 5_000_000] {
            let file = bytes(json!({ "kind": "png", "bytes": length }));
            assert_eq!(file.len(), length);
            assert!(file.starts_with(b"\x89PNG") && file.ends_with(b"IEND\xae\x42\x60\x82"));
        }
    }

    #[test]
    fn a_recording_is_as_long_as_it_says() {
        let file = bytes(json!({ "kind": "wav", "seconds": 2, "rate": 100, "bits": 16, "channels": 2 }));
        assert_eq!(file.len(), 44 + 800);
        assert_eq!(file.get(40..44), Some(&800_u32.to_le_bytes()[..]));
    }

    #[test]
    fn what_makes_no_sense_breaks_the_case() {
        for generator in [
            json!({ "kind": "png", "bytes": 10 }),
            json!({ "kind": "png" }),
            json!({ "kind": "png", "bytes": u64::MAX }),
            json!({ "kind": "wav", "seconds": 1, "rate": 8000, "bits": 7, "channels": 1 }),
            json!({ "kind": "wav", "seconds": u64::MAX, "rate": 8000, "bits": 8, "channels": 1 }),
            json!({ "kind": "tiff" }),
        ] {
            let result = generate(generator.as_object().unwrap());
            assert!(matches!(result, Err(VectorStop::Broken(_))), "{generator}");
        }
    }
}
