//! The result of an evaluation: the shares of right and valid answers, latency and cost, also as JSON.
//! Judges no case itself and prints nothing.

use std::collections::BTreeMap;

use cognitive_contract::ErrorCode;
use cognitive_contract::money::Money;
use cognitive_contract::ports::Usage;
use serde::Serialize;
use serde_json::Value;

use super::confidence;

/// The verdict on one place of one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldOutcome {
    /// The place, as written in the case.
    pub place: String,
    /// The expected value; empty if the place is right.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub expected: String,
    /// The actual value.
    pub got: String,
    /// True if the actual value is as expected.
    pub right: bool,
    /// The position of the right value in a list of the input, if the input has a list that contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<ListPosition>,
}

/// A position in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListPosition {
    /// The first item.
    First,
    /// Any item in between.
    Middle,
    /// The last item.
    Last,
}

/// One case and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseOutcome {
    /// The id of the case.
    pub id: String,
    /// True if every place is as expected.
    pub right: bool,
    /// Every checked place.
    pub fields: Vec<FieldOutcome>,
    /// The module's answer.
    pub envelope: Value,
}

impl CaseOutcome {
    /// An outcome; it is right if all fields are.
    #[must_use]
    pub fn new(id: &str, fields: Vec<FieldOutcome>, envelope: Value) -> Self {
        let right = fields.iter().all(|field| field.right);
        Self { id: id.to_owned(), right, fields, envelope }
    }

    fn ok(&self) -> bool {
        self.envelope.get("ok").and_then(Value::as_bool).unwrap_or(false)
    }

    /// The published code of a failure.
    fn code(&self) -> Option<&str> {
        self.envelope.pointer("/error/code")?.as_str()
    }
}

/// A count of right answers and its share.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct AccuracyShare {
    /// The number of right answers.
    pub right: usize,
    /// The number of all answers.
    pub of: usize,
    /// The share, from 0 to 1.
    pub share: f64,
}

impl AccuracyShare {
    fn count(verdicts: impl Iterator<Item = bool>) -> Self {
        let (mut right, mut of) = (0, 0);
        for verdict in verdicts {
            of += 1;
            right += usize::from(verdict);
        }
        Self { right, of, share: quotient(right, of) }
    }
}

