//! Documents: the number of pages, and their text. Scanned pages have no text, so the result is empty: the caller
//! reports that, or sends the document to a model that reads pages as images.
//!
//! A PDF is a language with pointers, compression and encryption. It is therefore read with limits on everything, and
//! by [`worker`](crate::worker) in a process that can be killed.

mod fonts;
mod text;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use cognitive_contract::Failure;
use cognitive_contract::media::{MediaLimits, MediaType};
use lopdf::{DecompressError, Document, Error, LoadOptions, Object};
use serde::{Deserialize, Serialize};

use crate::fault::{broken_file, too_much};

/// The limit for the decompressed size of one stream. A few kilobytes can expand to gigabytes.
const MAX_STREAM_SIZE: usize = 32 << 20;

/// The stack size. Nested objects are read by recursion, at most a hundred deep, which overflows the threads of a pool
/// in unoptimised builds.
const STACK: usize = 16 << 20;

/// The keyword before the position of the cross-reference table, and its largest distance from the end of the file.
const END: &[u8] = b"startxref";
const TAIL: usize = 4096;

/// The question about a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PdfQuery {
    Pages,
    Text,
}

/// The answer about a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PdfContent {
    Pages(u32),
    Text(String),
    Broken(String),
    TooMuch(String),
}

impl PdfContent {
    pub(crate) fn into_result(self) -> Result<Self, Failure> {
        match self {
            Self::Broken(what) => Err(broken_file(MediaType::Pdf, &what)),
            Self::TooMuch(what) => Err(too_much(MediaType::Pdf, &what)),
            good => Ok(good),
        }
    }
}

/// Reads a document. Never panics: every failure is a value of the answer.
pub(crate) fn read(bytes: &[u8], question: PdfQuery) -> PdfContent {
    let work = || catch_unwind(AssertUnwindSafe(|| answer(bytes, question)));
    let done = thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        worker.ok().and_then(|worker| worker.join().ok())
    });
    match done {
        Some(Ok(Ok(found) | Err(found))) => found,
        _ => PdfContent::Broken("cannot be read".to_owned()),
    }
}

fn answer(bytes: &[u8], question: PdfQuery) -> Result<PdfContent, PdfContent> {
    let options = LoadOptions::with_max_decompressed_size(MAX_STREAM_SIZE);
    let document =
        Document::load_mem_with_options(bytes, options).map_err(|error| content_of_error(&error))?;
    if document.is_encrypted() {
        return Err(locked_content());
    }
    let most = MediaLimits::default().most_pages;
    let pages = count(&document, most);
    match question {
        PdfQuery::Pages if pages == 0 => Err(PdfContent::Broken("has no pages".to_owned())),
        PdfQuery::Pages => Ok(PdfContent::Pages(pages)),
        PdfQuery::Text if pages > most => Err(PdfContent::TooMuch(format!("has more than {most} pages"))),
        PdfQuery::Text => text::extract(document).map(PdfContent::Text),
    }
}

/// Counts the pages, or takes the number that the document declares if it is larger. Stops counting at four times the
/// limit.
fn count(document: &Document, most: u32) -> u32 {
    let enough = usize::try_from(most).unwrap_or(usize::MAX).saturating_mul(4);
    let found = u32::try_from(document.page_iter().take(enough).count()).unwrap_or(u32::MAX);
    let root = document.catalog().and_then(|catalog| catalog.get_deref(b"Pages", document));
    let said = root.and_then(Object::as_dict).and_then(|pages| pages.get_deref(b"Count", document));
    let said = said.and_then(Object::as_i64).unwrap_or(0);
    // Without any page the declared number is invalid.
    if found == 0 { 0 } else { found.max(u32::try_from(said).unwrap_or(0)) }
}

/// Returns whether the file has its end, which holds the position of all objects. The library would repair a truncated
/// file by a search, but half a document must be refused.
pub(crate) fn has_end(bytes: &[u8]) -> bool {
    let tail = bytes.get(bytes.len().saturating_sub(TAIL)..).unwrap_or(bytes);
    tail.windows(END.len()).any(|window| window == END)
}

fn content_of_error(error: &Error) -> PdfContent {
    match error {
        Error::Decompress(DecompressError::MemoryLimitExceeded { .. }) => {
            PdfContent::TooMuch(format!("has a part that expands to more than {} MiB", MAX_STREAM_SIZE >> 20))
        }
        Error::InvalidPassword | Error::Decryption(_) => locked_content(),
        // The parser's message about hostile bytes is not shown to the caller.
        _ => PdfContent::Broken("cannot be read".to_owned()),
    }
}

fn locked_content() -> PdfContent {
    PdfContent::Broken("is protected by a password".to_owned())
}
