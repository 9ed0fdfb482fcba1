//! Members of small objects. Envelopes and their parts have a handful of members and are asked for each of them several times
//! in every run; there, comparing names is several times faster than hashing one.

use serde_json::{Map, Value};

/// In objects with more members than this, hashing is faster.
const FEW: usize = 12;

/// A member of an object, by its name.
#[must_use]
pub fn member<'m>(members: &'m Map<String, Value>, name: &str) -> Option<&'m Value> {
    if members.len() > FEW {
        return members.get(name);
    }
    members.iter().find(|(each, _)| *each == name).map(|(_, value)| value)
}

/// The same for a value that may be an object.
#[must_use]
pub fn member_of<'m>(value: &'m Value, name: &str) -> Option<&'m Value> {
    value.as_object().and_then(|members| member(members, name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_and_large_objects_are_asked_the_same() {
        let large: Map<String, Value> =
            (0..100).map(|number| (format!("m{number}"), json!(number))).collect();
        for size in [0, 1, FEW, FEW + 1, 100] {
            let some: Map<String, Value> = large.clone().into_iter().take(size).collect();
            for name in ["m0", "m5", "m12", "m99", "m", ""] {
                assert_eq!(member(&some, name), some.get(name), "{name} of {size}");
            }
        }
        assert_eq!(member_of(&json!([1]), "0"), None);
    }
}
