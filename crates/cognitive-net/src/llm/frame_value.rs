//! A JSON value as a service sent it. Borrows every text without escapes and hashes no names: an answer has hundreds of
//! frames, and of each a few members are read once. A part that outlives its frame becomes a [`Value`].

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// A JSON value that borrows from its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FrameValue<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<FrameValue<'a>>),
    /// The members in their order. A name may occur more than once; the last one counts.
    Object(Vec<(Cow<'a, str>, FrameValue<'a>)>),
}

impl<'a> FrameValue<'a> {
    /// Returns a member of an object; `None` for any other value.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().rev().find_map(|(known, value)| (known == name).then_some(value))
    }

    /// Returns the first item of a list.
    pub(crate) fn first(&self) -> Option<&Self> {
        self.as_list().first()
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_u64(&self) -> Option<u64> {
        if let Self::Number(number) = self { number.as_u64() } else { None }
    }

    pub(crate) fn as_i64(&self) -> Option<i64> {
        if let Self::Number(number) = self { number.as_i64() } else { None }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(answer) = self { Some(*answer) } else { None }
    }

    /// Returns the items of a list; none for any other value.
    pub(crate) fn as_list(&self) -> &[FrameValue<'a>] {
        if let Self::List(items) = self { items } else { &[] }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// Returns a value that outlives the frame.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(answer) => Value::Bool(*answer),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone().into_owned()),
            Self::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Object(members) => Value::Object(
                members.iter().map(|(name, value)| (name.clone().into_owned(), value.to_value())).collect(),
            ),
        }
    }
}

/// The value as JSON.
impl fmt::Display for FrameValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_value().fmt(f)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for FrameValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = FrameValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(FrameValue::Null)
    }

    fn visit_bool<E>(self, answer: bool) -> Result<Self::Value, E> {
        Ok(FrameValue::Bool(answer))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(FrameValue::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(FrameValue::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Number::from_f64(number).map(FrameValue::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(FrameValue::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(FrameValue::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(FrameValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((Name(name), value)) = access.next_entry()? {
            members.push((name, value));
        }
        Ok(FrameValue::Object(members))
    }
}

/// A member name. `Cow` alone would never borrow.
struct Name<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Borrowed(name)))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Owned(name.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> FrameValue<'_> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_text_is_copied_only_if_it_has_escapes() {
        let value = read(r#"{"a":"plain","b\n":"\u00e9","c":["x"]}"#);
        let FrameValue::Object(members) = &value else { panic!("{value:?}") };
        let borrows: Vec<bool> = members.iter().map(|(name, _)| matches!(name, Cow::Borrowed(_))).collect();
        assert_eq!(borrows, [true, false, true]);
        assert!(matches!(value.get("a"), Some(FrameValue::Text(Cow::Borrowed("plain")))));
        assert!(matches!(value.get("b\n"), Some(FrameValue::Text(Cow::Owned(text))) if text == "é"));
        assert_eq!(value.get("c").and_then(FrameValue::first).and_then(FrameValue::as_str), Some("x"));
    }

    #[test]
    fn the_last_of_two_members_counts() {
        let value = read(r#"{"a":1,"b":2,"a":3}"#);
        assert_eq!(value.get("a").and_then(FrameValue::as_u64), Some(3));
        assert_eq!(value.to_value().to_string(), json!({ "a": 3, "b": 2 }).to_string());
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = "[".repeat(100_000);
        assert!(serde_json::from_str::<FrameValue<'_>>(&nested).is_err());
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
            any::<String>().prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_the_value_that_serde_json_reads(value in values()) {
            let text = value.to_string();
            prop_assert_eq!(read(&text).to_value().to_string(), text);
        }
    }
}
