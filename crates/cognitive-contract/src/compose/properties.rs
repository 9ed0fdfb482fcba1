//! Properties for any text and any value: conditions and paths never panic, and a condition evaluates like its tree.
//! The reference evaluation shares no code with the real one.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::expr::{ExprKind, ExprNode};
use super::*;

/// A generated condition.
#[derive(Debug, Clone)]
enum PropertyKind {
    Value(Value),
    /// Names from the root.
    Path(Vec<String>),
    Exists(Vec<String>),
    Not(Box<PropertyKind>),
    Compare(Box<PropertyKind>, &'static str, Box<PropertyKind>),
    And(Vec<PropertyKind>),
    Or(Vec<PropertyKind>),
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b-c"), Just("d_e"), Just("x y"), Just("it's"), Just("é")]
        .prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof![Just(0.5), Just(-1.5), Just(2.0)].prop_map(Value::from),
        "[ab'\"\\\\é$. ]{0,4}".prop_map(Value::from),
    ]
}

fn document() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

fn made() -> impl Strategy<Value = PropertyKind> {
    let path = || prop::collection::vec(name(), 0..4);
    let leaf = prop_oneof![
        scalar().prop_map(PropertyKind::Value),
        path().prop_map(PropertyKind::Path),
        path().prop_map(PropertyKind::Exists),
    ];
    leaf.prop_recursive(5, 24, 3, |inner| {
        let operator = prop_oneof![Just("=="), Just("!="), Just("<"), Just("<="), Just(">"), Just(">=")];
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            boxed.clone().prop_map(PropertyKind::Not),
            (boxed.clone(), operator, boxed)
                .prop_map(|(left, operator, right)| PropertyKind::Compare(left, operator, right)),
            prop::collection::vec(inner.clone(), 2..4).prop_map(PropertyKind::And),
            prop::collection::vec(inner, 2..4).prop_map(PropertyKind::Or),
        ]
    })
}

impl PropertyKind {
    fn text(&self) -> String {
        let joined = |parts: &[Self], operator: &str| {
            parts.iter().map(|part| format!("({})", part.text())).collect::<Vec<_>>().join(operator)
        };
        match self {
            Self::Value(Value::String(text)) => quoted(text),
            Self::Value(value) => value.to_string(),
            Self::Path(names) => path_text(names),
            Self::Exists(names) => format!("exists({})", path_text(names)),
            Self::Not(inner) => format!("!({})", inner.text()),
            Self::Compare(left, operator, right) => {
                format!("({}) {operator} ({})", left.text(), right.text())
            }
            Self::And(parts) => joined(parts, " && "),
            Self::Or(parts) => joined(parts, "||"),
        }
    }

    /// The value by the letter of the requirement.
    fn value(&self, root: &Value) -> Value {
        let is_true = |part: &Self| part.value(root) == json!(true);
        match self {
            Self::Value(value) => value.clone(),
            Self::Path(names) => reached(root, names).cloned().unwrap_or(Value::Null),
            Self::Exists(names) => json!(reached(root, names).is_some()),
            Self::Not(inner) => json!(!is_true(inner)),
            Self::And(parts) => json!(parts.iter().filter(|part| is_true(part)).count() == parts.len()),
            Self::Or(parts) => json!(parts.iter().filter(|part| is_true(part)).count() > 0),
            Self::Compare(left, operator, right) => {
                let (left, right) = (left.value(root), right.value(root));
                let ordered =
                    |test: fn(f64, f64) -> bool, texts: fn(&str, &str) -> bool| match (&left, &right) {
                        (Value::Number(one), Value::Number(other)) => {
                            // Exact, because the numbers above are whole and small, or floats, or any `i64`.
                            let whole = one.as_i64().zip(other.as_i64());
                            whole.map_or_else(
                                || test(one.as_f64().unwrap(), other.as_f64().unwrap()),
                                |(one, other)| test(f64::from(one.cmp(&other) as i8), 0.0),
                            )
                        }
                        (Value::String(one), Value::String(other)) => texts(one, other),
                        _ => false,
                    };
                json!(match *operator {
                    "==" => crate::json_cmp::deep_equal(&left, &right),
                    "!=" => !crate::json_cmp::deep_equal(&left, &right),
                    "<" => ordered(|one, other| one < other, |one, other| one < other),
                    "<=" => ordered(|one, other| one <= other, |one, other| one <= other),
                    ">" => ordered(|one, other| one > other, |one, other| one > other),
                    _ => ordered(|one, other| one >= other, |one, other| one >= other),
                })
            }
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn path_text(names: &[String]) -> String {
    let step = |name: &String| {
        if name.contains([' ', '\'']) { format!("[{}]", quoted(name)) } else { format!(".{name}") }
    };
    format!("${}", names.iter().map(step).collect::<String>())
}

fn reached<'a>(root: &'a Value, names: &[String]) -> Option<&'a Value> {
    names.iter().try_fold(root, |value, name| value.as_object()?.get(name))
}

/// Text of the tokens of the language, in any order.
fn tokens() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        Just("$"),
        Just("."),
        Just("a"),
        Just("[*]"),
        Just("[0]"),
        Just("['"),
        Just("'"),
        Just("]"),
        Just("("),
        Just(")"),
        Just("!"),
        Just("&&"),
        Just("||"),
        Just("=="),
        Just("<"),
        Just("="),
        Just("1"),
        Just("-"),
        Just("exists("),
        Just("true"),
        Just("null"),
        Just(" "),
        Just(".length"),
        Just("\\"),
        Just("é"),
        Just("1e9"),
    ];
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

