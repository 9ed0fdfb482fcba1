//! Maps the bytes of a text to letters. A font has two maps: for drawing (`Encoding`) and for copying (`ToUnicode`). If
//! both exist the second is right, so the first is removed before the library reads it. The glyphs of a font with
//! neither have no names; its text is left out rather than guessed.

use std::collections::HashMap;

use lopdf::{Dictionary, Document, Encoding, Object};

use super::MAX_STREAM_SIZE;

/// An unknown encoding, which makes the text empty.
const UNREADABLE: &[u8] = b"Unreadable";
/// The name that makes the library read UTF-16.
const UTF_16: &[u8] = b"UniGB-UTF16-H";

/// Changes all fonts of a document so that the library reads them correctly.
pub(super) fn prepare(document: &mut Document) {
    let mut changes = Vec::new();
    for (id, object) in &document.objects {
        let Object::Dictionary(font) = object else { continue };
        if font.has_type(b"Font") {
            changes.push((*id, change(font, document)));
        }
    }
    for (id, change) in changes {
        let Ok(font) = document.get_dictionary_mut(id) else { continue };
        match change {
            FontChange::None => {}
            FontChange::Forget => drop(font.remove(b"Encoding")),
            FontChange::Name(name) => font.set("Encoding", Object::Name(name.to_vec())),
        }
    }
}

enum FontChange {
    None,
    Forget,
    Name(&'static [u8]),
}

fn change(font: &Dictionary, document: &Document) -> FontChange {
    if font.get_deref(b"ToUnicode", document).is_ok_and(|map| map.as_stream().is_ok()) {
        return FontChange::Forget;
    }
    let encoding = font.get_deref(b"Encoding", document).and_then(Object::as_name).unwrap_or_default();
    let unicode =
        [&b"UCS2"[..], b"UTF16"].iter().any(|word| encoding.windows(word.len()).any(|at| at == *word));
    let composed = font.get(b"Subtype").and_then(Object::as_name).is_ok_and(|kind| kind == b"Type0");
    match composed {
        true if encoding.starts_with(b"Uni") && unicode => FontChange::Name(UTF_16),
        true => FontChange::Name(UNREADABLE),
        false => FontChange::None,
    }
}

/// A cache of encodings, by the address of their font in memory. Many pages share a font, and parsing its map costs
/// more than a page.
#[derive(Default)]
pub(super) struct Fonts<'a>(HashMap<usize, Option<Encoding<'a>>>);

impl<'a> Fonts<'a> {
    /// Appends the letters of a text, as far as they can be decoded.
    pub(super) fn write(
        &mut self,
        font: &'a Dictionary,
        document: &'a Document,
        bytes: &[u8],
        out: &mut String,
    ) {
        let place = std::ptr::from_ref(font).addr();
        let encoding = self
            .0
            .entry(place)
            .or_insert_with(|| font.get_font_encoding_with_limit(document, MAX_STREAM_SIZE).ok());
        if let Some(encoding) = encoding {
            let _unreadable_is_left_out = encoding.write_to_string(bytes, out);
        }
    }
}
