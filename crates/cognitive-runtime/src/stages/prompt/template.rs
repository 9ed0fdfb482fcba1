//! A template and the values of its placeholders: `$INPUT` and the like, calls, values of other modules. One pass;
//! inserted text is never read again. Without results, calls and values stay text.

use cognitive_contract::compose::calls::{Directives, PromptPiece, directives};
use cognitive_contract::context::without_context;
use serde_json::Value;

use super::{ANSWER, MAX_PROMPT_BYTES};
use crate::compose::{Results, ValueReplacement};

/// The values of placeholders.
#[derive(Debug, Clone, Copy)]
pub struct PromptValues<'a> {
    /// The user's text.
    pub arguments: Option<&'a str>,
    /// The input object.
    pub input: &'a Value,
    /// The data schema.
    pub schema: &'a Value,
    /// The results of other modules.
    pub results: &'a Results,
    /// The list of attached media.
    pub media: &'a str,
}

/// A rendered template.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RenderedTemplate {
    /// The text.
    pub text: String,
    /// Set if the template placed the input or the arguments itself.
    pub used_input: bool,
    /// Set if it placed the list of media.
    pub used_media: bool,
    /// The missing values of other modules that the template refers to.
    pub missing: Vec<String>,
}

/// The placeholder for the form of the answer, which the runtime describes.
pub(super) const ENVELOPE: &str = "$ENVELOPE";

/// Capacity after a template, for the limits and the form of the answer.
const EXTRA_CAPACITY: usize = 1024;

/// Replaces the placeholders of a text that is not a module's template, in one pass. `None` if the result exceeds the
/// size limit. Without results nothing can replace calls and values, so they stay text.
#[must_use]
pub fn render(template: &str, values: &PromptValues<'_>) -> Option<RenderedTemplate> {
    let found = if values.results.is_empty() { Directives::default() } else { directives(template) };
    render_found(template, &found, values)
}

/// Does the same with the calls and values that were found in the template.
pub(super) fn render_found(
    template: &str,
    found: &Directives,
    values: &PromptValues<'_>,
) -> Option<RenderedTemplate> {
    let words: Vec<&str> = values.arguments.unwrap_or_default().split_whitespace().collect();
    let text = String::with_capacity(template.len() + EXTRA_CAPACITY);
    let mut rendered = RenderedTemplate { text, used_input: false, used_media: false, missing: Vec::new() };
    let mut calls = 0;
    for piece in found.pieces(template) {
        let (span, value) = match piece {
            PromptPiece::Text(text) => {
                place_all(text, values, &words, &mut rendered)?;
                continue;
            }
            PromptPiece::Call(call) => {
                calls += 1;
                (&call.span, values.results.in_place_of(call, calls - 1))
            }
            PromptPiece::Insert(insert) => {
                let written = || template.get(insert.span.clone()).unwrap_or_default().to_owned();
                let value = match values.results.value_of(insert) {
                    ValueReplacement::Text(text) => Some(text),
                    ValueReplacement::AsWritten => None,
                    ValueReplacement::Missing => {
                        rendered.missing.push(written());
                        Some(String::new())
                    }
                };
                (&insert.span, value)
            }
        };
        match value {
            Some(value) => rendered.text.push_str(&value),
            None => rendered.text.push_str(template.get(span.clone()).unwrap_or_default()),
        }
        if rendered.text.len() > MAX_PROMPT_BYTES {
            return None;
        }
    }
    Some(rendered)
}

/// Appends a text with its placeholders replaced.
fn place_all(
    text: &str,
    values: &PromptValues<'_>,
    words: &[&str],
    rendered: &mut RenderedTemplate,
) -> Option<()> {
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, tail) = rest.split_at(at);
        rendered.text.push_str(before);
        rest = match placeholder(tail, values, words) {
            Some((length, value)) => {
                let placed = tail.get(..length).unwrap_or_default();
                rendered.used_input |= !matches!(placed, "$SCHEMA" | "$MEDIA_INPUTS" | ENVELOPE);
                rendered.used_media |= placed == "$MEDIA_INPUTS";
                rendered.text.push_str(&value);
                if rendered.text.len() > MAX_PROMPT_BYTES {
                    return None;
                }
                tail.get(length..).unwrap_or_default()
            }
            None => {
                rendered.text.push('$');
                tail.get(1..).unwrap_or_default()
            }
        };
    }
    rendered.text.push_str(rest);
    Some(())
}

