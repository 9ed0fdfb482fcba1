//! What a stream has said of its data so far, for programs that show an answer while it is written. Takes chunks in their order,
//! as a run gives them; what arrives in any order is for the [`Assembler`](super::Assembler).

use serde_json::{Map, Value};

use super::path;

/// The data as far as it has come. It is provisional: the last chunk overrules it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DataSoFar(Map<String, Value>);

impl DataSoFar {
    /// Appends the text of a delta to its field, such as `data.rationale`. A field that leads nowhere changes nothing; then it
    /// gives `false`.
    pub fn append(&mut self, field: &str, text: &str) -> bool {
        path::append(&mut self.0, field, text)
    }

    /// Takes a snapshot in the place of everything before.
    pub fn replace(&mut self, data: Map<String, Value>) {
        self.0 = data;
    }

    /// The data.
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
