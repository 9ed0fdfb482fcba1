//! The parts of a runtime as given in Python, stored so that the child of a fork can build the runtime again.

use std::path::PathBuf;
use std::sync::Arc;

use cogn::{Failure, Module, ModuleSource, Runtime, RuntimeBuilder};
use cognitive_contract::capabilities::Multimodal;
use cognitive_contract::tools::ToolBox;
use cognitive_library::{Library, ModuleCache};
use cognitive_setup::config::Config;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::envelope_class;
use crate::from_python::type_name;
use crate::function::member;
use crate::provider::FunctionProvider;
use crate::recorded_replies::RecordedReplies;
use crate::tool::FunctionTool;

/// The source of model answers.
enum Answering {
    /// The provider from the settings, or the given provider name.
    Settings(Option<String>),
    /// A Python function.
    Function(Py<PyAny>),
    /// The recorded replies of each run.
    Recorded,
}

/// The parts of a runtime.
pub struct Recipe {
    answering: Answering,
    model: Option<String>,
    folders: Vec<PathBuf>,
    source: Option<Py<PyAny>>,
    config: Option<Config>,
    reads_env: bool,
    tools: Vec<Py<PyDict>>,
    document_reader: Option<PathBuf>,
    streaming: bool,
    multimodal: bool,
}

impl Recipe {
    /// Parses the parts. A wrong type raises a `TypeError`, an invalid value a `ValueError`.
    pub fn read(parts: &Bound<'_, PyDict>) -> PyResult<Self> {
        let switch = |name: &str, usual: bool| -> PyResult<bool> {
            member(parts, name)?.map_or(Ok(usual), |value| value.extract())
        };
        let (folders, source) = modules(member(parts, "modules")?)?;
        let recipe = Self {
            answering: read_answering(parts)?,
            model: member(parts, "model")?.map(|model| text("model", &model)).transpose()?,
            folders,
            source,
            config: config(parts)?,
            reads_env: switch("env", true)?,
            tools: member(parts, "tools")?.map_or_else(|| Ok(Vec::new()), |tools| tools.extract())?,
            document_reader: member(parts, "document_reader")?.map(|path| path.extract()).transpose()?,
            streaming: switch("streaming", true)?,
            multimodal: switch("multimodal", true)?,
        };
        Ok(recipe)
    }

    /// Builds the runtime.
    pub fn make(&self, py: Python<'_>) -> PyResult<Runtime> {
        let mut builder = Runtime::builder();
        if self.reads_env {
            builder = builder.with_env();
        }
        builder = match &self.answering {
            Answering::Settings(None) => builder,
            Answering::Settings(Some(name)) => builder.provider_name(name),
            Answering::Function(function) => builder.provider(FunctionProvider::new(function.bind(py))?),
            Answering::Recorded => builder.provider(RecordedReplies::new()),
        };
        if let Some(model) = &self.model {
            builder = builder.model(model);
        }
        builder = self.with_modules(py, builder);
        if let Some(config) = &self.config {
            builder = builder.config(config.clone());
        }
        if let Some(program) = &self.document_reader {
            builder = builder.document_reader(program);
        }
        let builder = self.configure(py, builder)?;
        // Building may open a database and a model file, so the GIL is released.
        py.detach(|| builder.build()).map_err(|failure| envelope_class::exception(py, failure))
    }

    fn with_modules(&self, py: Python<'_>, builder: RuntimeBuilder) -> RuntimeBuilder {
        match &self.source {
            Some(source) => builder.module_source(FunctionSource {
                function: source.clone_ref(py),
                folders: ModuleCache::new(Library::default()),
            }),
            None => self.folders.iter().fold(builder, RuntimeBuilder::modules),
        }
    }

