//! The length of the longest answer that a contract admits, in tokens, from its lengths, counts and lists of
//! values. A contract with an unbounded string, list or object has no bound. A ceiling counts a usual length, and a run
//! whose limit has room may write more.

use cognitive_contract::Module;
use serde_json::{Map, Value};

/// The most tokens of an answer whose contract has no bound, or a larger one. Services bill whatever a model writes.
const MOST_ANSWER_TOKENS: u64 = 4096;
/// The assumed length of an answer without insights: longer than every recorded one of the bundled modules. Bounds are
/// often far above it, because lists and texts seldom have their full length.
const USUAL_ANSWER_TOKENS: u64 = 512;
/// The assumed tokens of all insights, and of all context that is handed on. Neither has a bound of length.
const USUAL_EXTRA_TOKENS: u64 = 192;
/// The smallest limit: enough for a failure with its reason.
const LEAST_ANSWER_TOKENS: u64 = 256;
/// Characters per two tokens for text in the Latin script. English has nine, German seven, code six.
const CHARACTERS_PER_TWO: u64 = 5;
/// Tokens per character elsewhere: the scripts that tokenizers handle worst, and escapes.
const TOKENS_PER_CHARACTER: u64 = 2;
/// The same text in another script has this many times as many tokens, at most.
const OTHER_PER_LATIN: u64 = 3;
/// A text counts as another script if more than one in this many characters is.
const OTHER_SCRIPT: usize = 12;
/// Tokens around the data, without `meta.explain`: names, confidence, risk, fences, a word before the answer.
const ENVELOPE_TOKENS: u64 = 100;
/// A number, with sign, digits and exponent.
const NUMBER_TOKENS: u64 = 16;
/// The marks around a member or an item: quotes, colon, comma, line break and indentation.
const MARKS: u64 = 5;
/// Deeper schemas count as unbounded. Recursive ones have no end.
const MAX_DEPTH: usize = 32;
/// Schemas with more parts count as unbounded. References that double at each step would keep the sum busy for years.
const MAX_NODES: usize = 20_000;

/// The length of a module's answer, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerSize {
    /// The length that a ceiling counts.
    pub(crate) usual: u64,
    /// The length that is allowed if the limit has room for it.
    pub(crate) most: u64,
}

/// The length of an answer of the module. An explicit `wanted` limit is used as it is: the caller knows the answer
/// better than the bounds of its contract do.
pub(crate) fn answer_size(module: &Module, wanted: Option<u64>, script: WritingScript) -> AnswerSize {
    if let Some(wanted) = wanted {
        return AnswerSize { usual: wanted, most: wanted };
    }
    let script =
        if script == WritingScript::Other { script } else { WritingScript::detect([module.prompt.as_str()]) };
    let rules = module.envelope_rules();
    let extras = u64::from(rules.insights.most > 0) + u64::from(!rules.emits.is_empty());
    let around = script.tokens(rules.explain_limit as u64).saturating_add(ENVELOPE_TOKENS);
    let data = module.contract.data().schema();
    let bound = Walk { root: data, script, nodes: 0 }.tokens(data, 0).map(|data| data.saturating_add(around));
    let within = |tokens: u64| tokens.clamp(LEAST_ANSWER_TOKENS, MOST_ANSWER_TOKENS);
    let extra = extras.saturating_mul(script.scale_tokens(USUAL_EXTRA_TOKENS));
    AnswerSize {
        usual: within(
            bound.unwrap_or(u64::MAX).min(script.scale_tokens(USUAL_ANSWER_TOKENS)).saturating_add(extra),
        ),
        most: bound.filter(|_| extras == 0).map_or(MOST_ANSWER_TOKENS, within),
    }
}

/// The script of a text. An answer is assumed to use the script of its input and its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum WritingScript {
    #[default]
    Latin,
    Other,
}

impl WritingScript {
    pub(crate) fn detect<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let (mut all, mut others) = (0_usize, 0_usize);
        for letter in texts.into_iter().flat_map(str::chars) {
            all += 1;
            // From Greek on, without punctuation and symbols.
            others += usize::from(letter >= '\u{370}' && !('\u{2000}'..'\u{2c00}').contains(&letter));
        }
        if others.saturating_mul(OTHER_SCRIPT) > all { Self::Other } else { Self::Latin }
    }

    /// The number of tokens for this many characters.
    fn tokens(self, characters: u64) -> u64 {
        match self {
            Self::Latin => characters.saturating_mul(2).div_ceil(CHARACTERS_PER_TWO),
            Self::Other => characters.saturating_mul(TOKENS_PER_CHARACTER),
        }
    }

    /// The number of tokens for a text that has this many in the Latin script.
    fn scale_tokens(self, tokens: u64) -> u64 {
        match self {
            Self::Latin => tokens,
            Self::Other => tokens.saturating_mul(OTHER_PER_LATIN),
        }
    }
}

/// Walks one schema.
struct Walk<'s> {
    root: &'s Value,
    script: WritingScript,
    nodes: usize,
}