/// The quotient; 0 if the whole is 0.
#[expect(clippy::cast_precision_loss, reason = "there are far fewer cases than a float can count")]
fn quotient(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The answers of a module to all cases.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Evaluation {
    /// The module.
    pub module: String,
    /// Its version.
    pub version: String,
    /// The models that answered, as `provider/model`.
    pub models: Vec<String>,
    /// Cases in which every place is as expected.
    pub accuracy: AccuracyShare,
    /// The share of right answers for each place.
    pub fields: BTreeMap<String, AccuracyShare>,
    /// The share of right answers for values from a list in the input, by the position of the right value. A score
    /// that depends on the position says nothing about the model.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub positions: BTreeMap<String, BTreeMap<ListPosition, AccuracyShare>>,
    /// The area under the ROC curve: how well confidence separates right answers from wrong ones; 0.5 is
    /// chance. `None` if all answers are right, or all are wrong.
    pub auc: Option<f64>,
    /// The average gap between confidence and the share of right answers, from 0 to 1.
    pub calibration_error: Option<f64>,
    /// Answers that satisfy the contract: successes, and failures that the model itself declared.
    pub valid: AccuracyShare,
    /// Failures by code, of the model or of the runtime.
    pub failures: BTreeMap<String, usize>,
    /// The p50 latency, in milliseconds.
    pub latency_p50_ms: f64,
    /// The p95 latency, in milliseconds.
    pub latency_p95_ms: f64,
    /// Input tokens, as far as they were counted.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// The cost of all runs, in US dollars; `None` if one run has no price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// The cost per right case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_right: Option<Money>,
    /// The total elapsed time, in milliseconds.
    pub elapsed_ms: f64,
    /// Every case, in the order of the file.
    pub cases: Vec<CaseOutcome>,
}

impl Evaluation {
    /// Computes all counts from the cases.
    #[must_use]
    pub fn new(module: &str, version: &str, elapsed_ms: f64, cases: Vec<CaseOutcome>) -> Self {
        let text = |case: &CaseOutcome, at: &str| case.envelope.pointer(at)?.as_str().map(str::to_owned);
        let mut models: Vec<String> = cases.iter().filter_map(|case| text(case, "/meta/model")).collect();
        models.sort();
        models.dedup();
        let mut failures = BTreeMap::new();
        for code in cases.iter().filter_map(CaseOutcome::code) {
            *failures.entry(code.to_owned()).or_insert(0) += 1;
        }
        let mut times: Vec<f64> =
            cases.iter().filter_map(|case| case.envelope.pointer("/meta/latency_ms")?.as_f64()).collect();
        times.sort_by(f64::total_cmp);
        let confidence = |case: &CaseOutcome| {
            let number = case.envelope.pointer("/meta/confidence")?.as_f64()?;
            case.ok().then_some((number, case.right))
        };
        let answers: Vec<(f64, bool)> = cases.iter().filter_map(confidence).collect();
        let tokens = |name: &str| {
            let counts =
                cases.iter().filter_map(|case| case.envelope.pointer("/meta/usage")?.get(name)?.as_u64());
            counts.fold(0, u64::saturating_add)
        };
        let cost = cost(&cases);
        let right = cases.iter().filter(|case| case.right).count() as u64;
        Self {
            module: module.to_owned(),
            version: version.to_owned(),
            models,
            accuracy: AccuracyShare::count(cases.iter().map(|case| case.right)),
            fields: by_field(&cases),
            positions: by_position(&cases),
            auc: confidence::auc(&answers),
            calibration_error: confidence::calibration_error(&answers),
            valid: AccuracyShare::count(
                cases.iter().map(|case| case.ok() || case.code().is_some_and(is_of_the_model)),
            ),
            failures,
            latency_p50_ms: percentile(&times, 50),
            latency_p95_ms: percentile(&times, 95),
            input_tokens: tokens("input_tokens"),
            output_tokens: tokens("output_tokens"),
            cost,
            cost_per_right: cost.and_then(|cost| Some(Money::from_pico(cost.pico().checked_div(right)?))),
            elapsed_ms,
            cases,
        }
    }

    /// The machine-readable form: the counts, and every case that was not right.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(Value::Array(cases)) = value.get_mut("cases") {
            cases.retain(|case| case.get("right") != Some(&Value::Bool(true)));
        }
        if let Value::Object(members) = &mut value
            && let Some(cases) = members.shift_remove("cases")
        {
            members.insert("wrong".to_owned(), cases);
        }
        value
    }

    /// Returns every case as one JSON line.
    #[must_use]
    pub fn case_lines(&self) -> String {
        let line = |case: &CaseOutcome| serde_json::to_string(case).unwrap_or_default() + "\n";
        self.cases.iter().map(line).collect()
    }
}

/// The total cost of all cases. Runs without a model call cost nothing; a run without a price makes the sum
/// unknown.
fn cost(cases: &[CaseOutcome]) -> Option<Money> {
    let counted = cases.iter().filter_map(|case| case.envelope.pointer("/meta/usage"));
    let mut sum = None;
    for usage in counted {
        sum = Some(Usage::from_value(usage).cost?.plus(sum.unwrap_or_default()));
    }
    sum
}

fn by_field(cases: &[CaseOutcome]) -> BTreeMap<String, AccuracyShare> {
    let mut verdicts: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for field in cases.iter().flat_map(|case| &case.fields) {
        verdicts.entry(field.place.clone()).or_default().push(field.right);
    }
    verdicts
        .into_iter()
        .map(|(place, verdicts)| (place, AccuracyShare::count(verdicts.into_iter())))
        .collect()
}

