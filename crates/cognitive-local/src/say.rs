//! Sentences about decisions: the keyword `x-say` has templates with names in braces. If a name was not decided, the
//! next template is tried; if none fits, the model writes the text. Invents nothing.
//!
//! `{mood}` is the decided value, `{mood.next}` the second candidate, and `{mood.lead}` is `clearly` or `narrowly`.
//! `{found}` lists the members of an object that were found, and `{found.missing}` the others.

use serde_json::Value;

use crate::decide::Decisions;

/// The probability from which a lead is called clear.
const CLEAR: f64 = 0.8;

/// Returns the first template that can be filled. `forms` is one text or a list of texts.
pub(crate) fn sentence(forms: &Value, decisions: &Decisions) -> Option<String> {
    match forms {
        Value::String(form) => fill_template(form, decisions),
        Value::Array(forms) => forms.iter().find_map(|form| fill_template(form.as_str()?, decisions)),
        _ => None,
    }
}

fn fill_template(form: &str, decisions: &Decisions) -> Option<String> {
    let mut text = String::new();
    let mut rest = form;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}')?;
        text.push_str(before);
        text.push_str(&meaning(name, decisions)?);
        rest = behind;
    }
    text.push_str(rest);
    Some(text)
}

fn meaning(name: &str, decisions: &Decisions) -> Option<String> {
    if let Some(decision) = decisions.at_path(name) {
        return decision.value.clone();
    }
    let part = name.rsplit_once('.');
    if let Some((of, part)) = part
        && let Some(decision) = decisions.at_path(of)
    {
        return match part {
            "next" => decision.next.clone(),
            "lead" => Some(if decision.probability >= CLEAR { "clearly" } else { "narrowly" }.to_owned()),
            _ => None,
        };
    }
    let (of, is_missing) = match part {
        Some((of, "missing")) => (of, true),
        _ => (name, false),
    };
    let mut below = decisions.below_path(of).peekable();
    below.peek()?;
    let names =
        below.filter(|decision| decision.value.is_none() == is_missing).filter_map(|it| it.path.last());
    let names: Vec<&str> = names.map(String::as_str).collect();
    Some(if names.is_empty() { "nothing".to_owned() } else { names.join(", ") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::decide::Decision;

    fn decided(path: &str, value: Option<&str>, next: Option<&str>, probability: f64) -> Decision {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let path = path.split('.').map(str::to_owned).collect();
        Decision { path, value: owned(value), next: owned(next), probability, ..Decision::default() }
    }

    #[test]
    fn a_sentence_says_what_was_decided_and_nothing_else() {
        let decisions = Decisions::from_decisions(vec![
            decided("mood", Some("good"), Some("bad"), 0.9),
            decided("found.who", Some("Ada"), None, 0.9),
            decided("found.when", None, None, 0.6),
        ]);
        let said = |forms: Value| sentence(&forms, &decisions);
        let lead = json!("{mood} is {mood.lead} ahead of {mood.next}.");
        assert_eq!(said(lead).unwrap(), "good is clearly ahead of bad.");
        assert_eq!(said(json!("{found}; not {found.missing}")).unwrap(), "who; not when");
        assert_eq!(said(json!(["{label}", "plain {mood}"])).unwrap(), "plain good", "the first that fits");
        for unknown in ["{label}", "{mood.other}", "{found.who.next}", "{mood", "{found.when}"] {
            assert_eq!(said(json!(unknown)), None, "{unknown}");
        }
        let none = Decisions::from_decisions(vec![decided("found.when", None, None, 0.6)]);
        assert_eq!(sentence(&json!("{found}"), &none).unwrap(), "nothing");
    }
}
