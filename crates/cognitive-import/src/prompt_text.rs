//! Escapes an untrusted text for `prompt.md`: breaks up placeholders and call directives, so that they stay plain text.
//! An imported file can neither place the input nor call a module.

use cognitive_contract::compose::calls::directives;

use crate::loss::LossList;

const NAMES: [&str; 5] = ["MEDIA_INPUTS", "ENVELOPE", "ARGUMENTS", "SCHEMA", "INPUT"];
const WHY: &str = "`cogn` would replace it as a placeholder";

/// The placeholders that keep their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnPlaceholders {
    /// None: everything is plain text.
    None,
    /// `$ARGUMENTS` and `$1`, which Agent Skills and prompts of this project write alike.
    Arguments,
    /// `$1` stays unchanged, because no run could replace it.
    Numbers,
}

/// Breaks up all placeholders and calls except the ones in `own`.
pub(crate) fn quiet(text: &str, own: OwnPlaceholders, file: &str, losses: &mut LossList) -> String {
    let mut quiet = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, tail) = rest.split_at(at);
        quiet.push_str(before);
        quiet.push('$');
        let behind = tail.get(1..).unwrap_or_default();
        if let Some(name) = placeholder(behind, own) {
            quiet.push(' ');
            losses.add_changed(format!("`${name}`, now `$ {name}`"), file, WHY);
        }
        rest = behind;
    }
    quiet.push_str(rest);
    without_calls(quiet, file, losses)
}

/// The name of the placeholder after a `$`, if it must be broken up.
fn placeholder(behind: &str, own: OwnPlaceholders) -> Option<&str> {
    if behind.starts_with(|first: char| first.is_ascii_digit()) {
        let is_text = own == OwnPlaceholders::None;
        let end = behind.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(behind.len());
        return behind.get(..end).filter(|_| is_text);
    }
    let ends = |name: &&&str| {
        let rest = behind.strip_prefix(**name);
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
    };
    let name = NAMES.iter().find(ends)?;
    (*name != "ARGUMENTS" || own != OwnPlaceholders::Arguments).then_some(*name)
}

fn without_calls(mut text: String, file: &str, losses: &mut LossList) -> String {
    if text.contains("@call:") {
        text = text.replace("@call:", "@ call:");
        losses.add_changed("`@call:`, now `@ call:`", file, WHY);
    }
    let inserts: Vec<usize> = directives(&text).inserts.iter().map(|insert| insert.span.start).collect();
    if !inserts.is_empty() {
        losses.add_changed("`{{…}}`, now `{ {…}}`", file, WHY);
    }
    for start in inserts.into_iter().rev() {
        text.insert(start + 1, ' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_ours_is_left_in_a_foreign_text() {
        let mut losses = LossList::default();
        let text = "$INPUT $INPUTS $ENVELOPE, $5 and $ARGUMENTS[0] @call:evil($INPUT) {{a.data.b}} {{x}} US$";
        let quiet = quiet(text, OwnPlaceholders::None, "f", &mut losses);
        assert_eq!(
            quiet,
            "$ INPUT $INPUTS $ ENVELOPE, $ 5 and $ ARGUMENTS[0] @ call:evil($ INPUT) { {a.data.b}} { {x}} US$"
        );
        let found = directives(&quiet);
        assert!(found.calls.is_empty() && found.inserts.is_empty());
        assert_eq!(losses.finish().len(), 6);
    }

    #[test]
    fn arguments_of_skills_mean_the_same() {
        let mut losses = LossList::default();
        assert_eq!(
            quiet("Fix $ARGUMENTS[0], $1", OwnPlaceholders::Arguments, "f", &mut losses),
            "Fix $ARGUMENTS[0], $1"
        );
        assert_eq!(quiet("costs $5", OwnPlaceholders::Numbers, "f", &mut losses), "costs $5");
        assert!(losses.finish().is_empty());
    }
}
