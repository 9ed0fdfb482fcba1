//! The partial data of a running stream, for programs that display an answer while it is written. Takes chunks in
//! order, as a run delivers them; for chunks in any order use the [`Assembler`](super::Assembler).

use serde_json::{Map, Value};

use super::path;

/// The partial data. It is provisional: the last chunk overrides it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DataSoFar(Map<String, Value>);

impl DataSoFar {
    /// Appends the text of a delta to its field, such as `data.rationale`. Returns `false` and changes nothing if the
    /// field is invalid.
    pub fn append(&mut self, field: &str, text: &str) -> bool {
        path::append(&mut self.0, field, text)
    }

    /// Replaces everything with a snapshot.
    pub fn replace(&mut self, data: Map<String, Value>) {
        self.0 = data;
    }

    /// Returns the data.
    #[must_use]
    pub fn data(&self) -> &Map<String, Value> {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stream_007_data_grows_by_deltas_and_is_replaced_by_snapshots() {
        let mut so_far = DataSoFar::default();
        assert!(so_far.append("data.rationale", "It ") && so_far.append("data.rationale", "rains."));
        assert!(!so_far.append("meta.explain", "no"), "not of the data");
        assert_eq!(json!(so_far.data()), json!({ "rationale": "It rains." }));
        so_far.replace(json!({ "label": "weather" }).as_object().cloned().unwrap_or_default());
        assert!(so_far.append("data.label", "s"));
        assert_eq!(json!(so_far.data()), json!({ "label": "weathers" }));
    }
}
