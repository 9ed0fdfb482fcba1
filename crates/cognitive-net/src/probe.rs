//! Checks a service without calling its model: does it answer, accept the key and know the model? One request, three
//! seconds, no retry.

use std::time::Duration;

use cognitive_contract::ports::ProviderError;
use hyper::Method;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use crate::config::{ProviderConfig, remote};
use crate::fault::Reporter;
use crate::llm::remote::Remote;
use crate::llm::segments::Segments;
use crate::service::{MAX_BODY_LENGTH, Trouble};

/// The time limit for the check. A user waits for the check of every service.
const TIME: Duration = Duration::from_secs(3);

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// The configured model.
    pub model: String,
    /// True if the service lists the model. Some services support more models than they list.
    pub model_is_listed: bool,
    /// The listed models.
    pub models: Vec<String>,
    /// The duration of the check.
    pub latency: Duration,
}

/// Checks whether a service answers. Fails like a call, and with [`ProviderError::Timeout`] after three seconds.
pub async fn probe(config: &ProviderConfig) -> Result<Probe, ProviderError> {
    let remote = remote(config)?;
    let started = Instant::now();
    let list = timeout(TIME, list(&remote)).await.unwrap_or(Err(ProviderError::Timeout))?;
    let mut models = remote.wire.names(&list);
    for name in &mut models {
        remote.redactor.remove(name);
    }
    let model = remote.wire.endpoint().model.clone();
    Ok(Probe { model_is_listed: models.contains(&model), model, models, latency: started.elapsed() })
}

async fn list(remote: &Remote) -> Result<Value, ProviderError> {
    let reporter = Reporter { name: remote.name, redactor: &remote.redactor, call: None };
    let asked = remote.service.ask(Method::GET, &remote.list, Segments::default()).await;
    let answer = asked.map_err(|trouble| reporter.transport(&trouble).error)?;
    let mut answer = reporter.success(answer).await?;
    let mut text = Vec::new();
    loop {
        match answer.next(MAX_BODY_LENGTH).await {
            Ok(Some(piece)) => text.extend_from_slice(&piece),
            Ok(None) => break,
            Err(Trouble::TooLong(_)) => {
                return Err(reporter.unreadable("an answer above the size limit").error);
            }
            Err(trouble) => return Err(reporter.transport(&trouble).error),
        }
    }
    serde_json::from_slice(&text)
        .map_err(|_| reporter.unreadable("something that is not JSON; check the address").error)
}