fn depth(node: &ExprNode) -> usize {
    1 + match &node.kind {
        ExprKind::Literal(_) | ExprKind::Path(_) | ExprKind::Exists(_) => 0,
        ExprKind::Not(inner) => depth(inner),
        ExprKind::Compare(left, _, right) => depth(left).max(depth(right)),
        ExprKind::All(parts) | ExprKind::Any(parts) => parts.iter().map(depth).max().unwrap_or(0),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    // COMP-040, COMP-041
    #[test]
    fn a_condition_means_what_its_tree_says(made in made(), root in document()) {
        let text = made.text();
        prop_assume!(text.chars().count() <= MAX_EXPRESSION_LENGTH);
        let condition = Condition::parse(&text).map_err(|slip| TestCaseError::fail(format!("{text}: {slip:?}")))?;
        prop_assert_eq!(condition.holds(&root), made.value(&root) == json!(true), "{}", text);
    }

    // COMP-042: compiled conditions always have a result; errors carry a position in the text.
    #[test]
    fn any_text_compiles_or_is_refused_and_never_panics(
        text in prop_oneof![tokens(), "\\PC{0,80}", any::<String>()],
        root in document(),
    ) {
        match Condition::parse(&text) {
            Ok(condition) => {
                // Evaluated twice, once through `!`, which may exceed the nesting limit.
                if let Ok(opposite) = Condition::parse(&format!("!({text})")) {
                    prop_assert_ne!(condition.holds(&root), opposite.holds(&root));
                }
                prop_assert!(depth(condition.tree()) <= 4 * DEEPEST_EXPRESSION);
                for (_, span) in condition.paths() {
                    prop_assert!(text.get(span).is_some());
                }
            }
            Err(slip) => prop_assert!(text.get(slip.span.clone()).is_some(), "{:?}", slip),
        }
        match Path::parse(&text) {
            Ok(path) => {
                let found = path.find(&root);
                // With `[*]` a list may exist and be empty; otherwise both agree.
                prop_assert!(found.is_some() || !path.exists(&root));
            }
            Err(slip) => prop_assert!(text.get(slip.span.clone()).is_some(), "{:?}", slip),
        }
    }

    // COMP-050: merging null or the last value again changes nothing.
    #[test]
    fn nothing_and_oneself_add_nothing_to_a_merge(one in document(), two in document()) {
        prop_assert_eq!(merge([Value::Null, one.clone(), Value::Null]), one.clone());
        prop_assert_eq!(merge([one.clone(), one.clone()]), one.clone());
        let merged = merge([one.clone(), two.clone()]);
        prop_assert_eq!(merge([one, Value::Null, two.clone()]), merged.clone());
        prop_assert_eq!(merge([merged.clone(), two]), merged);
    }
}
