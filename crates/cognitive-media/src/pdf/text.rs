//! The text of a document, page by page, in drawing order. Guesses lines and gaps from movements; columns and tables
//! keep the order in which they were drawn.

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Document, Object, ObjectId, Stream};

use super::fonts::{Fonts, prepare};
use super::{PdfContent, content_of_error};

/// The longest text: about a thousand dense pages.
const MAX_LENGTH: usize = 8 << 20;
/// The most drawing operations, over all pages. A small file can draw the same thing millions of times.
const MAX_OPERATIONS: usize = 3_000_000;
/// The limit for the decompressed drawing of one page. A few kilobytes can expand to gigabytes.
const MAX_PAGE_SIZE: usize = 16 << 20;
/// The nesting limit of drawings within drawings. Drawings may contain themselves.
const MAX_DEPTH: usize = 6;
/// The move to the left within a text that counts as a gap between words, in thousandths of the font size.
const GAP: f32 = -180.0;

/// Returns the text of all pages, separated by empty lines.
pub(super) fn extract(mut document: Document) -> Result<String, PdfContent> {
    prepare(&mut document);
    let mut walk =
        PageWalk { document: &document, fonts: Fonts::default(), out: String::new(), left: MAX_OPERATIONS };
    for page in document.page_iter() {
        walk.page(page)?;
        let length = walk.out.trim_end().len();
        walk.out.truncate(length);
        if length > 0 {
            walk.out.push_str("\n\n");
        }
    }
    let clean = walk.out.trim().chars().filter(|letter| *letter == '\n' || !letter.is_control());
    Ok(clean.collect())
}

struct PageWalk<'a> {
    document: &'a Document,
    fonts: Fonts<'a>,
    out: String,
    left: usize,
}

/// The resources of a drawing: its own first, then those of the drawing that uses it.
type Resources<'a> = Vec<&'a Dictionary>;

#[derive(Default)]
struct TextState<'a> {
    font: Option<&'a Dictionary>,
    height: Option<f32>,
}

impl<'a> PageWalk<'a> {
    fn page(&mut self, page: ObjectId) -> Result<(), PdfContent> {
        let document = self.document;
        let Ok((own, inherited)) = document.get_page_resources(page) else { return Ok(()) };
        let inherited = inherited.into_iter().filter_map(|id| document.get_dictionary(id).ok());
        let mut resources: Resources<'a> = own.into_iter().chain(inherited).collect();
        if resources.is_empty() {
            resources.extend(inherited_directly(document, page));
        }
        let content = document
            .get_page_content_with_limit(page, MAX_PAGE_SIZE)
            .map_err(|error| content_of_error(&error))?;
        self.draw(&content, &resources, 0)
    }

    fn draw(&mut self, content: &[u8], resources: &Resources<'a>, depth: usize) -> Result<(), PdfContent> {
        let mut state = TextState::default();
        // An invalid operation ends the drawing, as in a viewer.
        for operation in Content::decode_iter(content).map_while(Result::ok) {
            self.left = self.left.checked_sub(1).ok_or_else(endless)?;
            if self.out.len() > MAX_LENGTH {
                return Err(endless());
            }
            self.step(&operation, resources, &mut state, depth)?;
        }
        Ok(())
    }

    fn step(
        &mut self,
        operation: &Operation,
        resources: &Resources<'a>,
        state: &mut TextState<'a>,
        depth: usize,
    ) -> Result<(), PdfContent> {
        let operands = operation.operands.as_slice();
        match operation.operator.as_str() {
            "Tf" => state.font = name(operands).and_then(|name| self.find(resources, b"Font", name)),
            "Tj" | "TJ" => self.show(operands, state.font),
            "'" | "\"" => {
                self.line();
                self.show(operands, state.font);
            }
            "T*" | "ET" => self.line(),
            "Td" | "TD" => match number(operands, 1) {
                Some(0.0) => self.gap(),
                _ => self.line(),
            },
            "Tm" => {
                let height = number(operands, 5);
                if height == state.height {
                    self.gap();
                } else {
                    self.line();
                }
                state.height = height;
            }
            "Do" if depth < MAX_DEPTH => {
                if let Some(form) = name(operands).and_then(|name| self.form(resources, name)) {
                    self.use_form(form, resources, depth)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn show(&mut self, operands: &[Object], font: Option<&'a Dictionary>) {
        for operand in operands {
            match operand {
                Object::String(bytes, _) => {
                    if let Some(font) = font {
                        self.fonts.write(font, self.document, bytes, &mut self.out);
                    }
                }
                Object::Array(parts) => {
                    for part in parts {
                        match part {
                            Object::String(..) => self.show(std::slice::from_ref(part), font),
                            moved if moved.as_float().is_ok_and(|by| by < GAP) => self.gap(),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn line(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
    }

    fn entry(&self, resources: &Resources<'a>, kind: &[u8], name: &[u8]) -> Option<&'a Object> {
        let document = self.document;
        resources.iter().find_map(|each| {
            let named = each.get_deref(kind, document).and_then(Object::as_dict).ok()?;
            named.get_deref(name, document).ok()
        })
    }

    fn find(&self, resources: &Resources<'a>, kind: &[u8], name: &[u8]) -> Option<&'a Dictionary> {
        self.entry(resources, kind, name)?.as_dict().ok()
    }

    fn form(&self, resources: &Resources<'a>, name: &[u8]) -> Option<&'a Stream> {
        let stream = self.entry(resources, b"XObject", name)?.as_stream().ok()?;
        let kind = stream.dict.get(b"Subtype").and_then(Object::as_name).ok()?;
        (kind == b"Form").then_some(stream)
    }

    fn use_form(
        &mut self,
        form: &'a Stream,
        resources: &Resources<'a>,
        depth: usize,
    ) -> Result<(), PdfContent> {
        let content =
            form.get_plain_content_with_limit(MAX_PAGE_SIZE).map_err(|error| content_of_error(&error));
        // A form with an unknown filter counts as empty; a bomb is an error.
        let content = match content {
            Ok(content) => content,
            Err(PdfContent::TooMuch(what)) => return Err(PdfContent::TooMuch(what)),
            Err(_) => return Ok(()),
        };
        // Forms that draw nothing count too, because they are decompressed.
        self.left = self.left.checked_sub(content.len() / 64).ok_or_else(endless)?;
        let own = form.dict.get_deref(b"Resources", self.document).and_then(Object::as_dict).ok();
        let all: Resources<'a> = own.into_iter().chain(resources.iter().copied()).take(16).collect();
        self.draw(&content, &all, depth + 1)
    }
}

/// Finds resources that are stored directly in a parent of the page.
fn inherited_directly(document: &Document, page: ObjectId) -> Option<&Dictionary> {
    let mut node = document.get_dictionary(page).ok()?;
    for _ in 0..32 {
        if let Ok(found) = node.get_deref(b"Resources", document).and_then(Object::as_dict) {
            return Some(found);
        }
        node = node.get_deref(b"Parent", document).and_then(Object::as_dict).ok()?;
    }
    None
}

fn endless() -> PdfContent {
    PdfContent::TooMuch("has too much content".to_owned())
}

fn name(operands: &[Object]) -> Option<&[u8]> {
    operands.first()?.as_name().ok()
}

fn number(operands: &[Object], at: usize) -> Option<f32> {
    operands.get(at)?.as_float().ok()
}
