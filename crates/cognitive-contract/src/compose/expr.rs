//! Conditions such as `$.meta.confidence > 0.7 && exists($.data.changes)`: compiled once, evaluated often. (COMP-040)
//! The language is total: every compiled condition has a result for every root. No coercion, no functions except
//! `exists`, no access beyond the root. (COMP-041, COMP-042)

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use serde_json::Value;

use super::cursor::Slip;
use super::parser;
use super::path::{Path, PathRoot};
use crate::json_cmp::{deep_equal, order};

/// A compiled condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    source: String,
    tree: ExprNode,
}

/// A node of a condition, with its position in the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExprNode {
    pub(super) kind: ExprKind,
    pub(super) span: Range<usize>,
}

/// The operation of a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ExprKind {
    Literal(Value),
    Path(Path),
    Exists(Path),
    Not(Box<ExprNode>),
    Compare(Box<ExprNode>, Comparison, Box<ExprNode>),
    All(Vec<ExprNode>),
    Any(Vec<ExprNode>),
}

/// The six comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Condition {
    /// Compiles a condition. An error carries its position.
    pub fn parse(text: &str) -> Result<Self, Slip> {
        Self::parse_with_names(text, &[])
    }

    /// Like [`parse`](Self::parse), but these members of the root need no `$.`, and lists are supported:
    /// `risk in [medium, high]`.
    pub fn parse_with_names(text: &str, names: &[&str]) -> Result<Self, Slip> {
        Ok(Self { source: text.to_owned(), tree: parser::parse(text, names)? })
    }

    /// Evaluates the condition. A condition without a comparison holds only if its value is `true`.
    #[must_use]
    pub fn holds<'a>(&self, root: impl Into<PathRoot<'a>>) -> bool {
        self.tree.holds(root.into())
    }

    /// The source text of the condition.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns every path with its position in the text.
    #[must_use]
    pub fn paths(&self) -> Vec<(&Path, Range<usize>)> {
        let mut found = Vec::new();
        let mut open = vec![&self.tree];
        while let Some(node) = open.pop() {
            match &node.kind {
                ExprKind::Path(path) | ExprKind::Exists(path) => found.push((path, node.span.clone())),
                ExprKind::Literal(_) => {}
                ExprKind::Not(inner) => open.push(inner),
                ExprKind::Compare(left, _, right) => open.extend([&**right, &**left]),
                ExprKind::All(parts) | ExprKind::Any(parts) => open.extend(parts.iter().rev()),
            }
        }
        found
    }

    /// Returns every `==` or `!=` comparison of a path with a literal, with the position of the literal in the text.
    #[must_use]
    pub fn equalities(&self) -> Vec<(&Path, &Value, Range<usize>)> {
        let mut found = Vec::new();
        let mut open = vec![&self.tree];
        while let Some(node) = open.pop() {
            match &node.kind {
                ExprKind::Compare(left, Comparison::Equal | Comparison::Unequal, right) => {
                    for (one, other) in [(left, right), (right, left)] {
                        if let (ExprKind::Path(path), ExprKind::Literal(value)) = (&one.kind, &other.kind) {
                            found.push((path, value, other.span.clone()));
                        }
                    }
                }
                ExprKind::Not(inner) => open.push(inner),
                ExprKind::All(parts) | ExprKind::Any(parts) => open.extend(parts.iter().rev()),
                ExprKind::Compare(..) | ExprKind::Path(_) | ExprKind::Exists(_) | ExprKind::Literal(_) => {}
            }
        }
        found
    }

    /// Returns every path in an ordering comparison, such as `<`, with the position of the comparison in the text.
    #[must_use]
    pub fn orders(&self) -> Vec<(&Path, Range<usize>)> {
        let mut found = Vec::new();
        let mut open = vec![&self.tree];
        while let Some(node) = open.pop() {
            match &node.kind {
                ExprKind::Compare(_, Comparison::Equal | Comparison::Unequal, _)
                | ExprKind::Path(_)
                | ExprKind::Exists(_)
                | ExprKind::Literal(_) => {}
                ExprKind::Compare(left, _, right) => {
                    for side in [left, right] {
                        if let ExprKind::Path(path) = &side.kind {
                            found.push((path, node.span.clone()));
                        }
                    }
                }
                ExprKind::Not(inner) => open.push(inner),
                ExprKind::All(parts) | ExprKind::Any(parts) => open.extend(parts.iter().rev()),
            }
        }
        found
    }

    #[cfg(test)]
    pub(super) fn tree(&self) -> &ExprNode {
        &self.tree
    }
}

impl ExprNode {
    fn holds(&self, root: PathRoot<'_>) -> bool {
        *self.value(root) == Value::Bool(true)
    }

