//! The operations of vectors, each a thin call into the product, and the list of operations that are not
//! built.
//! Contains no rule of the contract. An operation in neither list is unknown, and its case fails.

mod answers;
mod compose;
mod context;
mod files;
mod media;
mod migrate;
mod modules;
mod runs;

use std::cell::RefCell;

use serde_json::{Map, Value};

use super::expand::expand;
use super::official;

/// The reason why an operation has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum VectorStop {
    /// The runtime does not support it yet; with the missing part.
    NotBuilt(String),
    /// The case is invalid, or the product returned no answer.
    Broken(String),
}

/// The object that an operation returns.
pub(super) type Outcome = Result<Value, VectorStop>;

type Operation = fn(Arguments<'_>) -> Outcome;

const BUILT: &[(&str, Operation)] = &[
    ("validate_envelope", answers::validate_envelope),
    ("wrap_v21", answers::wrap_v21),
    ("normalize_code", answers::normalize_code),
    ("error_info", answers::error_info),
    ("check_stream", answers::check_stream),
    ("assemble_stream", answers::assemble_stream),
    ("get_capabilities", answers::get_capabilities),
    ("resolve_manifest", modules::resolve_manifest),
    ("validate_module", modules::validate_module),
    ("validate_section", modules::validate_section),
    ("detect_format", modules::detect_format),
    ("parse_v1", modules::parse_v1),
    ("check_tool", modules::check_tool),
    ("check_invocation", modules::check_invocation),
    ("prepare_context", context::prepare_context),
    ("context_key", context::context_key),
    ("context_lookup", context::context_lookup),
    ("context_propagation", context::context_propagation),
    ("map_path", compose::map_path),
    ("map_object", compose::map_object),
    ("eval_condition", compose::eval_condition),
    ("aggregate", compose::aggregate),
    ("semver_match", compose::semver_match),
    ("route", compose::route),
    ("check_graph", compose::check_graph),
    ("parse_calls", compose::parse_calls),
    ("migrate", migrate::migrate),
    ("check_media", media::check_media),
    ("check_url", media::check_url),
    ("run", runs::run),
    ("run_stream", runs::run_stream),
    ("render_prompt", runs::render_prompt),
    (official::ENVELOPE, official::judge_envelope),
    (official::INPUT, official::judge_input),
];

const NOT_BUILT: &[(&str, &str)] = &[];

/// Performs an operation with the arguments of a case, after generators were expanded.
pub(super) fn perform(op: &str, given: &Value) -> Outcome {
    if let Some((_, operation)) = BUILT.iter().find(|(name, _)| *name == op) {
        let (given, read) = (expand(given)?, ReadKeys::default());
        let outcome = operation(Arguments { read: Some(&read), ..Arguments::new(&given)? })?;
        // A case whose argument was ignored has shown nothing. (D-27)
        return match read.unread_member(&given, true) {
            Some(name) => Err(VectorStop::NotBuilt(format!("`{op}` does not read the argument `{name}`"))),
            None => Ok(outcome),
        };
    }
    Err(match NOT_BUILT.iter().find(|(name, _)| *name == op) {
        Some((_, why)) => VectorStop::NotBuilt((*why).to_owned()),
        None => VectorStop::Broken(format!("unknown operation: `{op}`")),
    })
}

/// The arguments of an operation. A missing argument makes the case invalid; it gets no default.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arguments<'a> {
    members: &'a Map<String, Value>,
    /// Records which of them the operation reads.
    read: Option<&'a ReadKeys>,
}

/// The arguments that an operation has read: the address of an object, and the name of a member.
#[derive(Debug, Default)]
pub(super) struct ReadKeys(RefCell<Vec<(usize, String)>>);

impl ReadKeys {
    fn note(&self, object: &Map<String, Value>, name: &str) {
        self.0.borrow_mut().push((address(object), name.to_owned()));
    }

