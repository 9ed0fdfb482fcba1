//! Parses labelled cases: one JSON object per line, `{"id"?, "half"?, "input": {…}, "expect": {…}}`.
//! Rejects a file with a single invalid line, and reports its number: a skipped case would falsify the count.

use std::collections::HashSet;

use cognitive_contract::json;
use cognitive_library::json::index;
use serde_json::Value;

use super::expect::LabelExpectation;

/// The most cases that a file may contain. All of them are held in memory.
const MAX_CASES: usize = 100_000;

/// One labelled case.
#[derive(Debug)]
pub struct LabelledCase {
    /// The name of the case; its line number if it has no name.
    pub id: String,
    /// The part of the set that it belongs to, such as `held-out`.
    pub half: Option<String>,
    /// The input of the module.
    pub input: Value,
    /// The expected answer.
    pub expect: LabelExpectation,
}

/// Parses the cases of a file. Skips empty lines; the error names the first line that cannot be used.
pub fn parse(text: &str) -> Result<Vec<LabelledCase>, String> {
    let mut cases = Vec::new();
    let mut ids = HashSet::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let number = index + 1;
        let at = |why: String| format!("line {number}: {why}");
        let case = parse_case(line, number).map_err(at)?;
        if !ids.insert(case.id.clone()) {
            return Err(at(format!("duplicate case id: `{}`", case.id)));
        }
        if cases.len() >= MAX_CASES {
            return Err(at(format!("there are more than {MAX_CASES} cases")));
        }
        cases.push(case);
    }
    if cases.is_empty() { Err("the file has no cases".to_owned()) } else { Ok(cases) }
}

fn parse_case(line: &str, number: usize) -> Result<LabelledCase, String> {
    let value = json::parse(line).map_err(|error| format!("not JSON: {}", error.message))?;
    if let Some(twice) = index(line).repeated.first() {
        return Err(format!("duplicate member: `{twice}`"));
    }
    let Value::Object(members) = &value else { return Err("a case must be an object".to_owned()) };
    if let Some(other) =
        members.keys().find(|name| !["id", "half", "input", "expect"].contains(&name.as_str()))
    {
        return Err(format!("a case has `id`, `half`, `input` and `expect`, not: `{other}`"));
    }
    let id = match members.get("id") {
        None => number.to_string(),
        Some(Value::String(id)) if !id.is_empty() => id.clone(),
        Some(_) => return Err("`id` must be a string".to_owned()),
    };
    let half = match members.get("half") {
        None => None,
        Some(Value::String(half)) if !half.is_empty() => Some(half.clone()),
        Some(_) => return Err("`half` must be a string".to_owned()),
    };
    let input = members.get("input").filter(|input| input.is_object());
    let input = input.ok_or("`input` is required and must be an object")?.clone();
    let expect = members.get("expect").ok_or("`expect` is required")?;
    let expect = LabelExpectation::parse(expect).map_err(|why| format!("`expect`: {why}"))?;
    Ok(LabelledCase { id, half, input, expect })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_per_line_with_or_without_a_name() {
        let cases = parse(
            "\u{feff}{\"id\": \"a\", \"input\": {\"text\": \"t\"}, \"expect\": {\"word\": \"x\"}}\n\n{\"input\": {}, \"expect\": {\"word\": \"x\"}}\n",
        )
        .unwrap();
        let ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(ids, ["a", "3"]);
        assert_eq!(cases[0].input, serde_json::json!({ "text": "t" }));
    }

    #[test]
    fn a_line_that_cannot_be_used_is_named() {
        let good = r#"{"id": "a", "input": {}, "expect": {"word": "x"}}"#;
        for (line, why) in [
            ("{", "line 2: not JSON: "),
            ("[]", "line 2: a case must be an object"),
            (
                r#"{"input": {}, "expects": {}}"#,
                "line 2: a case has `id`, `half`, `input` and `expect`, not: `expects`",
            ),
            (r#"{"input": {}, "input": {}, "expect": {}}"#, "line 2: duplicate member: `/input`"),
            (r#"{"id": 1, "input": {}, "expect": {"a": 1}}"#, "line 2: `id` must be a string"),
            (r#"{"half": [], "input": {}, "expect": {"a": 1}}"#, "line 2: `half` must be a string"),
            (r#"{"input": "t", "expect": {"a": 1}}"#, "line 2: `input` is required and must be an object"),
            (r#"{"input": {}}"#, "line 2: `expect` is required"),
            (r#"{"input": {}, "expect": {}}"#, "line 2: `expect`: the expectation is empty"),
            (good, "line 2: duplicate case id: `a`"),
        ] {
            let error = parse(&format!("{good}\n{line}\n")).unwrap_err();
            assert!(error.starts_with(why), "{line}: {error}");
        }
        assert_eq!(parse(" \n").unwrap_err(), "the file has no cases");
    }
}