fn by_position(cases: &[CaseOutcome]) -> BTreeMap<String, BTreeMap<ListPosition, AccuracyShare>> {
    let mut verdicts: BTreeMap<String, BTreeMap<ListPosition, Vec<bool>>> = BTreeMap::new();
    for field in cases.iter().flat_map(|case| &case.fields) {
        if let Some(order) = field.order {
            verdicts.entry(field.place.clone()).or_default().entry(order).or_default().push(field.right);
        }
    }
    let shares = |of: BTreeMap<ListPosition, Vec<bool>>| {
        of.into_iter().map(|(order, verdicts)| (order, AccuracyShare::count(verdicts.into_iter()))).collect()
    };
    verdicts.into_iter().map(|(place, of)| (place, shares(of))).collect()
}

/// Returns whether a failure is a valid answer: the model declares within the contract that it cannot answer.
/// All other codes mean that the answer is missing or violates the contract.
fn is_of_the_model(code: &str) -> bool {
    match ErrorCode::find(code) {
        None => true,
        Some(code) => matches!(
            code,
            ErrorCode::NoActionPossible
                | ErrorCode::SemanticConflict
                | ErrorCode::AmbiguousInput
                | ErrorCode::InsufficientContext
                | ErrorCode::PartialResult
        ),
    }
}

/// The nearest-rank percentile of sorted values.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn case(id: &str, right: &[(&str, bool)], envelope: Value) -> CaseOutcome {
        let field = |(place, right): &(&str, bool)| FieldOutcome {
            place: (*place).to_owned(),
            expected: String::new(),
            got: String::new(),
            right: *right,
            order: right.then_some(ListPosition::First),
        };
        CaseOutcome::new(id, right.iter().map(field).collect(), envelope)
    }

    fn success(latency: f64) -> Value {
        json!({ "ok": true, "data": {}, "meta": { "model": "m/1", "latency_ms": latency,
                "usage": { "input_tokens": 10, "output_tokens": 3 } } })
    }

    fn failure(code: &str) -> Value {
        json!({ "ok": false, "meta": { "latency_ms": 1.0 }, "error": { "code": code } })
    }

    #[test]
    fn shares_times_and_tokens_are_counted() {
        let report = Evaluation::new(
            "m",
            "1.0.0",
            5.0,
            vec![
                case("a", &[("x", true), ("y", true)], success(30.0)),
                case("b", &[("x", true), ("y", false)], success(20.0)),
                case("c", &[("x", false)], failure("E3001")),
                case("d", &[("ok", true)], failure("E2007")),
            ],
        );
        assert_eq!((report.accuracy.right, report.accuracy.of), (2, 4));
        assert_eq!((report.fields["x"].right, report.fields["x"].of), (2, 3));
        assert_eq!((report.fields["y"].right, report.fields["y"].of), (1, 2));
        assert_eq!(
            (report.valid.right, report.valid.of),
            (3, 4),
            "E2007 is the model's own word, E3001 is not"
        );
        assert_eq!(
            report.positions["x"][&ListPosition::First],
            AccuracyShare { right: 2, of: 2, share: 1.0 }
        );
        assert_eq!((report.auc, report.calibration_error), (None, None), "nobody said how sure they are");
        assert_eq!(report.failures, BTreeMap::from([("E2007".to_owned(), 1), ("E3001".to_owned(), 1)]));
        assert_eq!((report.latency_p50_ms, report.latency_p95_ms), (1.0, 30.0));
        assert_eq!((report.input_tokens, report.output_tokens), (20, 6));
        assert_eq!(report.models, ["m/1"]);
        let value = report.to_value();
        let wrong: Vec<&str> =
            value["wrong"].as_array().unwrap().iter().map(|case| case["id"].as_str().unwrap()).collect();
        assert_eq!(wrong, ["b", "c"]);
        assert_eq!(report.case_lines().lines().count(), 4);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!((percentile(&values, 50), percentile(&values, 95)), (10.0, 19.0));
        assert_eq!((percentile(&[7.0], 95), percentile(&[], 50)), (7.0, 0.0));
    }
}
