//! Golden tests of modules for pytest, and recorded replies for the tests of programs. Judges nothing itself:
//! `cognitive-testing` decides what passes, as for `cogn test`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cognitive_contract::Failure;
use cognitive_library::{Folder, load};
use cognitive_schema::SchemaTarget;
use cognitive_setup::wiring;
use cognitive_testing::golden::{
    self, Answers, GoldenCase, GoldenOptions, GoldenResult, GoldenStatus, Recordings,
};
use futures_util::FutureExt;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

use crate::{from_python, to_python};

/// The recordings of a folder, see `cogn.replay`.
#[pyclass(frozen, name = "Recordings", module = "cogn._native")]
pub struct RecordingsHandle(Recordings);

#[pymethods]
impl RecordingsHandle {
    #[new]
    fn new(place: PathBuf) -> PyResult<Self> {
        Recordings::read(&place).map(Self).map_err(PyValueError::new_err)
    }

    /// Returns the recorded replies for an input, by module; empty if nothing was recorded.
    fn replies<'py>(
        &self,
        py: Python<'py>,
        module: &str,
        input: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for (module, reply) in
            self.0.replies(module, &from_python::value("input", input)?).into_iter().flatten()
        {
            found.set_item(module, (&reply.text, reply.dialect.map(SchemaTarget::word)))?;
        }
        Ok(found)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}

/// Lists the cases of a module folder, each with its input file, and the reason if the module cannot be
/// tested at all.
#[pyfunction]
pub fn golden_cases(folder: PathBuf) -> (Vec<(String, PathBuf)>, Option<String>) {
    let trouble = load(&Folder::Disk(folder.clone())).err().map(|error| failure_text(&error.into_failure()));
    let cases = golden::cases(&Folder::Disk(folder.clone()));
    (cases.into_iter().map(|case| (case.name, folder.join(case.input))).collect(), trouble)
}

/// Runs one case with its recorded reply. The result has `status` and its details: `differences`, `message`,
/// `error`, `hint`, `envelope`.
#[pyfunction]
pub fn golden_run<'py>(py: Python<'py>, folder: PathBuf, case: &str) -> PyResult<Bound<'py, PyAny>> {
    let result = py.detach(|| run_one(&folder, case)).map_err(PyRuntimeError::new_err)?;
    to_python::object(py, &result)
}

/// Runs one case. The error means that the case does not exist (any more).
fn run_one(folder: &Path, name: &str) -> Result<Value, String> {
    let files = Folder::Disk(folder.to_owned());
    let module = match load(&files) {
        Ok(module) => Arc::new(module),
        Err(error) => {
            return Ok(json!({ "status": "unusable", "message": failure_text(&error.into_failure()) }));
        }
    };
    let cases = golden::cases(&files);
    let missing = || format!("unknown case in `{}`: `{name}`", folder.display());
    let case = cases.iter().find(|case| case.name == name).ok_or_else(missing)?;
    // Parts of a composition are usually in sibling folders.
    let beside: Vec<PathBuf> = folder.parent().map(Path::to_owned).into_iter().collect();
    let options =
        GoldenOptions { library: wiring::library().with_folders(&beside), ..GoldenOptions::default() };
    let run = golden::run_case(&module, &files, case, &Answers::Recorded, &options);
    let result = run.now_or_never().ok_or("a recorded reply waited for an event")?;
    Ok(result_json(case, &result))
}

fn result_json(case: &GoldenCase, result: &GoldenResult) -> Value {
    let (differences, message) = match &result.status {
        GoldenStatus::Failed(differences) => (differences.as_slice(), None),
        GoldenStatus::Broken(why) => ([].as_slice(), Some(why.clone())),
        GoldenStatus::NotRecorded => ([].as_slice(), Some(format!("no reply is recorded: `{}`", case.reply))),
        GoldenStatus::Passed | GoldenStatus::Accepted(_) => ([].as_slice(), None),
    };
    json!({
        "status": result.status.word(),
        "expected": case.expected,
        "differences": differences,
        "message": message,
        "error": result.error(),
        "hint": result.hint(),
        "envelope": result.envelope,
    })
}

fn failure_text(failure: &Failure) -> String {
    match failure.suggestion() {
        Some(hint) => format!("{}\n{hint}", failure.message()),
        None => failure.message().to_owned(),
    }
}
