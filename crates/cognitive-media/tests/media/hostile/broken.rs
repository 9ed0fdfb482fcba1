//! Truncated files, and files with contradictory parts. (E1013)

use cognitive_contract::media::MediaType::{self, Gif, Jpeg, Mp3, Mp4, Ogg, Pdf, Png, Wav, WebmAudio, Webp};

use super::{Case, case};
use crate::support::documents::{document, document_with, stream, with_text};
use crate::support::pictures::{
    chunk, extended_webp, gif, header, jpeg, png, png_of, riff, riff_chunk, stored, webp, with_chunk,
    with_segments,
};
use crate::support::samples;
use crate::support::timed_media::{atom, element, mp4, ogg, page, wav, webm, words};

pub fn cases() -> Vec<Case> {
    let mut cases = cut_short();
    cases.extend(pictures());
    cases.extend(sound());
    cases.extend(documents());
    cases
}

/// Every type, truncated at sixteen positions. A truncated recording may be valid.
fn cut_short() -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, bytes) in samples() {
        for sixteenth in 0..16 {
            let cut = bytes.len() * sixteenth / 16;
            let answer = match kind {
                Mp3 | Ogg | WebmAudio | MediaType::WebmVideo | Wav if sixteenth > 0 => "ok|E1013|E1014",
                // An MP4 of a few bytes has no mark yet.
                Mp4 | MediaType::Quicktime if sixteenth > 0 => "E1013|E1014",
                _ => "E1013",
            };
            let bytes = bytes.clone();
            cases.push(case(format!("{sixteenth}/16"), kind, answer, move || bytes[..cut].to_vec()));
        }
    }
    cases
}

