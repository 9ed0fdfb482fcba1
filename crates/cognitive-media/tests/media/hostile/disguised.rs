//! Files that claim another type, and polyglot files. (SEC-003)

use cognitive_contract::media::MediaType;

use super::{Case, case};
use crate::support::pictures::{chunk, gif, jpeg, png, riff, with_chunk, with_segments};
use crate::support::timed_media::{ebml_header, mp3, wav};
use crate::support::{documents, samples};

pub fn cases() -> Vec<Case> {
    let mut cases = every_type_as_every_other();
    cases.extend(strangers());
    cases.extend(two_at_once());
    cases
}

fn every_type_as_every_other() -> Vec<Case> {
    let samples = samples();
    let mut cases = Vec::new();
    for (real, bytes) in &samples {
        for (claimed, _) in &samples {
            let answer = if real == claimed { "ok" } else { "E1014" };
            let bytes = bytes.clone();
            cases.push(case(format!("a whole {real}"), *claimed, answer, move || bytes.clone()));
        }
    }
    cases
}

/// Unsupported types.
fn strangers() -> Vec<Case> {
    let files: [(&str, &[u8]); 18] = [
        ("a zip", b"PK\x03\x04\x14\0\0\0\x08\0bomb"),
        ("a gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x04\0"),
        ("a page", b"<!DOCTYPE html><script>alert(1)</script>"),
        ("a drawing with a script", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"),
        ("a program", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"),
        ("another program", b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff\0\0"),
        ("a script", b"#!/bin/sh\nrm -rf /\n"),
        ("a bitmap", b"BM\x36\0\0\0\0\0\0\0\x36\0\0\0"),
        ("a tiff", b"II*\0\x08\0\0\0\0\0"),
        ("an icon", b"\0\0\x01\0\x01\0\x10\x10"),
        ("a flac", b"fLaC\0\0\0\x22"),
        ("a photograph of a telephone", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"),
        ("a song of a telephone", b"\0\0\0\x18ftypM4A \0\0\0\0M4A isom"),
        ("a new picture", b"\0\0\0\x18ftypavif\0\0\0\0avifmif1"),
        ("zeros", &[0; 64]),
        ("ones", &[0xff; 64]),
        ("one letter", b"x"),
        ("some words", b"not a picture at all"),
    ];
    let claims = [MediaType::Png, MediaType::Jpeg, MediaType::Mp3, MediaType::Mp4, MediaType::Pdf];
    let mut cases = Vec::new();
    for (name, bytes) in files {
        for claimed in claims {
            cases.push(case(name, claimed, "E1014", || bytes.to_vec()));
        }
    }
    cases
}

fn two_at_once() -> Vec<Case> {
    use MediaType::{Gif, Jpeg, Mp3, Ogg, Pdf, Png, Wav, WebmVideo, Webp};

    let html = b"<html><script>alert(1)</script></html>";
    let zip = b"PK\x03\x04\x14\0 and the rest of an archive PK\x05\x06";
    vec![
        case("gif mark, then a page", Gif, "E1013", move || [b"GIF89a", &html[..]].concat()),
        case("gif mark as a script", Gif, "E1013", || b"GIF89a=0;alert(1);//".to_vec()),
        case("gif mark, then a comment", Gif, "E1013", || b"GIF89a/*\x01\0\x01\0*/=1;alert(1)".to_vec()),
        case("png mark, then a page", Png, "E1013", move || [b"\x89PNG\r\n\x1a\n", &html[..]].concat()),
        case("jpeg mark, then a page", Jpeg, "E1013", move || [&[0xff, 0xd8, 0xff][..], html].concat()),
        case("jpeg mark, then an archive", Jpeg, "E1013", move || [&[0xff, 0xd8, 0xff][..], zip].concat()),
        case("webp mark, then a page", Webp, "E1013", move || riff(b"WEBP", html)),
        case("wave mark, then a page", Wav, "E1013", move || riff(b"WAVE", html)),
        case("riff of nothing known", Wav, "E1014", move || riff(b"HTML", html)),
        case("ogg mark, then a page", Ogg, "E1013", move || [b"OggS", &html[..]].concat()),
        case("ebml mark, then a page", WebmVideo, "E1013", move || {
            [&[0x1a, 0x45, 0xdf, 0xa3][..], html].concat()
        }),
        case("matroska", WebmVideo, "E1014", || ebml_header(b"matroska")),
        case("a tag, then a page", Mp3, "E1013", move || [b"ID3\x04\0\0\0\0\0\x02xx", &html[..]].concat()),
        case("a frame, then a page", Mp3, "E1014", move || [mp3(1), html.to_vec()].concat()),
        case("document mark, then a page", Pdf, "E1013", move || [b"%PDF-1.7\n", &html[..]].concat()),
        case("a page, then a document", Pdf, "E1014", move || {
            [html.to_vec(), documents::with_text("x")].concat()
        }),
        case("an archive, then a document", Pdf, "E1014", move || {
            [zip.to_vec(), documents::with_text("x")].concat()
        }),
        case("a picture, then a document", Pdf, "E1014", || [gif(1), documents::with_text("x")].concat()),
        // These are valid pictures; the appended data is removed, as `sec_004_…` shows.
        case("a gif, then an archive", Gif, "ok", move || [gif(1), zip.to_vec()].concat()),
        case("a png, then an archive", Png, "ok", move || [png(9, 9), zip.to_vec()].concat()),
        case("a jpeg, then an archive", Jpeg, "ok", move || [jpeg(9, 9), zip.to_vec()].concat()),
        case("a jpeg with a page in it", Jpeg, "ok", move || {
            with_segments(&jpeg(9, 9), &[(0xfe, html.to_vec())])
        }),
        case("a png with a page in it", Png, "ok", move || with_chunk(&png(9, 9), &chunk(b"tEXt", html))),
        case("a wave, then a page", Wav, "ok", move || [wav(8_000, 8_000), html.to_vec()].concat()),
    ]
}
