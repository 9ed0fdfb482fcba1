//! The report of a test run: one result per case, the counts over all of them, and the machine-readable form.
//! Prints nothing. A case that was not judged never counts as passed.

use std::time::Duration;

use cognitive_contract::Failure;
use serde_json::{Map, Value, json};

use super::accepted_answer::AcceptedExpectation;
use super::coverage::Coverage;
use crate::expect::{CaseTally, Difference};

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoldenStatus {
    /// The answer is as expected.
    Passed,
    /// The answer is not as expected.
    Failed(Vec<Difference>),
    /// The answer was not as expected, and becomes the new expectation.
    Accepted(AcceptedExpectation),
    /// The case itself cannot be used, for this reason.
    Broken(String),
    /// The run needs a model reply, and none is recorded.
    NotRecorded,
}

impl GoldenStatus {
    /// The word used in reports.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Accepted(_) => "accepted",
            Self::Broken(_) => "broken",
            Self::NotRecorded => "not_recorded",
        }
    }
}

/// One case and its outcome.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GoldenResult {
    /// The name of the case.
    pub name: String,
    /// The outcome.
    pub status: GoldenStatus,
    /// The duration.
    pub elapsed: Duration,
    /// The module's answer, if it was run.
    pub envelope: Option<Value>,
    /// Set if a reply file was written for the case.
    pub recorded: bool,
    /// The reason why the answer was not accepted, if acceptance was requested.
    pub not_accepted: Option<String>,
    /// The codes of the answer's warnings, if its expectation does not mention warnings.
    pub unmentioned: Vec<String>,
}

impl GoldenResult {
    pub(super) fn new(name: &str, status: GoldenStatus) -> Self {
        Self {
            name: name.to_owned(),
            status,
            elapsed: Duration::ZERO,
            envelope: None,
            recorded: false,
            not_accepted: None,
            unmentioned: Vec::new(),
        }
    }

    /// Returns whether the case passed or its answer was accepted.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        matches!(self.status, GoldenStatus::Passed | GoldenStatus::Accepted(_))
    }

    /// Returns the error of a failed run, which often explains every difference.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        let error = self.envelope.as_ref()?.get("error")?;
        let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
        Some(format!("{}: {}", text("code"), text("message")))
    }

    /// Suggests the next step, if it is clear.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match &self.status {
            GoldenStatus::NotRecorded => {
                Some("`--record` calls the model and stores its reply beside the case")
            }
            GoldenStatus::Broken(why)
                if self.not_accepted.is_none()
                    && why.starts_with("no such file")
                    && why.ends_with(".expected.json`") =>
            {
                Some("`--accept` writes it from the answer")
            }
            _ => None,
        }
    }

    fn to_value(&self) -> Value {
        let mut row = Map::new();
        row.insert("name".to_owned(), json!(self.name));
        row.insert("status".to_owned(), json!(self.status.word()));
        row.insert("elapsed_ms".to_owned(), json!(milliseconds(self.elapsed)));
        row.insert("recorded".to_owned(), json!(self.recorded));
        match &self.status {
            GoldenStatus::Failed(differences) => {
                row.insert("differences".to_owned(), json!(differences));
                row.insert("envelope".to_owned(), json!(self.envelope));
            }
            GoldenStatus::Broken(why) => {
                row.insert("message".to_owned(), json!(why));
            }
            GoldenStatus::Accepted(new) => {
                row.insert("accepted".to_owned(), json!({ "file": new.path, "text": new.after }));
            }
            GoldenStatus::Passed | GoldenStatus::NotRecorded => {}
        }
        if !self.unmentioned.is_empty() {
            row.insert("unmentioned_warnings".to_owned(), json!(self.unmentioned));
        }
        row.extend(self.not_accepted.as_ref().map(|why| ("not_accepted".to_owned(), json!(why))));
        Value::Object(row)
    }
}