fn pictures() -> Vec<Case> {
    let flipped = |bytes: Vec<u8>, at: usize| {
        let mut bytes = bytes;
        bytes[at] ^= 0xff;
        bytes
    };
    let pixels = || chunk(b"IDAT", &stored(&[0; 4 * 4]));
    let frame = |width: u16, height: u16| {
        let mut file = b"GIF89a\x02\0\x02\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0".to_vec();
        file.extend(width.to_le_bytes());
        file.extend(height.to_le_bytes());
        file.extend(b"\0\x02\x02D\x01\0;");
        file
    };
    vec![
        case("a wrong checksum", Png, "E1013", move || flipped(png(9, 9), 45)),
        case("a header with a wrong checksum", Png, "E1013", move || flipped(png(9, 9), 20)),
        case("no pixels", Png, "E1013", || png_of(&[header(9, 9, 8, 2, 0)])),
        case("no header", Png, "E1013", move || png_of(&[pixels()])),
        case("two headers", Png, "E1013", || png_of(&[header(3, 4, 8, 0, 0), header(9, 9, 8, 2, 0)])),
        case("a width of nothing", Png, "E1013", move || png_of(&[header(0, 4, 8, 0, 0), pixels()])),
        case("a width below nothing", Png, "E1013", move || png_of(&[header(1 << 31, 4, 8, 0, 0), pixels()])),
        case("three bits", Png, "E1013", move || png_of(&[header(3, 4, 3, 0, 0), pixels()])),
        case("a colour type of seven", Png, "E1013", move || png_of(&[header(3, 4, 8, 7, 0), pixels()])),
        case("interlaced in a new way", Png, "E1013", move || png_of(&[header(3, 4, 8, 0, 9), pixels()])),
        case("a header of a byte", Png, "E1013", || png_of(&[chunk(b"IHDR", b"x")])),
        case("a chunk of four gigabytes", Png, "E1013", || {
            with_chunk(&png(9, 9), b"\xff\xff\xff\xfftEXtxxxx")
        }),
        case("pixels that are none", Png, "E1013", || {
            png_of(&[header(9, 9, 8, 2, 0), chunk(b"IDAT", b"zlib?")])
        }),
        case("too few pixels", Png, "E1013", move || png_of(&[header(90, 90, 8, 2, 0), pixels()])),
        case("no colours", Png, "E1013", move || png_of(&[header(3, 4, 8, 3, 0), pixels()])),
        case("no canvas", Gif, "E1013", || b"GIF89a\0\0\0\0\0\0\0;".to_vec()),
        case("no picture", Gif, "E1013", || b"GIF89a\x01\0\x01\0\0\0\0;".to_vec()),
        case("a picture wider than its canvas", Gif, "E1013", move || frame(3, 1)),
        case("a picture of four gigabytes on four pixels", Gif, "E1013", move || frame(65_535, 65_535)),
        case("a picture of nothing", Gif, "E1013", move || frame(0, 1)),
        case("a block of no kind", Gif, "E1013", || b"GIF89a\x01\0\x01\0\0\0\0\x99;".to_vec()),
        case("codes of no length", Gif, "E1013", || {
            b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x20\x02D\x01\0;".to_vec()
        }),
        case("no end", Gif, "E1013", || gif(2)[..gif(2).len() - 1].to_vec()),
        case("no end", Jpeg, "E1013", || jpeg(9, 9)[..jpeg(9, 9).len() - 2].to_vec()),
        case("nothing but an end", Jpeg, "E1013", || vec![0xff, 0xd8, 0xff, 0xd9]),
        case("a segment of less than nothing", Jpeg, "E1013", || {
            vec![0xff, 0xd8, 0xff, 0xe0, 0, 1, 0xff, 0xd9]
        }),
        case("a height of nothing", Jpeg, "E1013", || {
            with_segments(&jpeg(9, 9), &[(0xc0, vec![8, 0, 0, 0, 9, 1, 1, 0x11, 0])])
        }),
        case("two headers", Jpeg, "E1013", || {
            with_segments(&jpeg(9, 9), &[(0xc0, vec![8, 0, 9, 0, 9, 1, 1, 0x11, 0])])
        }),
        case("a height that comes later", Jpeg, "E1013", || {
            with_segments(&jpeg(9, 9), &[(0xdc, vec![0, 9])])
        }),
        case("five colours", Jpeg, "E1013", || {
            with_segments(&jpeg(9, 9), &[(0xc0, [vec![8, 0, 9, 0, 9, 5], vec![0; 15]].concat())])
        }),
        case("no tables", Jpeg, "ok|E1013", || {
            let scan = [0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 0x12, 0x34, 0xff, 0xd9];
            [&[0xff, 0xd8, 0xff, 0xc0, 0, 11, 8, 0, 9, 0, 9, 1, 1, 0x11, 0][..], &scan].concat()
        }),
        case("no picture", Webp, "E1013", || riff(b"WEBP", &riff_chunk(b"VP8X", &[0; 10]))),
        case("a canvas of another size", Webp, "E1013", || extended_webp(&webp(8, 6), (9, 6), 0, b"", b"")),
        case("a chunk longer than the file", Webp, "E1013", || riff(b"WEBP", b"VP8L\xff\xff\xff\x7fx")),
        case("a header of a byte", Webp, "E1013", || riff(b"WEBP", &riff_chunk(b"VP8L", b"/"))),
        case("a film without frames", Webp, "E1013", || {
            riff(
                b"WEBP",
                &[riff_chunk(b"VP8X", &[2, 0, 0, 0, 1, 0, 0, 1, 0, 0]), riff_chunk(b"ANIM", &[0; 6])]
                    .concat(),
            )
        }),
        case("frames of rubbish", Webp, "E1013", || {
            let head = riff_chunk(b"VP8X", &[2, 0, 0, 0, 1, 0, 0, 1, 0, 0]);
            riff(b"WEBP", &[head, riff_chunk(b"ANIM", &[0; 6]), riff_chunk(b"ANMF", &[0; 32])].concat())
        }),
        case("pixels of rubbish", Webp, "E1013", || {
            riff(b"WEBP", &riff_chunk(b"VP8L", b"\x2f\x07\x40\x01\0rubbish!!"))
        }),
    ]
}

