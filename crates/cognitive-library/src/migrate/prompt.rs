//! The envelope section of `prompt.md`. Appends to the author's text and changes none of it.

use cognitive_contract::manifest::Overflow;
use cognitive_contract::module::explains_envelope;
use serde_json::Value;

/// The facts that the explanation of the envelope states.
pub(super) struct EnvelopeText<'a> {
    /// The overflow rules: insights allowed or not, and how many.
    pub overflow: &'a Overflow,
    /// The data section.
    pub data: &'a Value,
    /// The error section.
    pub error: &'a Value,
}

/// Appends an explanation of the envelope to the prompt; `None` if it already has one.
pub(super) fn with_envelope(prompt: &str, contract: &EnvelopeText<'_>) -> Option<String> {
    if explains_envelope(prompt) {
        return None;
    }
    let added = format!("{}{}", gap(prompt), section(contract));
    Some(format!("{prompt}{}", added.replace('\n', newline(prompt))))
}

/// The line breaks that are missing for a blank line at the end of a text.
pub(super) fn gap(text: &str) -> &'static str {
    let end = text.trim_end_matches([' ', '\t', '\r', '\n']).len();
    let breaks = text.get(end..).map_or(0, |tail| tail.matches('\n').count());
    match breaks {
        _ if end == 0 => "",
        0 => "\n\n",
        1 => "\n",
        _ => "",
    }
}

/// The line break that a text uses.
pub(super) fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn section(contract: &EnvelopeText<'_>) -> String {
    let overflow = contract.overflow;
    let insights = if overflow.enabled {
        format!(
            "\n  - `extensions.insights`: optional, at most {} observations that fit no other field, each with `text` \
             and `suggested_mapping`, the field that could hold it.",
            overflow.max_items
        )
    } else {
        String::new()
    };
    let fields = fields(contract.data);
    let fields = if fields.is_empty() { String::new() } else { format!(" (`{}`)", fields.join("`, `")) };
    let codes = codes(contract.error);
    let code = codes.first().copied().unwrap_or("E2004");
    let listed = if codes.is_empty() {
        "a `code` (`E1004` the input is not supported, `E2004` the task cannot be done, `E2007` more context is \
         needed)"
            .to_owned()
    } else {
        format!("a `code` (one of `{}`)", codes.join("`, `"))
    };
    format!(
        r#"## Response format (envelope)

Answer with exactly one JSON object, the envelope, and nothing around it. Where the text above speaks of the JSON to
return, it means the `data` of this envelope.

- `ok`: true when the task is done, false when it cannot be done.
- `meta`: what software routes on without reading `data`.
  - `confidence`: a number from 0 to 1, how sure you are of having met this contract.
  - `risk`: `none`, `low`, `medium` or `high`; the highest risk of anything in the answer.
  - `explain`: a summary of at most 280 characters.
- `data`: the fields of the task{fields}, and with them
  - `rationale`: how you came to the answer, as long as it needs to be and never empty.{insights}

Apart from the fields of the task, a complete answer looks like this:

```json
{{
  "ok": true,
  "meta": {{ "confidence": 0.9, "risk": "low", "explain": "What was done, in a sentence or two." }},
  "data": {{ "rationale": "Why the answer is what it is." }}
}}
```

If the task cannot be done, leave out `data` and give an `error` with {listed} and a `message`.

```json
{{
  "ok": false,
  "meta": {{ "confidence": 0.0, "risk": "high", "explain": "Why there is no answer." }},
  "error": {{ "code": "{code}", "message": "What is missing or wrong." }}
}}
```
"#
    )
}

/// The codes that the error section lists. Plain words only: they are inserted into a prompt.
fn codes(error: &Value) -> Vec<&str> {
    let listed = error.pointer("/properties/code/enum").and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(Value::as_str).filter(|code| is_plain(code)).collect()
}

/// The fields that the module declares, without the standard ones.
fn fields(data: &Value) -> Vec<&str> {
    let declared = data.get("properties").and_then(Value::as_object).into_iter().flatten();
    let names = declared.map(|(name, _)| name.as_str());
    names.filter(|name| is_plain(name) && *name != "rationale" && *name != "extensions").collect()
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|each| each.is_ascii_alphanumeric() || b"_-.".contains(&each))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OVERFLOW: Overflow =
        Overflow { enabled: true, max_items: 5, recoverable: true, require_suggested_mapping: true };

    const PLAIN: EnvelopeText<'_> =
        EnvelopeText { overflow: &OVERFLOW, data: &Value::Null, error: &Value::Null };

    fn migrated(prompt: &str) -> String {
        with_envelope(prompt, &PLAIN).unwrap()
    }

    #[test]
    fn val_012_prompt_008_the_added_section_explains_the_envelope() {
        let prompt = migrated("# Task\n\nDo it.");
        assert!(prompt.starts_with("# Task\n\nDo it.\n\n## Response format (envelope)\n"));
        for word in
            ["`meta`", "`confidence`", "`risk`", "280", "`data`", "`rationale`", "at most 5", "\"error\""]
        {
            assert!(prompt.contains(word), "{word}");
        }
        assert!(explains_envelope(&prompt), "a second migration adds nothing");
    }

    #[test]
    fn mig_003_a_prompt_that_explains_it_already_stays_as_it_is() {
        for prompt in
            ["Answer in the v2.2 Envelope.", "Fill META and data; set ok.", "`meta.explain`, `data`"]
        {
            assert_eq!(with_envelope(prompt, &PLAIN), None, "{prompt}");
        }
        for prompt in ["", "Look at the metadata.", "meta and data", "The okapi explains meta data."] {
            assert!(with_envelope(prompt, &PLAIN).is_some(), "{prompt}");
        }
    }

    #[test]
    fn line_breaks_and_own_codes_of_the_module_are_used() {
        assert!(!migrated("a\r\nb\r\n").replace("\r\n", "").contains('\n'));
        let error = json!({ "properties": { "code": { "enum": ["TOO_LONG", "E5001", "bad `code`", 7] } } });
        let closed = Overflow { enabled: false, ..OVERFLOW };
        let data = json!({ "properties": { "result": {}, "rationale": {}, "two words": {}, "score": {} } });
        let contract = EnvelopeText { overflow: &closed, data: &data, error: &error };
        let prompt = with_envelope("Do it.", &contract).unwrap();
        assert!(prompt.contains("the fields of the task (`result`, `score`), and"));
        assert!(prompt.contains("one of `TOO_LONG`, `E5001`)") && prompt.contains("\"code\": \"TOO_LONG\""));
        assert!(!prompt.contains("insights") && !prompt.contains("bad"));
    }

    #[test]
    fn prompt_005_the_added_section_holds_nothing_that_would_be_replaced() {
        let added = migrated("");
        assert!(!added.contains('$') && !added.contains("{{") && !added.contains("@call"));
        for block in added.split("```json").skip(1) {
            let text = block.split("```").next().unwrap();
            assert!(cognitive_contract::Envelope::from_value(serde_json::from_str(text).unwrap()).is_ok());
        }
    }
}