/// The reason why a module has no results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleTrouble {
    /// It cannot be found or loaded.
    Unusable {
        /// The error message.
        message: String,
        /// The suggested fix.
        hint: Option<String>,
    },
    /// It has no golden tests, which is not an error (FMT-002).
    NoTests,
}

/// The results of one module.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModuleReport {
    /// The name of the module.
    pub name: String,
    /// The path of its folder.
    pub folder: String,
    /// The reason for missing results.
    pub trouble: Option<ModuleTrouble>,
    /// The cases, by name.
    pub cases: Vec<GoldenResult>,
    /// The coverage of the passing cases, if it was requested.
    pub coverage: Option<Coverage>,
}

impl ModuleReport {
    pub(super) fn new(name: &str, folder: String) -> Self {
        Self { name: name.to_owned(), folder, trouble: None, cases: Vec::new(), coverage: None }
    }

    /// A module that cannot be tested. It counts as a failure, because the caller requested it.
    #[must_use]
    pub fn unusable(name: &str, folder: String, failure: &Failure) -> Self {
        let hint = failure.suggestion().map(str::to_owned);
        let trouble = ModuleTrouble::Unusable { message: failure.message().to_owned(), hint };
        Self { trouble: Some(trouble), ..Self::new(name, folder) }
    }

    /// The counts of this module. A module that cannot be tested counts as one failure; a module without
    /// tests counts as skipped.
    #[must_use]
    pub fn tally(&self) -> CaseTally {
        let passed = self.cases.iter().filter(|case| case.has_passed()).count();
        let failed = self.cases.len() - passed;
        match self.trouble {
            None => CaseTally { passed, failed, skipped: 0 },
            Some(ModuleTrouble::NoTests) => CaseTally { passed, failed, skipped: 1 },
            Some(ModuleTrouble::Unusable { .. }) => CaseTally { passed, failed: failed + 1, skipped: 0 },
        }
    }

    /// Returns the total duration of all cases.
    #[must_use]
    pub fn total_time(&self) -> Duration {
        self.cases.iter().map(|case| case.elapsed).sum()
    }

    fn to_value(&self) -> Value {
        let (status, message) = match &self.trouble {
            None if self.tally().failed == 0 => ("passed", None),
            None => ("failed", None),
            Some(ModuleTrouble::Unusable { message, .. }) => ("unusable", Some(message.as_str())),
            Some(ModuleTrouble::NoTests) => ("no_tests", None),
        };
        let mut row = Map::new();
        row.insert("module".to_owned(), json!(self.name));
        row.insert("folder".to_owned(), json!(self.folder));
        row.insert("status".to_owned(), json!(status));
        row.extend(message.map(|message| ("message".to_owned(), json!(message))));
        row.insert("cases".to_owned(), self.cases.iter().map(GoldenResult::to_value).collect());
        row.extend(self.coverage.as_ref().map(|coverage| ("coverage".to_owned(), coverage.to_value())));
        Value::Object(row)
    }
}

/// The results of a run, in the order in which modules were requested.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GoldenReport {
    /// One per module.
    pub modules: Vec<ModuleReport>,
}

impl GoldenReport {
    /// The counts of all modules.
    #[must_use]
    pub fn tally(&self) -> CaseTally {
        self.modules.iter().map(ModuleReport::tally).fold(CaseTally::default(), CaseTally::plus)
    }

    /// Returns whether nothing failed.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.tally().failed == 0
    }

    /// The machine-readable form. Failures include their envelope.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let tally = self.tally();
        json!({
            "ok": self.holds(),
            "passed": tally.passed,
            "failed": tally.failed,
            "skipped": tally.skipped,
            "modules": self.modules.iter().map(ModuleReport::to_value).collect::<Vec<_>>(),
        })
    }
}

/// Milliseconds with microsecond precision.
pub(super) fn milliseconds(elapsed: Duration) -> f64 {
    f64::from(u32::try_from(elapsed.as_micros()).unwrap_or(u32::MAX)) / 1_000.0
}
