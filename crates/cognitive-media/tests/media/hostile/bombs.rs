//! Small files that need much memory or time, or have many pages or hours. (S-32)

use cognitive_contract::media::MediaType::{Gif, Jpeg, Mp3, Mp4, Ogg, Pdf, Png, Wav, WebmVideo, Webp};
use image::{GrayImage, ImageFormat, RgbImage};

use super::{Case, case};
use crate::support::documents::{HELVETICA, document, of_pages, page, stream, zeros};
use crate::support::pictures::{
    chunk, encode, exif_segment, gif, header, jpeg, noise, png, png_of, riff, riff_chunk, stored, with_chunk,
    with_segments,
};
use crate::support::timed_media::{mp3, mp4, ogg, wav, webm};

pub fn cases() -> Vec<Case> {
    let mut cases = pixels();
    cases.extend(parts());
    cases.extend(hours());
    cases.extend(pages());
    cases
}

fn sized(width: u16, height: u16) -> Vec<u8> {
    let [wide, high] = [width.to_be_bytes(), height.to_be_bytes()];
    let frame = vec![8, high[0], high[1], wide[0], wide[1], 1, 1, 0x11, 0];
    with_segments(&[0xff, 0xd8, 0xff, 0xd9], &[(0xc0, frame), (0xda, vec![1, 1, 0, 0, 63, 0])])
}

fn canvas(width: u16, height: u16) -> Vec<u8> {
    let mut file = gif(1);
    file[6..8].copy_from_slice(&width.to_le_bytes());
    file[8..10].copy_from_slice(&height.to_le_bytes());
    file
}

/// A photograph as phones take it: 48 million pixels, rotated.
fn photograph() -> Vec<u8> {
    let large = RgbImage::from_fn(8_000, 6_000, |x, y| {
        let noise = (x.wrapping_mul(7_919) ^ y.wrapping_mul(104_729)) as u8 & 15;
        image::Rgb([noise + x as u8 / 2, noise + y as u8 / 2, noise])
    });
    let mut bytes = Vec::new();
    image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, 80).encode_image(&large).unwrap();
    with_segments(&bytes, &[exif_segment(6)])
}

fn pixels() -> Vec<Case> {
    let claim = |width, height, bits, colours| {
        move || png_of(&[header(width, height, bits, colours, 0), chunk(b"IDAT", &stored(&[0; 9]))])
    };
    let extended = |width: [u8; 3], height: [u8; 3]| {
        move || {
            let head = [&[0; 4][..], &width, &height].concat();
            riff(b"WEBP", &[riff_chunk(b"VP8X", &head), riff_chunk(b"VP8L", b"/....")].concat())
        }
    };
    vec![
        case("65,535²", Png, "E1017", claim(65_535, 65_535, 8, 6)),
        case("the largest number there is", Png, "E1017", claim(0x7fff_ffff, 0x7fff_ffff, 16, 6)),
        case("30,000²", Png, "E1017", claim(30_000, 30_000, 8, 2)),
        case("8,193 wide", Png, "E1015", claim(8_193, 1, 8, 2)),
        case("100,000 high", Png, "E1015", claim(1, 100_000, 8, 2)),
        case("8,192²", Png, "E1011", claim(8_192, 8_192, 8, 2)),
        case("7,000² in nine bytes", Png, "E1011", claim(7_000, 7_000, 8, 2)),
        case("7,000² of sixteen bits", Png, "E1011", claim(7_000, 7_000, 16, 6)),
        case("4,500² of one bit", Png, "E1013", claim(4_500, 4_500, 1, 0)),
        case("7,000² of black", Png, "E1011", || encode(GrayImage::new(7_000, 7_000), ImageFormat::Png)),
        case("6,000² of black", Png, "E1011", || encode(RgbImage::new(6_000, 6_000), ImageFormat::Png)),
        case("4,000² of black", Png, "ok", || encode(RgbImage::new(4_000, 4_000), ImageFormat::Png)),
        case("a flat diagram of 6,000×3,000", Png, "ok", || {
            encode(RgbImage::new(6_000, 3_000), ImageFormat::Png)
        }),
        case("65,535²", Gif, "E1017", || canvas(65_535, 65_535)),
        case("7,000² for ten pixels", Gif, "E1011", || canvas(7_000, 7_000)),
        case("65,535²", Jpeg, "E1017", || sized(65_535, 65_535)),
        case("65,535 wide", Jpeg, "E1015", || sized(65_535, 10)),
        case("7,000² in twenty bytes", Jpeg, "E1013", || sized(8_000, 6_000)),
        case("16,777,216²", Webp, "E1017", extended([0xff; 3], [0xff; 3])),
        case("a large one that is good", Jpeg, "ok", photograph),
        case("a large one that is good, as it is", Jpeg, "ok", photograph).for_anybody(),
        case("a large one that is good", Png, "ok", || encode(noise(2_400, 2_400), ImageFormat::Png)),
        case("a large one that is good, as it is", Png, "ok", || {
            encode(noise(2_400, 2_400), ImageFormat::Png)
        })
        .for_anybody(),
        case("a large one that is good", Webp, "ok", || encode(noise(2_000, 2_000), ImageFormat::WebP)),
    ]
}

