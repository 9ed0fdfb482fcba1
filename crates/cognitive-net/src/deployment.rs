//! Registers a worker with a Restate server: one request to its admin API, answered with the services that the server
//! discovered. Sends no key and does not check the services.

use std::time::Duration;

use cognitive_contract::{ErrorCode, Failure, text};
use reqwest::Url;
use serde_json::{Value, json};

use crate::client;
use crate::config::Proxies;

/// The time limit for the registration. The server queries the worker before it answers.
const TIME: Duration = Duration::from_secs(30);
/// The largest answer that is read, in bytes. Without it, a wrong address could fill the memory.
const MAX_ANSWER: usize = 4 << 20;
/// The most characters shown of a server's error message.
const SHOWN: usize = 400;

/// The options of a registration.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeploymentRequest {
    /// The URL of the server's admin API, such as `http://127.0.0.1:9070`.
    pub admin: String,
    /// The URL of the worker as seen by the server, such as `http://127.0.0.1:9080`.
    pub service: String,
    /// Replaces an existing registration of the worker, even if this removes services.
    pub force: bool,
    /// Registers nothing and returns what would be registered.
    pub dry_run: bool,
}

impl DeploymentRequest {
    /// Creates a request with `force` and `dry_run` unset.
    #[must_use]
    pub fn new(admin: &str, service: &str) -> Self {
        Self { admin: admin.to_owned(), service: service.to_owned(), force: false, dry_run: false }
    }
}

/// A worker that is registered with the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deployment {
    /// The id assigned by the server.
    pub id: String,
    /// Its services.
    pub services: Vec<DeployedService>,
}

/// A service of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeployedService {
    /// Its name.
    pub name: String,
    /// `service`, `workflow` or `object`.
    pub kind: String,
    /// The revision of the service; the server increments it when a registration changes the service.
    pub revision: u64,
    /// The names of its handlers.
    pub handlers: Vec<String>,
}

/// Registers a worker. The error says which address is wrong, or why the server refused.
pub async fn register_deployment(request: &DeploymentRequest) -> Result<Deployment, Failure> {
    let (admin, service) = (address(&request.admin, "admin")?, address(&request.service, "service")?);
    let mut place = admin.clone();
    place.set_path(&format!("{}/deployments", admin.path().trim_end_matches('/')));
    let here = admin.host_str().is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
    let proxies = if here { Proxies::None } else { Proxies::OfTheMachine };
    let client = client::client(&admin, proxies).map_err(|error| unavailable(error.to_string()))?;
    let body = json!({ "uri": service.as_str(), "force": request.force, "dry_run": request.dry_run });
    let sent = client.post(place).header("content-type", "application/json").timeout(TIME);
    let unreachable = |error: reqwest::Error| {
        let why = if error.is_timeout() { "it did not answer in time" } else { "it cannot be reached" };
        unavailable(format!("the Restate server at {} does not respond: {why}", origin_text(&admin)))
            .suggest("Start it, or set `--admin` to the address of its admin interface")
    };
    let mut answer = sent.body(body.to_string()).send().await.map_err(unreachable)?;
    let (status, mut bytes) = (answer.status(), Vec::new());
    while let Some(piece) = answer.chunk().await.map_err(unreachable)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_ANSWER {
            return Err(unavailable(format!(
                "the answer of {} is not a deployment: it is too long",
                origin_text(&admin)
            )));
        }
    }
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if !status.is_success() {
        let said = value.get("message").and_then(Value::as_str).unwrap_or("it gave no reason");
        let message =
            format!("the Restate server rejected the worker ({status}): {}", text::cut(said, SHOWN));
        return Err(unavailable(message).suggest(
            "The server must be able to reach the worker at the address of `--service`; `--force` \
             replaces an earlier registration",
        ));
    }
    read(&value)
        .ok_or_else(|| unavailable(format!("the answer of {} is not a deployment", origin_text(&admin))))
}

fn unavailable(message: String) -> Failure {
    Failure::new(ErrorCode::ProviderUnavailable, message)
}

/// Returns the origin of a URL, which contains no credentials.
fn origin_text(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn address(given: &str, what: &str) -> Result<Url, Failure> {
    let url = Url::parse(given).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some());
    url.ok_or_else(|| {
        Failure::new(ErrorCode::InvalidInput, format!("`--{what}` is not `http://HOST:PORT`"))
            .suggest("The defaults are `--admin http://127.0.0.1:9070 --service http://127.0.0.1:9080`")
    })
}

fn read(value: &Value) -> Option<Deployment> {
    let word = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
    let service = |value: &Value| {
        let handlers = value.get("handlers").and_then(Value::as_array);
        let mut handlers: Vec<String> =
            handlers.into_iter().flatten().filter_map(|each| word(each, "name")).collect();
        handlers.sort();
        let kind = word(value, "ty")?.to_lowercase();
        Some(DeployedService {
            name: word(value, "name")?,
            kind: if kind == "virtualobject" { "object".to_owned() } else { kind },
            revision: value.get("revision").and_then(Value::as_u64).unwrap_or_default(),
            handlers,
        })
    };
    let mut services: Vec<DeployedService> =
        value.get("services")?.as_array()?.iter().filter_map(service).collect();
    // The server returns them in no fixed order.
    services.sort_by(|one, other| one.name.cmp(&other.name));
    Some(Deployment { id: word(value, "id")?, services })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_and_anything_else_is_none() {
        let handlers = json!([{ "name": "run", "ty": "Workflow" }, { "name": "status", "ty": "Shared" }]);
        let answer = json!({
            "id": "dp_1",
            "services": [
                { "name": "multi-reviewer", "ty": "Workflow", "revision": 2, "handlers": handlers },
                { "name": "cogn-session", "ty": "VirtualObject", "revision": 1, "handlers": [] },
            ],
        });
        let deployment = read(&answer).unwrap();
        let shown: Vec<(&str, &str)> =
            deployment.services.iter().map(|each| (each.name.as_str(), each.kind.as_str())).collect();
        assert_eq!(shown, [("cogn-session", "object"), ("multi-reviewer", "workflow")]);
        assert_eq!(deployment.services.last().map(|each| each.handlers.len()), Some(2));
        assert!(read(&json!({})).is_none() && read(&json!([])).is_none());
    }

    #[tokio::test]
    async fn an_address_that_is_none_is_said_by_the_name_of_its_option() {
        for (admin, service, named) in
            [("nowhere", "http://127.0.0.1:1", "--admin"), ("http://127.0.0.1:1", "ftp://x", "--service")]
        {
            let failure = register_deployment(&DeploymentRequest::new(admin, service)).await.unwrap_err();
            assert!(failure.number() == "E1001" && failure.message().contains(named), "{failure:?}");
        }
        let nobody = DeploymentRequest::new("http://user:secret@127.0.0.1:9", "http://127.0.0.1:1");
        let failure = register_deployment(&nobody).await.unwrap_err();
        assert!(failure.number() == "E4001" && !format!("{failure:?}").contains("secret"), "{failure:?}");
    }
}
