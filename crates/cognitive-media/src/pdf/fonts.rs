//! How the bytes of a text become letters. A font says it in two ways: for drawing (`Encoding`) and for copying
//! (`ToUnicode`). Where both are there the second is right, so the first is taken away before the library asks for it.
//! A font that says neither has glyphs without names; its text is left out rather than guessed.

use std::collections::HashMap;

use lopdf::{Dictionary, Document, Encoding, Object};

use super::MAX_STREAM_SIZE;

/// An encoding that nobody knows, so that the text comes out empty.
const UNREADABLE: &[u8] = b"Unreadable";
/// The name under which the library reads UTF-16.
const UTF_16: &[u8] = b"UniGB-UTF16-H";

/// Brings all fonts of a document into a state in which the library reads them right.
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

/// The encodings that were needed so far, by the place of their font in memory: fonts are shared by many pages, and
/// reading a map of letters costs more than a page.
#[derive(Default)]
pub(super) struct Fonts<'a>(HashMap<usize, Option<Encoding<'a>>>);

impl<'a> Fonts<'a> {
    /// Adds the letters of a text, as many as can be read.
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
