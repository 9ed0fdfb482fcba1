//! Generates pictures, and data to insert into them.

use std::io::Cursor;

use image::codecs::gif::GifEncoder;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, Frame, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};

/// Four quarters: red and green on top, blue and white below.
pub fn quarters(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| match (x < width / 2, y < height / 2) {
        (true, true) => Rgb([220, 20, 20]),
        (false, true) => Rgb([20, 200, 20]),
        (true, false) => Rgb([20, 20, 220]),
        (false, false) => Rgb([240, 240, 240]),
    })
}

/// Noise, which does not compress.
pub fn noise(width: u32, height: u32) -> RgbImage {
    let mut state = 1_u32;
    RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, red, green, blue] = state.to_le_bytes();
        Rgb([red, green, blue])
    })
}

pub fn encode(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.into().write_to(&mut Cursor::new(&mut bytes), format).unwrap();
    bytes
}

pub fn decode(bytes: &[u8]) -> DynamicImage {
    image::load_from_memory(bytes).unwrap()
}

pub fn png(width: u32, height: u32) -> Vec<u8> {
    encode(quarters(width, height), ImageFormat::Png)
}

pub fn jpeg(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, 95).encode_image(&quarters(width, height)).unwrap();
    bytes
}

pub fn webp(width: u32, height: u32) -> Vec<u8> {
    encode(quarters(width, height), ImageFormat::WebP)
}

/// An animation with a number of frames, the first one red, and with a comment.
pub fn gif(frames: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    {
        let mut encoder = GifEncoder::new(&mut bytes);
        for frame in 0..frames {
            let colour = if frame == 0 { Rgba([255, 0, 0, 255]) } else { Rgba([0, 0, frame, 255]) };
            encoder.encode_frame(Frame::new(RgbaImage::from_pixel(10, 6, colour))).unwrap();
        }
    }
    let end = bytes.len() - 1;
    bytes.splice(end..end, *b"\x21\xfe\x06secret\0");
    bytes
}

/// Builds a PNG chunk from its name and content.
pub fn chunk(name: &[u8], content: &[u8]) -> Vec<u8> {
    let length = content.len() as u32;
    let sum = crc32fast::hash(&[name, content].concat());
    [&length.to_be_bytes()[..], name, content, &sum.to_be_bytes()].concat()
}

pub fn header(width: u32, height: u32, bits: u8, colours: u8, interlaced: u8) -> Vec<u8> {
    let fields = [bits, colours, 0, 0, interlaced];
    chunk(b"IHDR", &[&width.to_be_bytes()[..], &height.to_be_bytes(), &fields].concat())
}

pub fn png_of(chunks: &[Vec<u8>]) -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n".to_vec(), chunks.concat(), chunk(b"IEND", b"")].concat()
}

/// The zlib format without compression.
pub fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let pieces = bytes.chunks(65_535).count().max(1);
    for (at, piece) in bytes.chunks(65_535).enumerate() {
        let length = piece.len() as u16;
        out.push(u8::from(at + 1 == pieces));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(piece);
    }
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    out.extend((high << 16 | low).to_be_bytes());
    out
}

/// Inserts a chunk after the header of a PNG.
pub fn with_chunk(png: &[u8], chunk: &[u8]) -> Vec<u8> {
    [&png[..33], chunk, &png[33..]].concat()
}

/// Inserts segments after the start of a JPEG.
pub fn with_segments(jpeg: &[u8], segments: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = jpeg[..2].to_vec();
    for (marker, content) in segments {
        bytes.extend([0xff, *marker]);
        bytes.extend((content.len() as u16 + 2).to_be_bytes());
        bytes.extend(content);
    }
    bytes.extend(&jpeg[2..]);
    bytes
}

/// EXIF with an orientation, and with a GPS tag whose text is easy to search for.
pub fn exif(orientation: u8) -> Vec<u8> {
    let mut tiff = b"MM\0\x2a\0\0\0\x08\0\x02".to_vec();
    tiff.extend([0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0]);
    tiff.extend([0x88, 0x25, 0, 4, 0, 0, 0, 1, 0, 0, 0, 38]);
    tiff.extend([0; 4]);
    // The GPS directory with one entry: the name of a processing method, 12 letters.
    tiff.extend([0, 1, 0, 0x1b, 0, 7, 0, 0, 0, 12, 0, 0, 0, 56, 0, 0, 0, 0]);
    tiff.extend(b"GPS-N48E011!");
    tiff
}

pub fn exif_segment(orientation: u8) -> (u8, Vec<u8>) {
    (0xe1, [b"Exif\0\0", &exif(orientation)[..]].concat())
}

/// A chunk of a WebP, padded.
pub fn riff_chunk(name: &[u8], content: &[u8]) -> Vec<u8> {
    let mut chunk = [name, &(content.len() as u32).to_le_bytes(), content].concat();
    chunk.resize(chunk.len() + content.len() % 2, 0);
    chunk
}

/// A WebP with flags, and with further chunks around the picture of another file.
pub fn extended_webp(webp: &[u8], size: (u32, u32), flags: u8, before: &[u8], after: &[u8]) -> Vec<u8> {
    let less = |side: u32| (side - 1).to_le_bytes()[..3].to_vec();
    let head = [vec![flags, 0, 0, 0], less(size.0), less(size.1)].concat();
    riff(b"WEBP", &[&riff_chunk(b"VP8X", &head)[..], before, &webp[12..], after].concat())
}

pub fn riff(kind: &[u8], content: &[u8]) -> Vec<u8> {
    [b"RIFF", &(content.len() as u32 + 4).to_le_bytes()[..], kind, content].concat()
}

pub fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