impl Walk<'_> {
    /// The longest value that a schema admits; `None` if it is unbounded.
    fn tokens(&mut self, schema: &Value, depth: usize) -> Option<u64> {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return None;
        }
        let members = match schema {
            Value::Bool(false) => return Some(0),
            Value::Object(members) => members,
            _ => return None,
        };
        // A value satisfies all keywords, so the tightest bound counts.
        let said = [
            longest_listed(members),
            self.referenced_tokens(members, depth),
            self.longest_type(members, depth),
            self.any_of(members, "anyOf", depth),
            self.any_of(members, "oneOf", depth),
            self.all_of(members, depth),
        ];
        said.into_iter().flatten().min()
    }

    fn referenced_tokens(&mut self, members: &Map<String, Value>, depth: usize) -> Option<u64> {
        let pointer = members.get("$ref")?.as_str()?.strip_prefix('#')?;
        let root = self.root;
        self.tokens(root.pointer(pointer)?, depth + 1)
    }

    fn any_of(&mut self, members: &Map<String, Value>, name: &str, depth: usize) -> Option<u64> {
        let mut most = 0;
        for branch in members.get(name)?.as_array()? {
            most = self.tokens(branch, depth + 1)?.max(most);
        }
        Some(most)
    }

    fn all_of(&mut self, members: &Map<String, Value>, depth: usize) -> Option<u64> {
        let all = members.get("allOf")?.as_array()?;
        all.iter().filter_map(|each| self.tokens(each, depth + 1)).min()
    }

    /// The tokens of the longest allowed type.
    fn longest_type(&mut self, members: &Map<String, Value>, depth: usize) -> Option<u64> {
        let types: Vec<&str> = match members.get("type")? {
            Value::String(name) => vec![name.as_str()],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => return None,
        };
        let mut most = 0;
        for name in types {
            let tokens = match name {
                "null" | "boolean" => 5,
                "integer" | "number" => NUMBER_TOKENS,
                "string" => self.script.tokens(count(members, "maxLength")?).saturating_add(1),
                "array" => self.list(members, depth)?,
                "object" => self.object(members, depth)?,
                _ => return None,
            };
            most = most.max(tokens);
        }
        Some(most)
    }

    fn list(&mut self, members: &Map<String, Value>, depth: usize) -> Option<u64> {
        let most = count(members, "maxItems")?;
        if most == 0 {
            return Some(MARKS);
        }
        let item = match members.get("items")? {
            Value::Array(_) => return None,
            item => self.tokens(item, depth + 1)?,
        };
        Some(item.saturating_add(MARKS).saturating_mul(most).saturating_add(MARKS))
    }

    fn object(&mut self, members: &Map<String, Value>, depth: usize) -> Option<u64> {
        let is_closed = members.get("additionalProperties") == Some(&Value::Bool(false))
            && members.get("patternProperties").is_none();
        if !is_closed {
            return None;
        }
        let mut sum = MARKS;
        for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let name = self.script.tokens(name.chars().count() as u64).saturating_add(MARKS);
            sum = sum.saturating_add(self.tokens(schema, depth + 1)?).saturating_add(name);
        }
        Some(sum)
    }
}

fn count(members: &Map<String, Value>, name: &str) -> Option<u64> {
    members.get(name)?.as_u64()
}

/// The tokens of the longest listed value.
fn longest_listed(members: &Map<String, Value>) -> Option<u64> {
    let constant = members.get("const").map(literal_tokens);
    let listed = members.get("enum").and_then(Value::as_array);
    constant.or_else(|| listed?.iter().map(literal_tokens).max())
}

/// The tokens of a value that the schema spells out. Names need more tokens per character than prose.
fn literal_tokens(value: &Value) -> u64 {
    (value.to_string().len() as u64).div_ceil(2).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokens(schema: &Value) -> Option<u64> {
        Walk { root: schema, script: WritingScript::Latin, nodes: 0 }.tokens(schema, 0)
    }

    #[test]
    fn lengths_counts_and_lists_of_values_bound_an_answer() {
        assert_eq!(tokens(&json!({ "type": "string", "maxLength": 10 })), Some(5));
        assert_eq!(tokens(&json!({ "enum": ["a", "longer"] })), Some(5));
        let item = json!({ "type": "string", "maxLength": 2 });
        assert_eq!(tokens(&json!({ "type": "array", "maxItems": 3, "items": item })), Some(3 * (2 + 5) + 5));
        let closed = json!({ "type": "object", "additionalProperties": false, "properties": { "ab": item } });
        assert_eq!(tokens(&closed), Some(5 + 2 + 1 + 5));
        assert_eq!(tokens(&json!({ "anyOf": [{ "const": 1 }, { "type": "boolean" }] })), Some(5));
        assert_eq!(tokens(&json!({ "type": "string", "maxLength": 500, "enum": ["x"] })), Some(3));
        let wide = json!({ "type": "string", "maxLength": 10 });
        assert_eq!(Walk { root: &wide, script: WritingScript::Other, nodes: 0 }.tokens(&wide, 0), Some(21));
    }

    #[test]
    fn accents_do_not_make_another_script() {
        for latin in ["plain", "schöne Größe überall", "", "déjà vu"] {
            assert_eq!(WritingScript::detect([latin]), WritingScript::Latin, "{latin}");
        }
        for other in ["答えは", "да", "ναι, yes", "the word 図書館"] {
            assert_eq!(WritingScript::detect([other]), WritingScript::Other, "{other}");
        }
    }

    #[test]
    fn what_is_left_open_has_no_bound() {
        for open in [
            json!(true),
            json!({}),
            json!({ "type": "string" }),
            json!({ "type": "array", "items": { "type": "null" } }),
            json!({ "type": "object", "properties": {} }),
            json!({ "anyOf": [{ "const": 1 }, {}] }),
            json!({ "$ref": "#" }),
            json!({ "type": ["string", "null"] }),
        ] {
            assert_eq!(tokens(&open), None, "{open}");
        }
    }
}
