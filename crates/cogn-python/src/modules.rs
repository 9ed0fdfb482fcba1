//! What Python is told of a module.

use cogn::Module;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::to_python;

/// A module as a dictionary: what its author wrote, and what goes in and out.
pub fn described<'py>(py: Python<'py>, module: &Module) -> PyResult<Bound<'py, PyDict>> {
    let described = PyDict::new(py);
    let manifest = &module.manifest;
    described.set_item("name", &manifest.name)?;
    described.set_item("version", manifest.version.to_string())?;
    described.set_item("responsibility", &manifest.responsibility)?;
    described.set_item("tier", to_python::object(py, &manifest.tier)?)?;
    described.set_item("manifest", to_python::object(py, manifest)?)?;
    described.set_item("input", to_python::object(py, module.contract.input().schema())?)?;
    described.set_item("data", to_python::object(py, module.contract.data().schema())?)?;
    described.set_item("schema", to_python::object(py, module.contract.root())?)?;
    described.set_item("folder", module.folder.as_ref().map(|folder| folder.display().to_string()))?;
    Ok(described)
}
