//! Uses a Python function as a provider: any function that returns text can answer. An exception in it
//! becomes a provider failure in the envelope.

use std::time::{Duration, Instant};

use cogn::{CallSink, DecodeMode, Finish, ModelCall, ModelEnd, PortFuture, Provider, ProviderError};
use cognitive_contract::ports::{Attempt, Usage};
use cognitive_schema::SchemaTarget;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::call::CallView;
use crate::function::{self, FunctionAnswer, FunctionCall, FunctionMessage, text_attribute};

/// A provider that calls a Python function.
pub struct FunctionProvider {
    function: Py<PyAny>,
    name: String,
    model: String,
    identity: String,
    target: Option<SchemaTarget>,
}

impl FunctionProvider {
    /// Wraps a function. Its attributes `name`, `model` and `dialect` set the names and the dialect of the
    /// schema.
    pub fn new(function: &Bound<'_, PyAny>) -> PyResult<Self> {
        let own_name = text_attribute(function, "__qualname__").unwrap_or_else(|| "callable".to_owned());
        let home = text_attribute(function, "__module__").unwrap_or_default();
        let name = text_attribute(function, "name").unwrap_or_else(|| "python".to_owned());
        let model = text_attribute(function, "model").unwrap_or_else(|| own_name.replace('/', "."));
        let target = text_attribute(function, "dialect").map(|dialect| target(&dialect)).transpose()?;
        let identity = format!("{home}.{own_name} {model}");
        Ok(Self { function: function.clone().unbind(), name, model, identity, target })
    }

    fn start(&self, call: &ModelCall) -> Result<FunctionCall, ProviderError> {
        let call = call.clone();
        function::start(&self.function, |py| Ok(Py::new(py, CallView(call))?.into_any()))
            .map_err(ProviderError::Unavailable)
    }

    fn end(&self, answer: FunctionAnswer, sink: &mut dyn CallSink) -> Result<ModelEnd, ProviderError> {
        match answer.value {
            Some(Value::String(text)) => sink.piece(&text),
            Some(value @ Value::Object(_)) => sink.piece(&value.to_string()),
            Some(Value::Array(pieces)) if pieces.iter().all(Value::is_string) => {
                pieces.iter().filter_map(Value::as_str).for_each(|piece| sink.piece(piece));
            }
            None => {}
            Some(_) => {
                let why = "it returned neither a text nor a dictionary";
                return Err(ProviderError::Unavailable(why.to_owned()));
            }
        }
        let mut end = ModelEnd::complete(answer.model.as_deref().unwrap_or(&self.model), DecodeMode::Prompt);
        end.usage = answer.usage.map(|(input_tokens, output_tokens)| Usage::new(input_tokens, output_tokens));
        end.finish = match answer.finish.as_deref() {
            Some("cut_off") => Finish::CutOff,
            Some("refused") => Finish::Refused(String::new()),
            _ => Finish::Complete,
        };
        Ok(end)
    }
}

fn target(dialect: &str) -> PyResult<SchemaTarget> {
    SchemaTarget::ALL.into_iter().find(|target| target.word() == dialect).ok_or_else(|| {
        let words: Vec<&str> = SchemaTarget::ALL.iter().map(|target| target.word()).collect();
        PyValueError::new_err(format!("`dialect` must be one of {}, found: {dialect}", words.join(", ")))
    })
}

fn call_error(kind: &str, message: String, has_begun: bool) -> ProviderError {
    match kind {
        "error" if has_begun => ProviderError::Interrupted(message),
        "timeout" => ProviderError::Timeout,
        "rate_limit" => ProviderError::RateLimited { retry_after: None },
        _ => ProviderError::Unavailable(message),
    }
}

impl Provider for FunctionProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn target(&self) -> Option<SchemaTarget> {
        self.target
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            let began = Instant::now();
            let mut started = self.start(call)?;
            let mut has_begun = false;
            let outcome = loop {
                let left = call.timeout.saturating_sub(began.elapsed());
                match next(&mut started, left).await {
                    Ok(FunctionMessage::Piece(text)) => {
                        has_begun = true;
                        sink.piece(&text);
                    }
                    Ok(FunctionMessage::Done(answer)) => {
                        started.mark_finished();
                        break self.end(answer, sink);
                    }
                    Ok(FunctionMessage::Raised { kind, message }) => {
                        started.mark_finished();
                        break Err(call_error(&kind, message, has_begun));
                    }
                    Err(error) => break Err(error),
                }
            };
            let word = outcome.as_ref().err().map_or_else(|| "ok".to_owned(), ToString::to_string);
            sink.attempt(Attempt::new(DecodeMode::Prompt, word, began.elapsed()));
            outcome
        })
    }
}

async fn next(started: &mut FunctionCall, left: Duration) -> Result<FunctionMessage, ProviderError> {
    match tokio::time::timeout(left, started.said.recv()).await {
        Ok(Some(said)) => Ok(said),
        Ok(None) => Err(ProviderError::Interrupted("the function ended without an answer".to_owned())),
        Err(_) => Err(ProviderError::Timeout),
    }
}