fn sound() -> Vec<Case> {
    vec![
        case("no rate", Wav, "E1013", || wav(0, 8_000)),
        case("sound before its header", Wav, "E1013", || riff(b"WAVE", &riff_chunk(b"data", &[0; 8]))),
        case("a chunk longer than the file", Wav, "E1013", || riff(b"WAVE", b"junk\xff\xff\xff\xffx")),
        case("a header of a byte", Wav, "E1013", || riff(b"WAVE", &riff_chunk(b"fmt ", b"x"))),
        case("a tag longer than the file", Mp3, "E1013", || b"ID3\x04\0\0\x7f\x7f\x7f\x7f".to_vec()),
        case("a wrong checksum", Ogg, "E1013|ok", || {
            let mut file = ogg(5);
            file[30] ^= 0xff;
            file
        }),
        case("headers without sound", Ogg, "E1013", || ogg(0)),
        case("an unknown codec", Ogg, "E1013", || page(2, 0, 0, b"NewCodec\x01")),
        case("a film without anything", Mp4, "E1013", || {
            [atom(b"ftyp", b"isom\0\0\0\0isom"), atom(b"moov", b"")].concat()
        }),
        case("an atom longer than the file", Mp4, "E1013", || {
            [atom(b"ftyp", b"isom\0\0\0\0isom"), b"\x7f\xff\xff\xffmoov".to_vec()].concat()
        }),
        case("an atom of less than nothing", Mp4, "E1013", || {
            [atom(b"ftyp", b"isom\0\0\0\0isom"), b"\0\0\0\x01moov\xff\xff\xff\xff\xff\xff\xff\xff".to_vec()]
                .concat()
        }),
        case("atoms in atoms", Mp4, "E1013", || {
            let deep = (0..2_000).fold(Vec::new(), |inner, _| atom(b"trak", &inner));
            [atom(b"ftyp", b"isom\0\0\0\0isom"), atom(b"moov", &deep)].concat()
        }),
        case("no time base", Mp4, "E1013|ok", || {
            let mut file = mp4(b"isom", 9, (8, 8));
            let at = file.windows(4).position(|name| name == b"mdhd").unwrap();
            file[at + 16..at + 20].fill(0);
            file
        }),
        case("a table of a hundred million frames", Mp4, "E1011|E1013|ok", || {
            let mut file = mp4(b"isom", 9, (8, 8));
            let at = file.windows(4).position(|name| name == b"stsz").unwrap();
            file[at + 8..at + 12].copy_from_slice(&words(&[0]));
            file[at + 12..at + 16].copy_from_slice(&words(&[100_000_000]));
            file
        }),
        case("no tracks", WebmAudio, "E1013", || {
            let whole = webm(false, 5);
            let at = whole.windows(4).position(|id| id == [0x16, 0x54, 0xae, 0x6b]).unwrap();
            [&whole[..at], &element(&[0x1f, 0x43, 0xb6, 0x75], b"")].concat()
        }),
        case("a block for no track", WebmAudio, "E1013|ok", || {
            let mut file = webm(false, 1);
            let at = file.len() - 8;
            file[at] = 0x89;
            file
        }),
        case("an element of an exabyte", WebmAudio, "E1013|ok", || {
            let mut file = webm(false, 5);
            let at = file.windows(4).position(|id| id == [0x15, 0x49, 0xa9, 0x66]).unwrap();
            file[at + 5] = 0x7f;
            file
        }),
    ]
}

fn documents() -> Vec<Case> {
    let catalogue = || b"<</Type/Catalog/Pages 2 0 R>>".to_vec();
    vec![
        case("only a header", Pdf, "E1013", || b"%PDF-1.7\n".to_vec()),
        case("a header and an end", Pdf, "E1013", || b"%PDF-1.7\nstartxref\n0\n%%EOF\n".to_vec()),
        case("no pages", Pdf, "E1013", move || {
            document(&[catalogue(), b"<</Type/Pages/Kids[]/Count 0>>".to_vec()])
        }),
        case("pages that are their own", Pdf, "E1013", move || {
            document(&[catalogue(), b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>".to_vec()])
        }),
        case("a table that is its own", Pdf, "ok|E1013", move || {
            let page = b"<</Type/Page/Parent 2 0 R>>".to_vec();
            let file =
                document(&[catalogue(), b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(), page.clone()]);
            let at = file.windows(5).position(|word| word == b"xref\n").unwrap();
            let pages = b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec();
            document_with(&[catalogue(), pages, page], &format!("/Prev {at}"))
        }),
        case("a length that asks itself", Pdf, "ok|E1013", move || {
            let pages = b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec();
            let page = b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>".to_vec();
            document(&[catalogue(), pages, page, b"<</Length 4 0 R>>\nstream\nBT ET\nendstream".to_vec()])
        }),
        case("a wrong place of everything", Pdf, "ok|E1013", || {
            let text = String::from_utf8_lossy(&with_text("x")).replace("startxref\n", "startxref\n9");
            text.into_bytes()
        }),
        case("a drawing of rubbish", Pdf, "ok", move || {
            let pages = b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec();
            let page = b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>".to_vec();
            document(&[catalogue(), pages, page, stream("/Filter/FlateDecode", b"rubbish")])
        }),
        case("a script", Pdf, "ok", move || {
            let root = b"<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(app.alert(1))>>>>".to_vec();
            let pages = b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec();
            document(&[root, pages, b"<</Type/Page/Parent 2 0 R>>".to_vec()])
        }),
    ]
}