    fn configure(&self, py: Python<'_>, builder: RuntimeBuilder) -> PyResult<RuntimeBuilder> {
        if self.tools.is_empty() && self.streaming && self.multimodal {
            return Ok(builder);
        }
        let tools: PyResult<Vec<Arc<FunctionTool>>> =
            self.tools.iter().map(|tool| FunctionTool::read(tool.bind(py)).map(Arc::new)).collect();
        let tools = tools?;
        let mut tried = ToolBox::default();
        for tool in &tools {
            tried.add(Arc::clone(tool) as _).map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
        let (streaming, multimodal) = (self.streaming, self.multimodal);
        Ok(builder.tune(move |host| {
            for tool in &tools {
                // A tool with the name of a built-in one is skipped.
                let _ = host.tools.add(Arc::clone(tool) as _);
            }
            if !streaming {
                host.capabilities.streaming = false;
            }
            if !multimodal {
                host.media = None;
                host.capabilities.multimodal = Multimodal::default();
                host.capabilities.max_media_size_mb = 0.0;
            }
        }))
    }
}

fn read_answering(parts: &Bound<'_, PyDict>) -> PyResult<Answering> {
    let Some(provider) = member(parts, "provider")? else { return Ok(Answering::Settings(None)) };
    if let Ok(name) = provider.cast::<PyString>() {
        let name = name.to_cow()?;
        return Ok(if name == "recorded" {
            Answering::Recorded
        } else {
            Answering::Settings(Some(name.into_owned()))
        });
    }
    if provider.is_callable() {
        FunctionProvider::new(&provider)?;
        return Ok(Answering::Function(provider.unbind()));
    }
    let message =
        format!("`provider` must be a name or a function, not of the type `{}`", type_name(&provider));
    Err(PyTypeError::new_err(message))
}

/// Parses folders, or a function that returns a module's folder.
fn modules(given: Option<Bound<'_, PyAny>>) -> PyResult<(Vec<PathBuf>, Option<Py<PyAny>>)> {
    let Some(given) = given else { return Ok((Vec::new(), None)) };
    if let Ok(folder) = given.extract::<PathBuf>() {
        return Ok((vec![folder], None));
    }
    if given.is_callable() {
        return Ok((Vec::new(), Some(given.unbind())));
    }
    // The folders are searched in the given order, before all other places.
    let wrong = || {
        let message = format!(
            "`modules` must be a folder, a list of folders or a function, not of the type `{}`",
            type_name(&given)
        );
        PyTypeError::new_err(message)
    };
    let folders: Vec<PathBuf> = given.extract().map_err(|_| wrong())?;
    Ok((folders, None))
}

fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.extract().map_err(|_| {
        PyTypeError::new_err(format!("`{name}` must be a string, not of the type `{}`", type_name(value)))
    })
}

/// Parses the configuration text, which Python has read from a file or written from a dictionary. Paths in a
/// file are relative to its folder.
fn config(parts: &Bound<'_, PyDict>) -> PyResult<Option<Config>> {
    let Some(given) = member(parts, "config")? else { return Ok(None) };
    let config = Config::parse(&text("config", &given)?)
        .map_err(|reason| PyValueError::new_err(format!("invalid configuration: {reason}")))?;
    let folder: Option<PathBuf> =
        member(parts, "config_folder")?.map(|folder| folder.extract()).transpose()?;
    Ok(Some(match folder {
        Some(folder) => config.with_paths_from(&folder),
        None => config,
    }))
}

/// A module source that gets folders from a Python function.
struct FunctionSource {
    function: Py<PyAny>,
    folders: ModuleCache,
}

impl ModuleSource for FunctionSource {
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        let folder = Python::try_attach(|py| -> PyResult<Option<PathBuf>> {
            self.function.call1(py, (name,))?.extract(py)
        });
        match folder {
            Some(Ok(Some(folder))) => self.folders.module(&folder.join("").to_string_lossy()),
            Some(Ok(None)) => Err(missing(format!("unknown module of the program: `{name}`"))),
            Some(Err(error)) => Err(missing(format!("the program's source of modules raised {error}"))),
            None => Err(missing("the interpreter is shutting down".to_owned())),
        }
    }
}

fn missing(message: String) -> Failure {
    Failure::new(cogn::ErrorCode::ModuleNotFound, message)
}
