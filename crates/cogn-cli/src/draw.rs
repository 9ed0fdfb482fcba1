//! Draws findings for users: the source line, the expectation below it, and a hint.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use cognitive_library::finding::{Location, Sources};
use cognitive_library::{Finding, Severity};

use crate::printer::{BAD, DOUBT, NOTE};

/// Draws a finding about a file of a module.
pub(crate) fn in_folder(finding: &Finding, sources: &Sources, folder: &str) -> String {
    let path = format!("{}/{}", folder.trim_end_matches('/'), finding.file);
    draw(finding, sources, &path)
}

/// Draws a finding about a standalone file.
pub(crate) fn in_file(finding: &Finding, sources: &Sources) -> String {
    draw(finding, sources, &finding.file)
}

/// Draws a finding. Without a position in a text, it is a title, the file and a hint.
fn draw(finding: &Finding, sources: &Sources, path: &str) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(finding.message.as_str());
    let place = sources.locate(finding).zip(sources.get(&finding.file));
    let mut group = match &place {
        Some((location, text)) => {
            let window = Window::surrounding(text, location);
            let span = AnnotationKind::Primary.span(window.range);
            title.element(Snippet::source(window.text).line_start(window.line).path(path).annotation(span))
        }
        None => Group::with_title(title).element(Level::NOTE.message(format!("in {path}"))),
    };
    if let Some(hint) = &finding.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    // The same colours as in all other output.
    Renderer::styled().error(BAD).warning(DOUBT).help(NOTE).note(NOTE).render(&[group])
}

/// The part of a text to draw. Passing a file of many megabytes to the renderer for every finding would be slow.
struct Window<'a> {
    text: &'a str,
    line: usize,
    range: Range<usize>,
}

impl<'a> Window<'a> {
    /// The reach of a window to either side, in bytes. Longer lines would be copied into the renderer for every
    /// finding.
    const REACH: usize = 2_000;

    fn surrounding(text: &'a str, location: &Location) -> Self {
        let (from, to) = (location.range.start, location.range.end);
        let line_start = text.get(..from).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let start = boundary(text, line_start.max(from.saturating_sub(Self::REACH)));
        let line_end = text.get(to..).and_then(|after| after.find('\n')).map_or(text.len(), |at| to + at);
        let end = boundary(text, line_end.min(to.saturating_add(Self::REACH)));
        let range = from - start..to.min(end).saturating_sub(start).max(from - start);
        Self { text: text.get(start..end).unwrap_or_default(), line: location.line, range }
    }
}

/// Returns the nearest character boundary at or before an offset.
fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