    /// Returns a member that the operation did not read, in the arguments and in every object of which it read a
    /// member.
    fn unread_member(&self, given: &Value, is_root: bool) -> Option<String> {
        match given {
            Value::Object(object) => {
                let read = self.0.borrow();
                let own = || read.iter().filter(|(place, _)| *place == address(object)).map(|(_, name)| name);
                // An object that was taken as a whole is read.
                let is_open = is_root || own().next().is_some();
                let unread = object.keys().find(|name| is_open && !own().any(|each| each == *name));
                unread.cloned().or_else(|| object.values().find_map(|value| self.unread_member(value, false)))
            }
            Value::Array(items) => items.iter().find_map(|item| self.unread_member(item, false)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        }
    }
}

fn address(object: &Map<String, Value>) -> usize {
    std::ptr::from_ref(object).addr()
}

impl<'a> Arguments<'a> {
    pub(super) fn new(value: &'a Value) -> Result<Self, VectorStop> {
        let members = value.as_object().ok_or_else(|| broken_vector("expected an object as arguments"))?;
        Ok(Self { members, read: None })
    }

    /// Returns the arguments in a value of these arguments.
    pub(super) fn nested_arguments(self, value: &'a Value) -> Result<Self, VectorStop> {
        Ok(Self { read: self.read, ..Self::new(value)? })
    }

    /// Returns an optional argument.
    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        if let Some(read) = self.read {
            read.note(self.members, name);
        }
        self.members.get(name)
    }

    /// Returns a required argument.
    pub(super) fn value(self, name: &str) -> Result<&'a Value, VectorStop> {
        self.get(name).ok_or_else(|| broken_vector(format!("the case has no `{name}`")))
    }

    pub(super) fn text(self, name: &str) -> Result<&'a str, VectorStop> {
        self.value(name)?.as_str().ok_or_else(|| broken_vector(format!("`{name}` is not a string")))
    }

    pub(super) fn list(self, name: &str) -> Result<&'a [Value], VectorStop> {
        let list = self.value(name)?.as_array().map(Vec::as_slice);
        list.ok_or_else(|| broken_vector(format!("`{name}` is not a list")))
    }

    pub(super) fn object(self, name: &str) -> Result<&'a Map<String, Value>, VectorStop> {
        self.value(name)?.as_object().ok_or_else(|| broken_vector(format!("`{name}` is not an object")))
    }

    /// Returns an argument that is an object of further arguments.
    pub(super) fn child(self, name: &str) -> Result<Self, VectorStop> {
        let members = self.object(name)?;
        Ok(Self { members, read: self.read })
    }

    /// Returns a flag; false if it is missing.
    pub(super) fn flag(self, name: &str) -> Result<bool, VectorStop> {
        match self.get(name) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| broken_vector(format!("`{name}` is not a boolean"))),
        }
    }
}

pub(super) fn broken_vector(why: impl Into<String>) -> VectorStop {
    VectorStop::Broken(why.into())
}

/// Serializes a value of the product.
fn json_of(value: &impl serde::Serialize) -> Outcome {
    serde_json::to_value(value).map_err(|error| broken_vector(format!("cannot be shown as JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_operation_is_in_exactly_one_list() {
        let mut names: Vec<&str> = BUILT.iter().map(|(name, _)| *name).collect();
        names.extend(NOT_BUILT.iter().map(|(name, _)| *name));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn arguments_of_the_wrong_kind_break_the_case() {
        for (op, _) in BUILT {
            // An operation that requires no arguments accepts an empty object.
            let nothing = if *op == "get_capabilities" { json!(null) } else { json!({}) };
            for given in [nothing, json!([]), json!(1)] {
                assert!(matches!(perform(op, &given), Err(VectorStop::Broken(_))), "{op} {given}");
            }
        }
        assert!(matches!(perform("no_such_op", &json!({})), Err(VectorStop::Broken(_))));
    }

    // D-27: a case shows nothing if one of its arguments was ignored.
    #[test]
    fn d_27_an_argument_that_an_operation_does_not_read_is_not_built() {
        for (op, given, name) in [
            ("normalize_code", json!({ "code": "E1001", "dialect": "x" }), "dialect"),
            (
                "context_propagation",
                json!({ "mode": "main", "parent_context": {}, "children": [{ "name": "a", "updates": {}, "when": 1 }] }),
                "when",
            ),
        ] {
            let why = format!("`{op}` does not read the argument `{name}`");
            assert_eq!(perform(op, &given), Err(VectorStop::NotBuilt(why)));
        }
        assert!(perform("normalize_code", &json!({ "code": "E1001" })).is_ok());
    }
}
