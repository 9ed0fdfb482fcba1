//! Rewrites dependent rules as choices: `not`, `if`, `dependencies`, `contains`, and branches of which exactly one may
//! match. Only for narrowing targets. Rules that cannot be rewritten are recorded as lost.

use serde_json::{Map, Value, json};

use super::except::WRITTEN;
use super::merge::{excluded_values, merge};
use super::negate::opposite;
use super::normal::{SchemaNormaliser, WalkPosition, min_contains};
use super::union;

/// The most items that `contains` writes out. Each is a copy of its schema.
const MAX_CONTAINED: f64 = 50.0;

/// Choices with more branches than this are not made exclusive. Each branch would have to exclude all others, so the
/// schema grows with the square.
const MAX_EXCLUSIVE: usize = 12;

impl SchemaNormaliser<'_> {
    /// Merges the conditions of an author's schema into its plain form.
    pub(super) fn conditions(
        &mut self,
        members: &Map<String, Value>,
        plain: Value,
        at: &WalkPosition,
    ) -> Value {
        let mut plain = plain;
        if let Some(schema) = members.get("not") {
            plain = self.not(schema, plain, at);
        }
        if let Some(condition) = members.get("if") {
            plain = self.conditional(condition, members, plain, at);
        }
        for (name, needs) in members.get("dependencies").and_then(Value::as_object).into_iter().flatten() {
            let needs = if needs.is_array() { json!({ "required": needs }) } else { needs.clone() };
            let choice = json!({ "anyOf": [needs, { "properties": { name: false } }] });
            plain = self.join(plain, "dependencies", &choice, at);
        }
        if let Some(schema) = members.get("contains") {
            plain = self.contains(schema, min_contains(members), plain, at);
        }
        plain
    }

    /// The first items are those that have to match.
    fn contains(&mut self, schema: &Value, least: f64, plain: Value, at: &WalkPosition) -> Value {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "compared with the limit first"
        )]
        let places = match least {
            least if least <= 0.0 => return plain,
            least if least <= MAX_CONTAINED => least.ceil() as usize,
            _ => {
                self.losses.note_dropped(&at.path, "minContains");
                1
            }
        };
        let how = if places == 1 {
            "the first item must match".to_owned()
        } else {
            format!("the first {places} items must match")
        };
        self.losses.note_tightened(&at.path, "contains", how);
        let first = json!({ "items": vec![schema; places], "minItems": places });
        self.join(plain, "contains", &first, at)
    }

    /// Merges the meaning of a keyword into the schema so far.
    fn join(&mut self, plain: Value, keyword: &'static str, also: &Value, at: &WalkPosition) -> Value {
        let outer = self.written_as;
        self.written_as = Some(outer.unwrap_or(keyword));
        let also = self.schema(also, &at.same_value());
        self.written_as = outer;
        merge(plain, also, &at.path, self.losses)
    }

    /// The opposite of a schema, or of the target of its reference within the same file.
    fn opposite(&self, schema: &Value, at: &WalkPosition) -> Option<Value> {
        opposite(self.find_target(schema, &at.file).unwrap_or(schema))
    }

    fn not(&mut self, schema: &Value, plain: Value, at: &WalkPosition) -> Value {
        if let Some(values) = accepted_values(schema).filter(|values| self.takes(values.len())) {
            let not = json!({ "enum": values, WRITTEN: self.written_as.unwrap_or("not") });
            return merge(plain, json!({ "not": not }), &at.path, self.losses);
        }
        match self.opposite(schema, at) {
            Some(opposite) => self.join(plain, "not", &opposite, at),
            None => {
                self.losses.note_dropped(&at.path, self.written_as.unwrap_or("not"));
                plain
            }
        }
    }

    /// Either the condition and `then`, or its opposite and `else`. Without an opposite, both `then` and `else` apply,
    /// so the condition no longer matters.
    fn conditional(
        &mut self,
        condition: &Value,
        members: &Map<String, Value>,
        plain: Value,
        at: &WalkPosition,
    ) -> Value {
        let part = |keyword: &str| members.get(keyword).cloned().unwrap_or(Value::Bool(true));
        let (then, otherwise) = (part("then"), part("else"));
        if then == Value::Bool(true) && otherwise == Value::Bool(true) {
            return plain;
        }
        let both = match self.opposite(condition, at) {
            Some(opposite) => {
                json!({ "anyOf": [{ "allOf": [condition, then] }, { "allOf": [opposite, otherwise] }] })
            }
            None => {
                self.losses.note_tightened(&at.path, "if", "the consequence applies without its condition");
                json!({ "allOf": [then, otherwise] })
            }
        };
        self.join(plain, "if", &both, at)
    }

    /// Makes branches exclusive: each excludes the values that the others accept. A branch that cannot be separated
    /// from another is left out, as long as any remains.
    pub(super) fn exclusive(&mut self, branches: &[Value], plain: Vec<Value>, at: &WalkPosition) -> Value {
        // Every branch would be compared with every other, and would grow by the opposites of all of them.
        if branches.len() > MAX_EXCLUSIVE {
            self.losses.note_weakened(&at.path, "oneOf", "at least one branch instead of exactly one");
            return json!({ "oneOf": plain });
        }
        let alone = |index: usize| -> Option<Vec<Value>> {
            let mine = plain.get(index)?;
            let others = plain.iter().zip(branches).enumerate().filter(|(other, _)| *other != index);
            let overlapping = others.filter(|(_, (other, _))| !union::exclude(mine, other));
            overlapping.map(|(_, (_, written))| self.opposite(written, at)).collect()
        };
        let opposites: Vec<Option<Vec<Value>>> = (0..branches.len()).map(alone).collect();
        if opposites.iter().all(Option::is_none) {
            self.losses.note_weakened(&at.path, "oneOf", "at least one branch instead of exactly one");
            return json!({ "oneOf": plain });
        }
        let mut said = Vec::new();
        for (branch, opposites) in plain.into_iter().zip(opposites) {
            let Some(opposites) = opposites else {
                self.losses.note_tightened(&at.path, "oneOf", "without a branch that overlaps with others");
                said.push(Value::Bool(false));
                continue;
            };
            said.push(
                opposites.iter().fold(branch, |branch, opposite| self.join(branch, "oneOf", opposite, at)),
            );
        }
        json!({ "oneOf": said })
    }
}

/// The values that a schema accepts, if it is only a list of values.
fn accepted_values(schema: &Value) -> Option<Vec<Value>> {
    let members = schema.as_object()?;
    let lists = |keyword: &String| matches!(keyword.as_str(), "enum" | "const" | "description" | "title");
    if !members.keys().all(lists) {
        return None;
    }
    match (members.get("const"), members.contains_key("enum")) {
        (Some(one), false) => Some(vec![one.clone()]),
        (None, true) => Some(excluded_values(schema)),
        _ => None,
    }
}