/// Returns length and value of the placeholder at the start of `text`. Longest names first.
fn placeholder(text: &str, values: &PromptValues<'_>, words: &[&str]) -> Option<(usize, String)> {
    if let Some(rest) = text.strip_prefix("$ARGUMENTS[")
        && let Some(digits) = rest.bytes().take(8).position(|byte| byte == b']')
        && let Some(Ok(index)) = rest.get(..digits).map(str::parse::<usize>)
    {
        let length = "$ARGUMENTS[".len() + digits + 1;
        return Some((length, words.get(index).copied().unwrap_or_default().to_owned()));
    }
    let named: [(&str, &dyn Fn() -> String); 5] = [
        ("$MEDIA_INPUTS", &|| values.media.to_owned()),
        (ENVELOPE, &|| ANSWER.trim().to_owned()),
        ("$ARGUMENTS", &|| values.arguments.unwrap_or_default().to_owned()),
        ("$SCHEMA", &|| pretty(values.schema)),
        ("$INPUT", &|| pretty(&without_context(values.input))),
    ];
    for (name, value) in named {
        if text.strip_prefix(name).is_some_and(is_name_end) {
            return Some((name.len(), value()));
        }
    }
    let digits: String = text.chars().skip(1).take_while(char::is_ascii_digit).collect();
    // `$5` in a price list is a price, unless the text has a fifth word.
    let word = words.get(digits.parse::<usize>().ok()?)?;
    Some((1 + digits.len(), (*word).to_owned()))
}

/// `$INPUT` is a placeholder, `$INPUT_FILE` is not.
fn is_name_end(rest: &str) -> bool {
    !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(template: &str, arguments: Option<&str>) -> String {
        let input = json!({ "k": "v", "_context": { "secret": 1 } });
        let (schema, results) = (json!({ "type": "object" }), Results::default());
        let values = PromptValues { arguments, input: &input, schema: &schema, results: &results, media: "" };
        render(template, &values).unwrap().text
    }

    #[test]
    fn prompt_003_004_placeholders() {
        assert_eq!(text("A $ARGUMENTS B $ARGUMENTS[1] C $0", Some("x y")), "A x y B y C x");
        assert_eq!(text("[$ARGUMENTS[5]] costs $5", Some("x")), "[] costs $5");
        assert_eq!(text("In: $INPUT", None), "In: {\n  \"k\": \"v\"\n}");
        assert_eq!(text("$SCHEMA$MEDIA_INPUTS.", None), "{\n  \"type\": \"object\"\n}.");
    }

    #[test]
    fn prompt_007_an_author_may_place_the_form_of_the_answer() {
        let placed = text("Do it.\n\n$ENVELOPE\n", None);
        assert!(
            placed.starts_with("Do it.\n\n## Response format\n") && placed.contains("\"ok\": false"),
            "{placed}"
        );
        assert_eq!(text("$ENVELOPES", None), "$ENVELOPES");
    }

    #[test]
    fn prompt_005_sec_023_inserted_text_is_never_read_again() {
        assert_eq!(text("$ARGUMENTS", Some("$INPUT {{x}} @call:y $0")), "$INPUT {{x}} @call:y $0");
        assert_eq!(text("$INPUT_FILE $INPUTS $ $$", None), "$INPUT_FILE $INPUTS $ $$");
    }

    #[test]
    fn a_template_cannot_fill_the_memory() {
        let input = json!({ "text": "x".repeat(100_000) });
        let results = Results::default();
        let values = PromptValues {
            arguments: None,
            input: &input,
            schema: &Value::Null,
            results: &results,
            media: "",
        };
        assert_eq!(render(&"$INPUT ".repeat(100_000), &values), None);
        assert!(render(&"$ARGUMENTS[".repeat(100_000), &values).is_some());
    }

    // PROMPT-009, PROMPT-010, SEC-023: results go in once, unread; text that names no result stays text.
    #[test]
    fn prompt_009_010_results_stand_in_place_of_calls_and_values() {
        let mut results = Results::default();
        let nasty = "$INPUT {{a.meta.risk}} @call:a";
        results.add("a", Some(json!({ "ok": true, "data": { "say": nasty, "list": [1] }, "meta": { "risk": "low", "trace_id": "t" } })));
        results.add("gone", None);
        let input = json!({ "k": "{{a.data.list}}" });
        let values = PromptValues {
            arguments: Some("x"),
            input: &input,
            schema: &Value::Null,
            results: &results,
            media: "",
        };
        let rendered = |template: &str| render(template, &values).unwrap();
        assert_eq!(rendered("{{a.data.say}} {{ a.data.list }} $0").text, format!("{nasty} [1] x"));
        assert_eq!(rendered("{{b.data}} @call:b($INPUT) {{x}}").text, "{{b.data}} @call:b($INPUT) {{x}}");
        assert!(rendered("$INPUT").text.contains("{{a.data.list}}"));
        let missing = rendered("[{{a.data.none}}|{{gone.data}}]");
        assert_eq!((missing.text.as_str(), missing.missing.len()), ("[|]", 2));
        let called = rendered("See @call:a($INPUT).");
        assert!(
            called.text.starts_with("See [Result from @call:a]:\n{") && called.text.ends_with("}."),
            "{called:?}"
        );
        assert!(called.text.contains(nasty) && !called.text.contains("trace_id") && !called.used_input);
    }
}
