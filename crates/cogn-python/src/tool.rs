//! Uses a Python function as a tool that models may call. An exception in it is reported to the model.

use std::time::Duration;

use cogn::PortFuture;
use cognitive_contract::policy::ToolClass;
use cognitive_contract::tools::{Tool, ToolError, ToolSpec};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use crate::from_python;
use crate::function::{self, FunctionMessage, member};
use crate::to_python;

/// A function with its description for the model and for the policies.
pub struct FunctionTool {
    function: Py<PyAny>,
    spec: ToolSpec,
}

impl FunctionTool {
    /// Parses a description created by `cogn.tool`.
    pub fn read(described: &Bound<'_, PyDict>) -> PyResult<Self> {
        let needed = |name: &str| {
            member(described, name)?
                .ok_or_else(|| PyValueError::new_err(format!("a tool must have `{name}`")))
        };
        let name: String = needed("name")?.extract()?;
        let description: String = needed("description")?.extract()?;
        let parameters = from_python::value("parameters", &needed("parameters")?)?;
        let mut spec = ToolSpec::new(&name, &description, parameters);
        if let Some(seconds) = member(described, "timeout")? {
            let seconds: f64 = seconds.extract()?;
            let timeout = Duration::try_from_secs_f64(seconds);
            let bad = |_| {
                PyValueError::new_err(format!(
                    "the timeout of `{name}` must be a time in seconds, found: {seconds}"
                ))
            };
            spec = spec.with_timeout(timeout.map_err(bad)?);
        }
        let needs: Vec<String> =
            member(described, "needs")?.map_or_else(|| Ok(Vec::new()), |needs| needs.extract())?;
        let classes: PyResult<Vec<ToolClass>> = needs
            .iter()
            .map(|word| {
                let unknown = || PyValueError::new_err(format!("unknown need of a tool: `{word}`"));
                ToolClass::parse(word).ok_or_else(unknown)
            })
            .collect();
        Ok(Self { function: needed("function")?.unbind(), spec: spec.with_needs(&classes?) })
    }
}

impl Tool for FunctionTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn call<'a>(&'a self, arguments: &'a Value) -> PortFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let started =
                function::start(&self.function, |py| to_python::object(py, arguments).map(Bound::unbind));
            let mut started = started.map_err(ToolError::new)?;
            let mut pieces = String::new();
            loop {
                match started.said.recv().await {
                    Some(FunctionMessage::Piece(text)) => pieces.push_str(&text),
                    Some(FunctionMessage::Done(answer)) => {
                        started.mark_finished();
                        return Ok(answer.value.unwrap_or(Value::String(pieces)));
                    }
                    Some(FunctionMessage::Raised { message, .. }) => {
                        started.mark_finished();
                        return Err(ToolError::new(message));
                    }
                    None => return Err(ToolError::new("the function ended without a result")),
                }
            }
        })
    }
}
