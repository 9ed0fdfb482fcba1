//! Sets of JSON types: the types that a schema allows, and the types that two schemas share. An integer is a number.

use serde_json::Value;

use crate::text::type_word;

/// The types that a value can have, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonTypes(u8);

impl JsonTypes {
    /// Every type.
    pub const ALL: Self = Self(0b11_1111);
    /// Objects.
    pub const OBJECT: Self = Self(0b00_0001);
    /// Arrays.
    pub const ARRAY: Self = Self(0b00_0010);
    /// Strings.
    pub const STRING: Self = Self(0b00_0100);
    /// Arrays and strings, which have a length.
    pub const COUNTED: Self = Self(0b00_0110);
    /// Numbers, whole or not.
    pub const NUMBER: Self = Self(0b00_1000);
    pub(super) const NONE: Self = Self(0);
    const WORDS: [(&'static str, u8); 7] = [
        ("object", 0b00_0001),
        ("array", 0b00_0010),
        ("string", 0b00_0100),
        ("number", 0b00_1000),
        ("integer", 0b00_1000),
        ("boolean", 0b01_0000),
        ("null", 0b10_0000),
    ];

    pub(super) fn from_word(word: &str) -> Self {
        Self::WORDS.iter().find(|(name, _)| *name == word).map_or(Self::NONE, |(_, bit)| Self(*bit))
    }

    /// The type of a value.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        Self::from_word(type_word(value))
    }

    /// The types in both sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// The type names for messages, such as `string or null`.
    #[must_use]
    pub fn words(self) -> String {
        let named = Self::WORDS.iter().filter(|(name, bit)| *name != "integer" && self.0 & bit != 0);
        named.map(|(name, _)| *name).collect::<Vec<_>>().join(" or ")
    }
}
