//! Invalid placeholders in the prompt: misspelt ones, names of input members, and the braces of other tools. They stay
//! in the prompt, and the model reads them. A `$` in prose, a price or a shell variable is text and is not reported.

use std::collections::BTreeSet;
use std::ops::Range;

use cognitive_contract::compose::calls::directives;

use super::CheckedModule;
use super::composition::PROMPT_FILE;
use super::nearest_name::nearest;
use super::schema::section_place;
use crate::finding::{Finding, FindingLocation, Findings, quote};

/// The placeholders that a prompt can use, without the `$`.
const KNOWN: [&str; 5] = ["INPUT", "ARGUMENTS", "SCHEMA", "MEDIA_INPUTS", "ENVELOPE"];
const RULE: &str = "prompt/placeholder";
/// Shorter words in capitals are currencies and the like.
const MIN_LENGTH: usize = 3;
/// The longest name between braces that is checked. Longer texts between braces are prose or code.
const MAX_NAME: usize = 64;

pub(super) fn check(subject: &CheckedModule<'_>, found: &mut Findings) {
    let members = section_place(subject, &["input"]).map(|input| input.names()).unwrap_or_default();
    for (span, name) in dollars(subject.prompt) {
        dollar(subject.prompt, span, name, &members, found);
    }
    braces(subject.prompt, &members, found);
}

fn dollar(prompt: &str, span: Range<usize>, name: &str, members: &BTreeSet<&str>, found: &mut Findings) {
    if KNOWN.contains(&name) {
        return;
    }
    let lower = name.to_lowercase();
    let hint = if let Some(known) = nearest(name, KNOWN) {
        format!("Did you mean `${known}`?")
    } else if members.contains(lower.as_str()) {
        whole_input(&lower)
    } else {
        return;
    };
    let written = prompt.get(span.clone()).unwrap_or_default();
    report_unknown(written, span, hint, found);
}

fn whole_input(member: &str) -> String {
    format!(
        "A prompt cannot insert one member: refer to {} by its name; the input follows the prompt, or \
         replaces `$INPUT`",
        quote(member)
    )
}

fn report_unknown(written: &str, span: Range<usize>, hint: String, found: &mut Findings) {
    let message = format!("unknown placeholder, which stays in the prompt: {}", quote(written));
    found.push(Finding::warning(PROMPT_FILE, FindingLocation::Span(span), RULE, message).hint(hint));
}

/// Words in capitals after a single `$`: `$SHEMA`, not `US$`, `$5` or `\$X`.
fn dollars(prompt: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    prompt.match_indices('$').filter_map(|(at, _)| {
        let before = prompt.get(..at)?.chars().next_back();
        if before.is_some_and(|before| before.is_alphanumeric() || matches!(before, '$' | '\\' | '_')) {
            return None;
        }
        let rest = prompt.get(at + 1..)?;
        let end =
            rest.find(|letter: char| !letter.is_ascii_uppercase() && letter != '_').unwrap_or(rest.len());
        let name = rest.get(..end)?;
        let goes_on = rest.get(end..)?.starts_with(char::is_alphanumeric);
        (name.len() >= MIN_LENGTH && !goes_on && !name.starts_with('_')).then_some((at..at + 1 + end, name))
    })
}

/// Reports `{{text}}` and `${INPUT}`, the placeholders of other tools.
fn braces(prompt: &str, members: &BTreeSet<&str>, found: &mut Findings) {
    let ours = directives(prompt).inserts;
    for (open, close) in [("{{", "}}"), ("${", "}")] {
        // Both lists are in the order of the text, so one pass over each is enough.
        let mut ours = ours.iter().peekable();
        for (at, _) in prompt.match_indices(open) {
            let rest = prompt.get(at + open.len()..).unwrap_or_default();
            // The search ends behind the longest name. To the end of the prompt it would be quadratic.
            let near = rest.get(..rest.floor_char_boundary(MAX_NAME + close.len())).unwrap_or_default();
            let Some(inner) = near.find(close).and_then(|end| rest.get(..end)) else { continue };
            let span = at..at + open.len() + inner.len() + close.len();
            while ours.next_if(|insert| insert.span.end <= at).is_some() {}
            if ours.peek().is_some_and(|insert| insert.span.start <= at) && inner.contains('.') {
                continue;
            }
            let name = inner.trim().trim_start_matches('$');
            let hint = match KNOWN.iter().find(|known| known.eq_ignore_ascii_case(name)) {
                Some(known) => format!("Write `${known}`"),
                None if open == "{{" && members.contains(name) => whole_input(name),
                None => continue,
            };
            report_unknown(prompt.get(span.clone()).unwrap_or_default(), span, hint, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(prompt: &str) -> Vec<&str> {
        dollars(prompt).map(|(span, _)| &prompt[span]).collect()
    }

    #[test]
    fn prices_variables_in_prose_and_paths_are_text() {
        assert_eq!(
            names("Use $SHEMA, not $5, US$, $ 20, $$TEXT, \\$TEXT, $Input, $inputs, $AB or x$TEXT."),
            ["$SHEMA"]
        );
        assert_eq!(names("$INPUT_FILE $TEXT2 $MEDIA_INPUTS."), ["$INPUT_FILE", "$MEDIA_INPUTS"]);
        assert_eq!(names("$.data and $['x'] and ${TEXT}"), [""; 0]);
    }

    // A search to the end of the prompt for each of these would take minutes.
    #[test]
    fn a_prompt_full_of_open_braces_is_checked_at_once() {
        for piece in ["{{", "${", "{{a.b}}", "${a}"] {
            let mut found = Findings::default();
            braces(&piece.repeat(900_000 / piece.len()), &BTreeSet::from(["text"]), &mut found);
            assert!(found.finish(PROMPT_FILE).is_empty(), "{piece}");
        }
        let mut found = Findings::default();
        let long = format!("{{{{ {} text }}}} {{{{é}}}} {{{{text}}}}", " ".repeat(MAX_NAME));
        braces(&long, &BTreeSet::from(["text"]), &mut found);
        assert_eq!(found.finish(PROMPT_FILE).len(), 1, "too long, unknown, and a name");
    }

    #[test]
    fn only_what_is_meant_as_a_placeholder_is_told() {
        let said = |prompt: &str| {
            let mut found = Findings::default();
            let members = BTreeSet::from(["text", "path"]);
            for (span, name) in dollars(prompt) {
                dollar(prompt, span, name, &members, &mut found);
            }
            braces(prompt, &members, &mut found);
            let found = found.finish(PROMPT_FILE);
            found.iter().map(|each| each.message.split('`').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            said("$INPUT $SCHEMA $ARGUMENTS[0] $HOME $USD $EUR $OUTPUT ${HOME} {{part.data.x}}"),
            [""; 0]
        );
        assert_eq!(said("$SHEMA $INPUTS $TEXT $ARGUMENT"), ["$SHEMA", "$INPUTS", "$TEXT", "$ARGUMENT"]);
        assert_eq!(
            said("{{text}} {{ INPUT }} ${input} {{other}} {\"a\": {\"b\": 1}}"),
            ["{{text}}", "{{ INPUT }}", "${input}"]
        );
    }
}
