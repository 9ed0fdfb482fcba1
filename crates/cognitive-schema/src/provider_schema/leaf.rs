//! Writes strings and numbers: the rules that a target can express.

use serde_json::{Map, Number, Value, json};

use super::bounds;
use super::dialect::{Numbers, Size, Strings, UnsupportedRules};
use super::emit::{EnvelopeEmitter, type_members};

/// The origin of a value: a piece of the input, a name that exists only if an input list contains it, the result of
/// questions, or a statement about such a result. A token-by-token engine enforces it.
const ORIGINS: [&str; 4] = ["x-copy-from", "x-decide", "x-name-from", "x-say"];

/// The maximum length of the shortest format, and the minimum length of the longest one.
const MIN_FORMAT_LENGTH: u64 = 7;
const MAX_FORMAT_LENGTH: u64 = 40;

impl EnvelopeEmitter<'_> {
    pub(super) fn string(&mut self, node: &Map<String, Value>, path: &str) -> Map<String, Value> {
        let mut said = type_members("string");
        if let Some(Value::String(pattern)) = node.get("pattern") {
            let is_taken = self.dialect.patterns.accept(pattern);
            self.keep("pattern", node, &mut said, is_taken, path);
        }
        self.further_patterns(node, &mut said, path);
        if let Some(Value::String(format)) = node.get("format") {
            let is_taken = self.dialect.formats.contains(&format.as_str())
                && self.has_further_rules(&said)
                && (self.dialect.rest == UnsupportedRules::LeftOut || format_fits(node));
            self.keep("format", node, &mut said, is_taken, path);
        }
        let lengths_count = self.has_further_rules(&said);
        let least = node.get("minLength").and_then(Value::as_u64).unwrap_or(0);
        if least > 0 {
            let is_taken = lengths_count && least <= self.dialect.most_length;
            self.keep("minLength", node, &mut said, is_taken, path);
        }
        if let Some(most) = node.get("maxLength").and_then(Value::as_u64) {
            let is_taken = lengths_count && most <= self.dialect.most_length;
            self.keep("maxLength", node, &mut said, is_taken, path);
        } else if self.dialect.size == Size::Bounded {
            let most = bounds::most_characters(path).max(least);
            self.losses.note_tightened(path, "maxLength", format!("at most {most} characters"));
            said.insert("maxLength".to_owned(), json!(most));
        }
        self.origins(node, &mut said);
        said
    }

    /// Copies the origin keywords. They are not rules that a value could break, so a target without them loses nothing.
    pub(super) fn origins(&self, node: &Map<String, Value>, said: &mut Map<String, Value>) {
        for keyword in ORIGINS {
            if let Some(origin) = node.get(keyword)
                && self.dialect.has(keyword)
            {
                said.insert(keyword.to_owned(), origin.clone());
            }
        }
    }

    /// Writes the patterns in addition to the first one.
    fn further_patterns(&mut self, node: &Map<String, Value>, said: &mut Map<String, Value>, path: &str) {
        let patterns = node.get("allOf").and_then(Value::as_array).into_iter().flatten();
        let mut kept = Vec::new();
        for further in patterns.filter_map(|each| each.get("pattern")?.as_str()) {
            if self.dialect.has("allOf") && self.dialect.patterns.accept(further) {
                kept.push(json!({ "pattern": further }));
            } else {
                self.losses.note_dropped(path, "pattern");
            }
        }
        if !kept.is_empty() {
            said.insert("allOf".to_owned(), Value::Array(kept));
        }
    }

    /// Returns whether the dialect still applies a further rule about this string.
    fn has_further_rules(&self, said: &Map<String, Value>) -> bool {
        let has_rule = said.contains_key("pattern") || said.contains_key("format");
        self.dialect.strings == Strings::AllRules || !has_rule
    }

    /// Copies a keyword or records it as dropped.
    fn keep(
        &mut self,
        keyword: &str,
        node: &Map<String, Value>,
        said: &mut Map<String, Value>,
        is_taken: bool,
        path: &str,
    ) {
        match node.get(keyword) {
            Some(value) if is_taken && self.dialect.has(keyword) => {
                said.insert(keyword.to_owned(), value.clone());
            }
            Some(_) => self.losses.note_dropped(path, keyword),
            None => {}
        }
    }

    pub(super) fn number(&mut self, name: &str, node: &Map<String, Value>, path: &str) -> Map<String, Value> {
        let mut said = type_members(name);
        let has_ranges = name == "integer" || self.dialect.numbers == Numbers::AllRanges;
        for (inclusive, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
            match name {
                "integer" => self.integer_bound(inclusive, exclusive, node, &mut said, path),
                _ => self.number_bound(inclusive, exclusive, node, &mut said, has_ranges, path),
            }
        }
        self.keep("multipleOf", node, &mut said, has_ranges, path);
        if self.dialect.size == Size::Bounded {
            self.bound_number(name, &mut said, path);
        }
        said
    }

    /// Writes a bound of integers as an inclusive one, which is exact for both notations.
    fn integer_bound(
        &mut self,
        inclusive: &str,
        exclusive: &str,
        node: &Map<String, Value>,
        said: &mut Map<String, Value>,
        path: &str,
    ) {
        let is_least = inclusive == "minimum";
        let from = |keyword: &str, step: f64| {
            let number = node.get(keyword)?.as_f64()?;
            let rounded = if is_least { number.ceil() } else { number.floor() };
            // An exclusive bound moves by one, unless rounding has already moved it.
            exact_integer(if rounded.total_cmp(&number).is_eq() { rounded + step } else { rounded })
        };
        let step = if is_least { 1.0 } else { -1.0 };
        let bounds = [from(inclusive, 0.0), from(exclusive, step)].into_iter().flatten();
        let bound = if is_least { bounds.max() } else { bounds.min() };
        let is_written = node.contains_key(inclusive) || node.contains_key(exclusive);
        match bound {
            Some(bound) if self.dialect.has(inclusive) => {
                said.insert(inclusive.to_owned(), json!(bound));
            }
            _ if is_written => {
                for keyword in [inclusive, exclusive] {
                    self.keep(keyword, node, said, false, path);
                }
            }
            _ => {}
        }
    }

    fn number_bound(
        &mut self,
        inclusive: &str,
        exclusive: &str,
        node: &Map<String, Value>,
        said: &mut Map<String, Value>,
        has_ranges: bool,
        path: &str,
    ) {
        self.keep(inclusive, node, said, has_ranges, path);
        let sayable = has_ranges && self.dialect.has(inclusive) && !self.dialect.has(exclusive);
        match node.get(exclusive) {
            Some(bound) if sayable && !said.contains_key(inclusive) => {
                self.losses.note_weakened(
                    path,
                    exclusive,
                    format!("the bound itself is allowed, as `{inclusive}`"),
                );
                said.insert(inclusive.to_owned(), bound.clone());
            }
            _ => self.keep(exclusive, node, said, has_ranges, path),
        }
    }

    /// Makes a number finite in length: a range excludes exponents, and a step limits the decimals.
    fn bound_number(&mut self, name: &str, said: &mut Map<String, Value>, path: &str) {
        let most = if name == "integer" { bounds::MAX_INTEGER } else { bounds::MAX_NUMBER };
        let (least, most) = (json!(-most), json!(most));
        for (inclusive, exclusive, bound) in
            [("minimum", "exclusiveMinimum", least), ("maximum", "exclusiveMaximum", most)]
        {
            if said.contains_key(inclusive) || said.contains_key(exclusive) {
                continue;
            }
            let opposite = if inclusive == "minimum" {
                ["maximum", "exclusiveMaximum"]
            } else {
                ["minimum", "exclusiveMinimum"]
            };
            let written = opposite.into_iter().find_map(|keyword| said.get(keyword)).and_then(Value::as_f64);
            let bound = bounds::move_beyond(bound, written, inclusive);
            self.losses.note_tightened(path, inclusive, format!("{bound}"));
            said.insert(inclusive.to_owned(), bound);
        }
        if name == "number" && !said.contains_key("multipleOf") {
            if bounds::is_wide(said) {
                let step = Number::from_f64(bounds::STEP).map_or(Value::Null, Value::Number);
                self.losses.note_tightened(path, "multipleOf", format!("{step}, that is two decimals"));
                said.insert("multipleOf".to_owned(), step);
            } else {
                self.exclude_bounds(said, path);
            }
        }
    }

    /// Replaces the exclusive bounds of a narrow range by inclusive ones slightly further in. Without a step, the
    /// grammar engine would accept the bound itself.
    fn exclude_bounds(&mut self, said: &mut Map<String, Value>, path: &str) {
        let step = bounds::small_step(said);
        for (exclusive, inclusive, direction) in
            [("exclusiveMinimum", "minimum", 1.0), ("exclusiveMaximum", "maximum", -1.0)]
        {
            let moved =
                said.get(exclusive).and_then(Value::as_f64).map(|bound| json!(bound + direction * step));
            if let Some(moved) = moved {
                self.losses.note_tightened(path, exclusive, format!("`{inclusive}` {moved}"));
                said.shift_remove(exclusive);
                said.insert(inclusive.to_owned(), moved);
            }
        }
    }
}

/// Returns whether a format certainly leaves some values under the other rules of a string. Formats validate nothing,
/// so they must not make an answer impossible.
fn format_fits(node: &Map<String, Value>) -> bool {
    let length = |keyword: &str| node.get(keyword).and_then(Value::as_u64);
    let has_pattern = node.contains_key("pattern") || node.contains_key("allOf");
    !has_pattern
        && length("minLength").is_none_or(|least| least <= MIN_FORMAT_LENGTH)
        && length("maxLength").is_none_or(|most| most >= MAX_FORMAT_LENGTH)
}

/// Converts a float without fraction to an integer, if the result is exact.
fn exact_integer(number: f64) -> Option<i64> {
    (number.abs() < 9_007_199_254_740_992.0).then(|| format!("{number:.0}").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_05_whole_numbers_are_exact_or_none() {
        assert_eq!(
            (exact_integer(-3.0), exact_integer(0.0), exact_integer(1e300)),
            (Some(-3), Some(0), None)
        );
        assert_eq!(exact_integer(f64::NAN), None);
    }
}