    /// A missing value counts as null. Recurses as deep as the text nests, which the parser limits.
    fn value<'a>(&'a self, root: PathRoot<'a>) -> Cow<'a, Value> {
        let truth = match &self.kind {
            ExprKind::Literal(value) => return Cow::Borrowed(value),
            ExprKind::Path(path) => return path.find(root).unwrap_or(Cow::Owned(Value::Null)),
            ExprKind::Exists(path) => path.exists(root),
            ExprKind::Not(inner) => !inner.holds(root),
            ExprKind::Compare(left, comparison, right) => {
                comparison.holds(&left.value(root), &right.value(root))
            }
            ExprKind::All(parts) => parts.iter().all(|part| part.holds(root)),
            ExprKind::Any(parts) => parts.iter().any(|part| part.holds(root)),
        };
        Cow::Owned(Value::Bool(truth))
    }
}

impl Comparison {
    /// Numbers and strings have an order; other values can only be equal or not.
    fn holds(self, left: &Value, right: &Value) -> bool {
        let between = |accept: fn(Ordering) -> bool| order(left, right).is_some_and(accept);
        match self {
            Self::Equal => deep_equal(left, right),
            Self::Unequal => !deep_equal(left, right),
            Self::Less => between(Ordering::is_lt),
            Self::LessOrEqual => between(Ordering::is_le),
            Self::Greater => between(Ordering::is_gt),
            Self::GreaterOrEqual => between(Ordering::is_ge),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn root() -> Value {
        json!({
            "meta": { "confidence": 0.8, "risk": "low" },
            "data": { "flag": true, "off": false, "nil": null, "list": [1, 2], "word": "abc", "big": 9_007_199_254_740_993_u64 },
            "a-b": { "c_d": 1 },
        })
    }

    fn holds(text: &str) -> bool {
        Condition::parse(text).unwrap_or_else(|slip| panic!("{text}: {slip:?}")).holds(&root())
    }

    #[test]
    fn comp_040_operators_literals_and_precedence() {
        for text in [
            "$.meta.confidence > 0.7 && $.meta.risk == 'low'",
            "$.meta.confidence>=8e-1&&$.meta.confidence<=0.80",
            "$.data.list.length == 2 && $.data.word.length < 4",
            "exists($.data.nil) && !exists($.data.none) && exists( $.a-b['c_d'] )",
            "$.data.flag && !$.data.off",
            // `!` binds tighter than a comparison, `&&` tighter than `||`.
            "!$.data.off == true",
            "$.data.flag || $.data.off && $.data.off",
            "!(($.data.flag || $.data.off) && $.data.off)",
            "$.data.word == \"abc\" && $.data.word < 'abd' && 'B' < 'a'",
            "-1 < 0 && 1 == 1.0 && null == null && true != false",
            "$.data.big > 9007199254740992 && $.data.big != 9007199254740992",
            "!!$.data.flag",
            " \n true\t",
        ] {
            assert!(holds(text), "{text}");
        }
    }

    #[test]
    fn comp_041_no_coercion_and_missing_is_null() {
        for text in [
            "$.none == null",
            "$.none == $.data.nil",
            "$.none != 'x'",
            "$.data.list != '1,2'",
            "!$.none && !$.meta.risk && !$.data.list && !1",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in [
            "$.none > 0",
            "$.none < 0",
            "$.none >= null",
            "null <= null",
            "$.meta.risk > 1",
            "'2' > 1",
            "true > false",
            "$.data.list >= $.data.list",
            "1 == '1'",
            "1 == true",
            "$.data.nil == false",
            "$.meta.risk",
            "1",
            "'true'",
            "null",
        ] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn paths_come_in_the_order_of_the_text_with_their_places() {
        let text = "exists($.a.x) && ($.b == $.c || !$['d'])";
        let condition = Condition::parse(text).unwrap();
        let paths = condition.paths();
        let names: Vec<_> = paths.iter().filter_map(|(path, _)| path.first_member()).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        assert_eq!(
            paths.iter().map(|(_, span)| &text[span.clone()]).collect::<Vec<_>>(),
            ["exists($.a.x)", "$.b", "$.c", "$['d']"]
        );
        assert_eq!(condition.source(), text);
    }

    #[test]
    fn comparisons_with_fixed_values_are_told_with_their_places() {
        let text = "$.a == 'x' && !(1 != $.b || $.c > 2) || $.d == $.e";
        let condition = Condition::parse(text).unwrap();
        let found: Vec<_> =
            condition.equalities().into_iter().map(|(_, value, span)| (value.clone(), &text[span])).collect();
        assert_eq!(found, [(json!("x"), "'x'"), (json!(1), "1")]);
    }

    #[test]
    fn several_sources_are_asked_by_name() {
        let check = json!({ "meta": { "confidence": 0.6 } });
        let condition = Condition::parse("$.quick-check.meta.confidence > 0.5").unwrap();
        assert!(condition.holds(PathRoot::Named(&[("quick-check", &check)])));
        assert!(!condition.holds(PathRoot::Named(&[("other", &check)])));
    }
}
