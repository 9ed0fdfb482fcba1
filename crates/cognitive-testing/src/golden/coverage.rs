//! Measures which parts of a module's contract the passing cases exercise: the fields of the data schema, the
//! values of its enums, and a failure.
//! Counts the module's answers, never the expectations of a case. Percentages are rounded down, so 100 means
//! all.

use cognitive_contract::Module;
use cognitive_contract::manifest::EnumStrategy;
use cognitive_schema::{SchemaFiles, in_draft_07};
use serde_json::{Value, json};

use super::fields::{SchemaField, fields};
use crate::expect::value::{deep_equal, value_text};

/// The exercised and the missing parts of a contract.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coverage {
    /// The properties of the data schema, such as `issues[].line`.
    pub fields: CoverageShare,
    /// The values of enums, such as `verdict = "approve"`.
    pub values: CoverageShare,
    /// Set if any case ends in a failure.
    pub failure: bool,
}

/// A total, and the names of the missing items.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CoverageShare {
    /// The number of all items.
    pub total: usize,
    /// The names of the items that no case exercises.
    pub missing: Vec<String>,
}

impl CoverageShare {
    /// Returns the number of exercised items.
    #[must_use]
    pub fn exercised_count(&self) -> usize {
        self.total - self.missing.len()
    }

    fn count(&mut self, name: &str, exercised: bool) {
        self.total += 1;
        if !exercised {
            self.missing.push(name.to_owned());
        }
    }

    fn to_value(&self) -> Value {
        json!({ "total": self.total, "exercised": self.exercised_count(), "missing": self.missing })
    }
}

impl Coverage {
    /// Measures what envelopes exercise of a module's contract.
    #[must_use]
    pub fn measure(module: &Module, files: &SchemaFiles, envelopes: &[&Value]) -> Self {
        let enums = &module.manifest.enums;
        let refused = (enums.strategy == EnumStrategy::Strict).then_some(enums.unknown_tag.as_str());
        let places = fields(&in_draft_07(files), &module.contract.data().place, refused);
        let data: Vec<&Value> = envelopes.iter().filter_map(|envelope| envelope.get("data")).collect();
        let failure = envelopes.iter().any(|envelope| envelope.get("ok") == Some(&Value::Bool(false)));
        let mut coverage =
            Self { fields: CoverageShare::default(), values: CoverageShare::default(), failure };
        for place in &places {
            coverage.count(place, &data);
        }
        coverage
    }

    fn count(&mut self, place: &SchemaField, data: &[&Value]) {
        let reached: Vec<&Value> = data.iter().flat_map(|data| place.matching_parts(data)).collect();
        if place.property {
            self.fields.count(&place.path, !reached.is_empty());
        }
        for value in &place.values {
            let exercised = reached.iter().any(|each| deep_equal(each, value));
            self.values.count(&format!("{} = {}", place.path, value_text(value)), exercised);
        }
    }

    /// Returns the coverage in whole percent. The failure counts like one field.
    #[must_use]
    pub fn percent(&self) -> usize {
        let total = self.fields.total + self.values.total + 1;
        let exercised =
            self.fields.exercised_count() + self.values.exercised_count() + usize::from(self.failure);
        exercised * 100 / total
    }

    /// Lists everything that no case exercises, in words.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let failure = (!self.failure).then(|| "a failure".to_owned());
        self.fields.missing.iter().chain(&self.values.missing).cloned().chain(failure).collect()
    }

    /// The machine-readable form.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({
            "percent": self.percent(),
            "fields": self.fields.to_value(),
            "values": self.values.to_value(),
            "failure": self.failure,
        })
    }
}

#[cfg(test)]
mod tests {
    use cognitive_contract::{Format, Manifest};
    use cognitive_schema::{Contract, SCHEMA_FILE};

    use super::*;

    fn measure(envelopes: &[Value]) -> Coverage {
        let schema = json!({
            "input": {},
            "data": {
                "properties": {
                    "rationale": { "type": "string" },
                    "verdict": { "enum": ["yes", "no", "maybe"] },
                    "issues": { "items": { "$ref": "#/$defs/issue" } },
                },
            },
            "$defs": { "issue": { "properties": { "line": {}, "fix": {} } } },
        });
        let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)]);
        let manifest = Manifest::from_value(&json!({ "name": "m" }), Format::V22).unwrap();
        let contract = Contract::compile(&files, &manifest.layout()).unwrap();
        let module = Module::new(manifest, contract, String::new(), Format::V22);
        Coverage::measure(&module, &files, &envelopes.iter().collect::<Vec<_>>())
    }

    #[test]
    fn test_005_shares_are_exact_and_name_what_is_missing() {
        let yes =
            json!({ "ok": true, "data": { "rationale": "r", "verdict": "yes", "issues": [{ "line": 1 }] } });
        let coverage = measure(std::slice::from_ref(&yes));
        assert_eq!((coverage.fields.exercised_count(), coverage.fields.total), (4, 5));
        assert_eq!((coverage.values.exercised_count(), coverage.values.total), (1, 3));
        assert_eq!(
            coverage.missing(),
            ["issues[].fix", "verdict = \"no\"", "verdict = \"maybe\"", "a failure"]
        );
        assert_eq!(coverage.percent(), 55, "5 of 9");
        let failed = json!({ "ok": false, "error": {}, "partial_data": { "verdict": "no" } });
        let coverage = measure(&[yes, failed]);
        assert_eq!(coverage.percent(), 66, "6 of 9: a failure exercises no field");
        assert_eq!(
            coverage.to_value()["values"],
            json!({ "total": 3, "exercised": 1, "missing": ["verdict = \"no\"", "verdict = \"maybe\""] })
        );
    }

    #[test]
    fn nothing_exercises_nothing_and_all_is_all() {
        assert_eq!(measure(&[]).percent(), 0);
        let issues = json!([{ "line": 1, "fix": 2 }]);
        let answer = |verdict: &str| json!({ "ok": true, "data": { "rationale": 1, "verdict": verdict, "issues": issues } });
        let all = [answer("yes"), answer("no"), answer("maybe"), json!({ "ok": false })];
        let coverage = measure(&all);
        assert_eq!((coverage.percent(), coverage.missing().len()), (100, 0));
    }
}
