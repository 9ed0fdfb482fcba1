//! Parses the options of one run from Python. An unknown option or a wrong type is refused before anything
//! runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cogn::ModuleRun;
use cognitive_contract::money::Money;
use cognitive_contract::recorded_reply::{self, RecordedReply};
use cognitive_contract::thinking::checked_bound;
use cognitive_contract::{Enforcement, RunSettings};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::caller::{PythonCaller, Replies, Scope};
use crate::from_python::{self, type_name};

/// The options of one run.
#[derive(Default)]
pub struct PythonOptions {
    /// The options that every surface has.
    settings: RunSettings,
    user: Option<String>,
    session: Option<String>,
    text: Option<String>,
    replies: Option<Replies>,
    caller: Option<Arc<PythonCaller>>,
}

/// The option names, for the error message.
const NAMES: &str = "`timeout`, `reask`, `max_calls`, `max_cost`, `seed`, `max_output_tokens`, `thinking`, `receipt`, \
                     `strict_parse`, `early_stop`, `no_cache`, `user`, `session`, `schemas` and `text`";

impl PythonOptions {
    /// Parses the options.
    pub fn read(given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Self::default();
        let Some(given) = given else { return Ok(options) };
        for (name, value) in given.iter() {
            let name = name.cast::<PyString>()?;
            let name = name.to_cow()?;
            if value.is_none() {
                continue;
            }
            options.set(&name, &value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match name {
            "timeout" => self.settings.timeout = Some(seconds(value)?),
            "reask" => self.settings.reask = Some(number(name, value)?),
            "seed" => self.settings.seed = Some(number(name, value)?),
            "max_output_tokens" => self.settings.max_output_tokens = Some(number(name, value)?),
            "thinking" => self.settings.thinking = Some(parse_token_limit(value)?),
            "max_cost" => self.settings.max_cost = Some(dollars(value)?),
            "max_calls" => self.settings.max_calls = Some(number(name, value)?),
            "receipt" => self.settings.receipt = Some(word(name, value)?),
            "strict_parse" => self.settings.strict_parse = Some(word(name, value)?),
            "early_stop" => self.settings.early_stop = Some(word(name, value)?),
            "no_cache" => self.settings.no_cache = Some(word(name, value)?),
            "user" => self.user = Some(word(name, value)?),
            "session" => self.session = Some(word(name, value)?),
            "schemas" => {
                let is_full: bool = word(name, value)?;
                let enforcement = if is_full { Enforcement::Full } else { Enforcement::EnvelopeOnly };
                self.settings.enforcement = Some(enforcement);
            }
            "text" => self.text = Some(word(name, value)?),
            "replies" => self.replies = Some(Arc::new(replies(name, value)?)),
            "caller" => self.caller = Some(Arc::new(PythonCaller::read(value)?)),
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "unknown option: `{name}`; the options are {NAMES}"
                )));
            }
        }
        Ok(())
    }

    /// Takes the caller of the run and its recorded replies.
    pub fn scope(&mut self) -> Scope {
        (self.caller.take(), self.replies.take())
    }

    /// Applies the options and the input to a run.
    pub fn apply(self, mut run: ModuleRun, input: Option<&Bound<'_, PyAny>>) -> PyResult<ModuleRun> {
        let input = input.filter(|input| !input.is_none());
        run = match (input, self.text) {
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err("a run has either an input or a `text`, not both"));
            }
            (Some(input), None) => run.input(from_python::value("input", input)?),
            (None, Some(text)) => run.text(text),
            (None, None) => run,
        };
        let asked = self.settings;
        run = run.options(|options| options.settings = asked.or(options.settings));
        if let Some(user) = self.user {
            run = run.user(user);
        }
        if let Some(session) = self.session {
            run = run.session(session);
        }
        Ok(run)
    }
}

/// Parses the token limit for thinking; `ValueError` if it is too high.
fn parse_token_limit(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    checked_bound(number("thinking", value)?)
        .map_err(|refused| PyValueError::new_err(refused.message().to_owned()))
}

/// Parses an amount of money from any type that prints as a number: `float`, `int`, `Decimal` or `str`.
fn dollars(value: &Bound<'_, PyAny>) -> PyResult<Money> {
    Money::parse(value.str()?.to_cow()?.as_ref()).ok_or_else(|| {
        PyValueError::new_err(format!("`max_cost` must be an amount in dollars, found: {value}"))
    })
}

/// Recorded replies by module, each as a pair of its text and the name of its dialect or `None`.
fn replies(name: &str, value: &Bound<'_, PyAny>) -> PyResult<BTreeMap<String, RecordedReply>> {
    let given: BTreeMap<String, (String, Option<String>)> = word(name, value)?;
    let read = |(module, (text, dialect)): (String, (String, Option<String>))| {
        let dialect = dialect.as_deref().map(recorded_reply::dialect).transpose();
        let dialect = dialect.map_err(PyValueError::new_err)?.flatten();
        Ok((module, RecordedReply::new(text, dialect)))
    };
    given.into_iter().map(read).collect()
}

/// A value of a type; `TypeError` if it is of another one.
fn word<'py, T: FromPyObjectOwned<'py>>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<T> {
    value.extract().map_err(|_| {
        PyTypeError::new_err(format!("the option `{name}` cannot be of the type `{}`", type_name(value)))
    })
}

/// Extracts an integer; `ValueError` if it is out of range.
fn number<'py, T: FromPyObjectOwned<'py>>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<T> {
    if !value.is_instance_of::<pyo3::types::PyInt>() {
        return word(name, value);
    }
    value
        .extract()
        .map_err(|_| PyValueError::new_err(format!("the option `{name}` is out of range: {value}")))
}

fn seconds(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let seconds: f64 = word("timeout", value)?;
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| {
        PyValueError::new_err(format!("`timeout` must be a time in seconds, found: {seconds}"))
    })
}
