//! Findings as people like them: the source line, what was expected below it, and a hint.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use cognitive_library::finding::Sources;
use cognitive_library::{Finding, Severity};

use crate::printer::{BAD, DOUBT, NOTE};

/// Draws a finding about a file of a module.
pub(crate) fn in_folder(finding: &Finding, sources: &Sources, folder: &str) -> String {
    let path = format!("{}/{}", folder.trim_end_matches('/'), finding.file);
    draw(finding, sources, &path)
}

/// Draws a finding about a file that stands for itself.
pub(crate) fn in_file(finding: &Finding, sources: &Sources) -> String {
    draw(finding, sources, &finding.file)
}

/// Without a place in a text it is a title, the file and a hint.
fn draw(finding: &Finding, sources: &Sources, path: &str) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(finding.message.as_str());
    let place = sources.locate(finding).zip(sources.get(&finding.file));
    let mut group = match &place {
        Some((location, text)) => {
            let span = AnnotationKind::Primary.span(location.range.clone());
            title.element(Snippet::source(*text).path(path).annotation(span))
        }
        None => Group::with_title(title).element(Level::NOTE.message(format!("in {path}"))),
    };
    if let Some(hint) = &finding.hint {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    // The same colours as everywhere else.
    Renderer::styled().error(BAD).warning(DOUBT).help(NOTE).note(NOTE).render(&[group])
}
