//! A small model of types that Python, TypeScript and Rust all have: objects with fields, lists, maps, unions and
//! listed values. Drops every rule that a type cannot express.

use serde_json::Value;

/// The type of a value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TypeExpr {
    /// Any JSON.
    Any,
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A text.
    Text,
    /// One of these values.
    Listed(Vec<Value>),
    /// A list.
    List(Box<TypeExpr>),
    /// An object with arbitrary member names.
    Map(Box<TypeExpr>),
    /// One of several; at least two, and none of them a union.
    Union(Vec<TypeExpr>),
    /// A type with a name.
    Named(String),
}

impl TypeExpr {
    /// Returns the union of types, without repetition.
    pub(crate) fn union(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut flat: Vec<Self> = Vec::new();
        for part in parts {
            let parts = match part {
                Self::Any => return Self::Any,
                Self::Union(parts) => parts,
                part => vec![part],
            };
            for part in parts {
                match part {
                    // Two lists of values are merged.
                    Self::Listed(values) if flat.iter().any(|known| matches!(known, Self::Listed(_))) => {
                        let known = flat.iter_mut().find_map(Self::listed_values).into_iter();
                        for known in known {
                            let new: Vec<Value> =
                                values.iter().filter(|value| !known.contains(value)).cloned().collect();
                            known.extend(new);
                        }
                    }
                    part if !flat.contains(&part) => flat.push(part),
                    _ => {}
                }
            }
        }
        // `null` reads best at the end.
        flat.sort_by_key(|part| *part == Self::Null);
        match flat.len() {
            0 => Self::Any,
            1 => flat.remove(0),
            _ => Self::Union(flat),
        }
    }

    fn listed_values(&mut self) -> Option<&mut Vec<Value>> {
        if let Self::Listed(values) = self { Some(values) } else { None }
    }

    /// Returns the type without `null`, and whether it contained `null`.
    pub(crate) fn without_null(&self) -> (Self, bool) {
        match self {
            Self::Union(parts) if parts.contains(&Self::Null) => {
                (Self::union(parts.iter().filter(|part| **part != Self::Null).cloned()), true)
            }
            other => (other.clone(), *other == Self::Null),
        }
    }
}

/// A type with a name.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TypeDefinition {
    /// An object with known members.
    Object(ObjectType),
    /// Another name for a type.
    Alias {
        /// The name.
        name: String,
        /// The description from the schema.
        description: Option<String>,
        /// The type.
        target: TypeExpr,
    },
}

/// An object with known members.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectType {
    /// The name of the type.
    pub name: String,
    /// The description from the schema.
    pub description: Option<String>,
    /// The members, in the order of the schema.
    pub fields: Vec<ObjectField>,
    /// True if there are no other members.
    pub is_closed: bool,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectField {
    /// The name in JSON.
    pub name: String,
    /// The description from the schema.
    pub description: Option<String>,
    /// The type of its value.
    pub value: TypeExpr,
    /// True if it is always present.
    pub is_required: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_union_is_flat_without_repetition_and_ends_with_null() {
        let listed = |value: &str| TypeExpr::Listed(vec![json!(value)]);
        let inner = TypeExpr::union([TypeExpr::Null, TypeExpr::Text]);
        assert_eq!(
            TypeExpr::union([inner.clone(), TypeExpr::Text, TypeExpr::Integer]),
            TypeExpr::Union(vec![TypeExpr::Text, TypeExpr::Integer, TypeExpr::Null])
        );
        assert_eq!(
            TypeExpr::union([listed("a"), listed("b")]),
            TypeExpr::Listed(vec![json!("a"), json!("b")])
        );
        assert_eq!(TypeExpr::union([TypeExpr::Any, TypeExpr::Text]), TypeExpr::Any);
        assert_eq!(inner.without_null(), (TypeExpr::Text, true));
    }
}
