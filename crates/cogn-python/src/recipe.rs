//! What a runtime is made of, as it is written in Python, so that it can be made again in the child of a fork.

use std::path::PathBuf;
use std::sync::Arc;

use cogn::config::Config;
use cogn::settings::SettingOverrides;
use cogn::{Failure, Module, ModuleSource, Runtime, RuntimeBuilder};
use cognitive_contract::capabilities::Multimodal;
use cognitive_contract::tools::ToolBox;
use cognitive_library::{Library, ModuleCache};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::failing;
use crate::from_python::type_name;
use crate::function::member;
use crate::provider::FunctionProvider;
use crate::recorded::RecordedReplies;
use crate::tool::FunctionTool;

/// Who answers.
enum Answering {
    /// As settings decide; by name, if one was given.
    Settings(Option<String>),
    /// A function of the program.
    Function(Py<PyAny>),
    /// The replies that were recorded for each run.
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
    /// Reads the parts. What is of a wrong type is a `TypeError`, what says nothing sensible a `ValueError`.
    pub fn read(parts: &Bound<'_, PyDict>) -> PyResult<Self> {
        let switch = |name: &str, usual: bool| -> PyResult<bool> {
            member(parts, name)?.map_or(Ok(usual), |value| value.extract())
        };
        let (folders, source) = modules(member(parts, "modules")?)?;
        let recipe = Self {
            answering: answering(parts)?,
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

    /// Makes the runtime.
    pub fn make(&self, py: Python<'_>) -> PyResult<Runtime> {
        let mut builder = Runtime::builder();
        if self.reads_env {
            builder = builder.with_env();
        }
        let provider = match &self.answering {
            Answering::Settings(name) => name.clone(),
            Answering::Function(function) => {
                builder = builder.provider(FunctionProvider::new(function.bind(py))?);
                None
            }
            Answering::Recorded => {
                builder = builder.provider(RecordedReplies::new());
                None
            }
        };
        let overrides =
            SettingOverrides { provider, model: self.model.clone(), ..SettingOverrides::default() };
        builder = self.with_modules(py, builder.overrides(overrides));
        if let Some(config) = &self.config {
            builder = builder.config(config.clone());
        }
        if let Some(program) = &self.document_reader {
            builder = builder.document_reader(program);
        }
        let builder = self.tuned(py, builder)?;
        // It may open a database and the file of a model.
        py.detach(|| builder.build()).map_err(|failure| failing::exception(py, failure))
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

    fn tuned(&self, py: Python<'_>, builder: RuntimeBuilder) -> PyResult<RuntimeBuilder> {
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
                // One of the program's own takes the place of a built-in one only under another name.
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

fn answering(parts: &Bound<'_, PyDict>) -> PyResult<Answering> {
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
    let message = format!("`provider` is a name or a function, not of the type `{}`", type_name(&provider));
    Err(PyTypeError::new_err(message))
}

/// Folders, or a function that says where a module is.
fn modules(given: Option<Bound<'_, PyAny>>) -> PyResult<(Vec<PathBuf>, Option<Py<PyAny>>)> {
    let Some(given) = given else { return Ok((Vec::new(), None)) };
    if let Ok(folder) = given.extract::<PathBuf>() {
        return Ok((vec![folder], None));
    }
    if given.is_callable() {
        return Ok((Vec::new(), Some(given.unbind())));
    }
    // The folder that is named first is searched first; the builder puts each before all others.
    let wrong = || {
        let message = format!(
            "`modules` is a folder, a list of folders or a function, not of the type `{}`",
            type_name(&given)
        );
        PyTypeError::new_err(message)
    };
    let folders: Vec<PathBuf> = given.extract().map_err(|_| wrong())?;
    Ok((folders, None))
}

fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.extract().map_err(|_| {
        PyTypeError::new_err(format!("`{name}` is a text, not of the type `{}`", type_name(value)))
    })
}

/// A configuration, whose text Python has read from a file or written from a dictionary. Paths in a file are seen from its folder.
fn config(parts: &Bound<'_, PyDict>) -> PyResult<Option<Config>> {
    let Some(given) = member(parts, "config")? else { return Ok(None) };
    let config = Config::parse(&text("config", &given)?)
        .map_err(|reason| PyValueError::new_err(format!("the configuration cannot be used: {reason}")))?;
    let folder: Option<PathBuf> =
        member(parts, "config_folder")?.map(|folder| folder.extract()).transpose()?;
    Ok(Some(match folder {
        Some(folder) => config.with_paths_from(&folder),
        None => config,
    }))
}

/// Modules whose folders a function of the program knows.
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
            Some(Ok(None)) => Err(missing(format!("the program has no module of this name: `{name}`"))),
            Some(Err(error)) => Err(missing(format!("the program's source of modules raised {error}"))),
            None => Err(missing("the interpreter is shutting down".to_owned())),
        }
    }
}

fn missing(message: String) -> Failure {
    Failure::new(cogn::ErrorCode::ModuleNotFound, message)
}