/// Parts that are small until they are decompressed, and very many parts.
fn parts() -> Vec<Case> {
    let repeated = |part: &'static [u8], count: usize| {
        move || {
            let mut file = gif(1);
            let end = file.len() - 1;
            file.splice(end..end, part.repeat(count));
            file
        }
    };
    vec![
        case("a note that unpacks to 100 MB", Png, "ok", || {
            let packed = [&b"Comment\0\0"[..], &zeros(100_000_000)].concat();
            with_chunk(&png(9, 9), &chunk(b"zTXt", &packed))
        }),
        case("a profile that unpacks to 100 MB", Png, "ok|E1011|E1013", || {
            let packed = [&b"x\0\0"[..], &zeros(100_000_000)].concat();
            with_chunk(&png(9, 9), &chunk(b"iCCP", &packed))
        }),
        case("pixels that unpack to 100 MB", Png, "ok|E1013", || {
            png_of(&[header(9, 9, 8, 2, 0), chunk(b"IDAT", &zeros(100_000_000))])
        }),
        case("a million chunks", Png, "ok", || {
            with_chunk(&png(9, 9), &chunk(b"tEXt", b"a\0b").repeat(1_000_000))
        }),
        case("a million pieces of pixels", Png, "E1011", || {
            png_of(&[header(9, 9, 8, 2, 0), chunk(b"IDAT", b"").repeat(1_000_000)])
        }),
        case("twenty thousand pieces of pixels", Png, "E1013", || {
            png_of(&[header(9, 9, 8, 2, 0), chunk(b"IDAT", b"").repeat(20_000)])
        }),
        case("a million frames", Gif, "ok", repeated(b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0", 1_000_000)),
        case("a million comments", Gif, "ok", repeated(b"\x21\xfe\x01x\0", 1_000_000)),
        case("a thousand scans", Jpeg, "E1011|E1013", || {
            let scan = [0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0].repeat(1_000);
            let file = sized(8_000, 6_000);
            [&file[..file.len() - 2], &scan, &[0xff, 0xd9]].concat()
        }),
        case("ten thousand scans of little", Jpeg, "ok|E1013", || {
            let scan = [0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 0x55].repeat(10_000);
            let file = jpeg(90, 90);
            [&file[..file.len() - 2], &scan, &[0xff, 0xd9]].concat()
        }),
        case("two hundred thousand segments", Jpeg, "ok", || {
            with_segments(&jpeg(9, 9), &vec![(0xfe, b"x".to_vec()); 200_000])
        }),
        case("nothing but fill bytes", Jpeg, "E1013", || {
            vec![0xff; 10_000_000].splice(1..2, [0xd8]).collect::<Vec<_>>().repeat(1)
        }),
        case("a million chunks", Webp, "ok", || {
            let plain = crate::support::pictures::webp(9, 9);
            riff(b"WEBP", &[&plain[12..], &riff_chunk(b"junk", b"xx").repeat(1_000_000)].concat())
        }),
    ]
}

fn hours() -> Vec<Case> {
    vec![
        case("ten hours", Wav, "E1011", || wav(8_000, 8_000 * 36_000)),
        case("eleven minutes", Wav, "E1011", || wav(8_000, 8_000 * 660)),
        case("one sample a second", Wav, "E1011", || wav(1, 4_000_000_000)),
        case("ten minutes and a second", Mp3, "E1011", || mp3(23_007)),
        case("eleven minutes", Ogg, "E1011", || ogg(33_000)),
        case("five minutes and a frame", Mp4, "E1011", || mp4(b"isom", 3_001, (8, 8))),
        case("a hundred million frames of nothing", Mp4, "E1011|E1013|ok", || {
            let mut file = mp4(b"isom", 9, (8, 8));
            for (name, offset) in [(b"stsz", 12), (b"stts", 12), (b"stsc", 16)] {
                let at = file.windows(4).position(|found| found == name).unwrap();
                file[at + offset..at + offset + 4].copy_from_slice(&100_000_000_u32.to_be_bytes());
            }
            file
        }),
        case("larger than a cinema", Mp4, "E1015", || mp4(b"isom", 9, (7_680, 4_320))),
        case("a thousand blocks at once", WebmVideo, "ok", || webm(true, 1_600)),
    ]
}

fn pages() -> Vec<Case> {
    let drawn = |drawing: Vec<u8>| page(&drawing, HELVETICA, &[]);
    vec![
        case("a large one that is good", Pdf, "ok", || {
            page(b"/X1 Do", HELVETICA, &[stream("/Subtype/Image", &vec![0x55; 45_000_000])])
        }),
        case("501 pages", Pdf, "E1011", || of_pages(501)),
        case("100,000 pages", Pdf, "E1011", || of_pages(100_000)),
        case("a claim of 100,000 pages", Pdf, "E1011", || {
            let text = String::from_utf8_lossy(&of_pages(1)).replace("/Count 1/", "/Count 100000/");
            text.into_bytes()
        }),
        case("a page that unpacks to 200 MB", Pdf, "E1011", || {
            let objects = [
                b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
                b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
                b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>".to_vec(),
                stream("/Filter/FlateDecode", &zeros(200_000_000)),
            ];
            document(&objects)
        }),
        case("arrays in arrays", Pdf, "ok|E1013", move || {
            drawn([b"[".repeat(200_000), b"]".repeat(200_000), b" TJ".to_vec()].concat())
        }),
        case("objects in objects", Pdf, "ok|E1013", || {
            let deep = [b"<</A".repeat(100_000), b" 1".to_vec(), b">>".repeat(100_000)].concat();
            page(b"", HELVETICA, &[deep])
        }),
        case("five million numbers", Pdf, "E1011|E1013", || {
            page(b"", HELVETICA, &[[b"[".to_vec(), b"1 ".repeat(5_000_000), b"]".to_vec()].concat()])
        }),
        case("drawings in drawings in drawings", Pdf, "E1011", || {
            let form = stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]", &b"/X1 Do ".repeat(60));
            page(b"/X1 Do", HELVETICA, &[form])
        }),
        case("a text without end", Pdf, "E1011", || {
            let line = b"(0123456789012345678901234567890123456789012345678901234567890123) Tj ";
            let drawing = [b"BT /F1 9 Tf ".to_vec(), line.repeat(150_000), b"ET".to_vec()].concat();
            page(&drawing, HELVETICA, &[])
        }),
        case("letters that unpack to 100 MB", Pdf, "ok|E1011", || {
            let font = "<</Type/Font/Subtype/Type0/Encoding/Identity-H/ToUnicode 6 0 R>>";
            let map = stream("/Filter/FlateDecode", &zeros(100_000_000));
            page(b"BT /F1 9 Tf <0001> Tj ET", font, &[map])
        }),
        case("objects that unpack to 100 MB", Pdf, "E1011|E1013|ok", || {
            page(
                b"",
                HELVETICA,
                &[stream("/Type/ObjStm/N 9/First 9/Filter/FlateDecode", &zeros(100_000_000))],
            )
        }),
        case("packed ten times over", Pdf, "E1011|E1013|ok", || {
            let twice = zeros(50_000_000);
            let filters = "/Filter[/FlateDecode/FlateDecode/FlateDecode/FlateDecode/FlateDecode/FlateDecode]";
            let objects = [
                b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
                b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
                b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>".to_vec(),
                stream(filters, &twice),
            ];
            document(&objects)
        }),
    ]
}
