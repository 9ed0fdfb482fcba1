//! Converts Python values to JSON. A value without a JSON form raises a `TypeError` that names its place,
//! such as `input["a"][3]`. Copies each value once; keys must be strings.

use std::fmt::Write as _;

use cognitive_contract::json::MAX_DEPTH;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Number, Value};

/// One step of the path to a value.
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// The path of a value, as a list that is linked to its parent.
struct ValuePlace<'a> {
    step: Option<Step<'a>>,
    above: Option<&'a ValuePlace<'a>>,
    depth: usize,
}

impl<'a> ValuePlace<'a> {
    const ROOT: Self = Self { step: None, above: None, depth: 0 };

    fn child(&'a self, step: Step<'a>) -> Self {
        Self { step: Some(step), above: Some(self), depth: self.depth + 1 }
    }

    fn write(&self, name: &str, text: &mut String) {
        match self.above {
            Some(above) => above.write(name, text),
            None => text.push_str(name),
        }
        // Writing to a string never fails.
        let _ = match &self.step {
            Some(Step::Key(key)) => write!(text, "[{}]", Value::from(*key)),
            Some(Step::Index(index)) => write!(text, "[{index}]"),
            None => Ok(()),
        };
    }

    fn refuse(&self, name: &str, why: &str) -> PyErr {
        let mut text = String::new();
        self.write(name, &mut text);
        PyTypeError::new_err(format!("`{text}` is not JSON: {why}"))
    }
}

/// Converts a value to JSON; `name` is the caller's name for it, for error messages.
pub fn value(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Value> {
    convert(name, object, &ValuePlace::ROOT)
}

fn convert(name: &str, object: &Bound<'_, PyAny>, place: &ValuePlace<'_>) -> PyResult<Value> {
    if let Ok(text) = object.cast::<PyString>() {
        return text
            .to_cow()
            .map(Value::from)
            .map_err(|_| place.refuse(name, "a text with an unpaired surrogate"));
    }
    if object.is_none() {
        return Ok(Value::Null);
    }
    // Checked before numbers, because `True` is an integer in Python.
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(Value::Bool(truth.is_true()));
    }
    if let Ok(number) = object.cast::<PyInt>() {
        return whole_number(name, number, place);
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Number::from_f64(number.value())
            .map(Value::Number)
            .ok_or_else(|| place.refuse(name, "the number is not finite"));
    }
    if place.depth >= MAX_DEPTH {
        return Err(
            place.refuse(name, &format!("nested more than {MAX_DEPTH} levels deep, or contains itself"))
        );
    }
    if let Ok(members) = object.cast::<PyDict>() {
        return object_of(name, members, place);
    }
    if let Ok(items) = object.cast::<PyList>() {
        return array_of(name, items.iter(), place);
    }
    if let Ok(items) = object.cast::<PyTuple>() {
        return array_of(name, items.iter(), place);
    }
    Err(place.refuse(name, &format!("unsupported type: `{}`", type_name(object))))
}

fn object_of(name: &str, members: &Bound<'_, PyDict>, place: &ValuePlace<'_>) -> PyResult<Value> {
    let mut object = Map::with_capacity(members.len());
    for (key, member) in members.iter() {
        let Ok(key) = key.cast::<PyString>() else {
            return Err(place.refuse(name, &format!("unsupported type of a key: `{}`", type_name(&key))));
        };
        let key = key.to_cow().map_err(|_| place.refuse(name, "a key with an unpaired surrogate"))?;
        let value = convert(name, &member, &place.child(Step::Key(&key)))?;
        object.insert(key.into_owned(), value);
    }
    Ok(Value::Object(object))
}

fn array_of<'py>(
    name: &str,
    items: impl ExactSizeIterator<Item = Bound<'py, PyAny>>,
    place: &ValuePlace<'_>,
) -> PyResult<Value> {
    let mut array = Vec::with_capacity(items.len());
    for (index, item) in items.enumerate() {
        array.push(convert(name, &item, &place.child(Step::Index(index)))?);
    }
    Ok(Value::Array(array))
}

/// Converts an integer. Integers that the runtime's JSON parser would round are rounded here too, so that
/// every surface sees the same value.
fn whole_number(name: &str, number: &Bound<'_, PyInt>, place: &ValuePlace<'_>) -> PyResult<Value> {
    if let Ok(small) = number.extract::<i64>() {
        return Ok(Value::from(small));
    }
    if let Ok(large) = number.extract::<u64>() {
        return Ok(Value::from(large));
    }
    let rounded = number.extract::<f64>().ok().and_then(Number::from_f64);
    rounded.map(Value::Number).ok_or_else(|| place.refuse(name, "the number is too large"))
}

/// The name of a value's type, for error messages.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().qualname().map_or_else(|_| "unknown".to_owned(), |name| name.to_string())
}
