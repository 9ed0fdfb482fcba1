//! The files of a module: their content, validation findings, the composition plan, and changes. Only files of
//! offered modules are accessible, and only within the operator's permissions. Every change is recorded in the audit
//! log before it is made.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{Response, StatusCode};
use cognitive_contract::manifest::Tier;
use cognitive_contract::ports::AuditRecord;
use cognitive_contract::text::is_plain_name;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_ports::module_editor::{ChangedFiles, ModuleFiles, ModuleFinding, ModuleVersion, SavedModule};
use cognitive_runtime::compose::overview;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::body;
use crate::app::AppState;
use crate::auth::Client;
use crate::catalog::{author_work, no_module};
use crate::other_servers;
use crate::response;
use crate::routes::Name;

/// The folder of a module.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ModuleFiles")]
pub(crate) struct ShownFiles {
    #[serde(flatten)]
    files: ModuleFiles,
    /// The golden tests.
    tests: Vec<NamedTest>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct NamedTest {
    name: String,
}

/// The versions of a module, the current one first.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VersionList {
    versions: Vec<ModuleVersion>,
}

/// The findings of validation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FindingList {
    findings: Vec<ModuleFinding>,
}

/// Files to validate.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CheckRequest")]
pub(crate) struct CheckBody {
    /// Texts by path in the folder of the module; null removes a file.
    files: ChangedFiles,
}

/// A module to create.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CreateRequest")]
pub(crate) struct CreateBody {
    /// Lower-case letters, digits and hyphens.
    name: String,
    /// `decision` by default.
    #[schemars(extend("enum" = ["exec", "decision", "exploration"]))]
    tier: Option<String>,
}

/// A change of files, all of them or none.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SaveRequest")]
pub(crate) struct SaveBody {
    /// The hash of the folder that the change is based on.
    hash: String,
    /// Texts by path in the folder of the module; null removes a file.
    files: ChangedFiles,
}

/// Runs work on the files of an offered module outside the serving threads. The module need not be valid, so that an
/// author can repair it.
pub(crate) async fn at_work<T: Send + 'static>(
    shared: &Arc<AppState>,
    client: &Client,
    module: &str,
    act: impl FnOnce(&AppState, &str) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    if !is_plain_name(module) || !shared.offers(module) {
        return Err(no_module(module));
    }
    let module = module.to_owned();
    author_work(shared, client, move |shared| act(shared, &module)).await?
}

/// Returns the response of a handler.
pub(crate) fn answer(outcome: Result<impl Serialize, Failure>) -> Response<Body> {
    match outcome {
        Ok(value) => response::json(StatusCode::OK, &value),
        Err(failure) => response::failure(failure),
    }
}

/// `GET /v1/modules/{module}/files`.
pub(crate) async fn files(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(module): Name,
) -> Response<Body> {
    answer(
        at_work(&shared, &client, &module, |shared, module| {
            let files = shared.module_editor()?.files(module)?;
            let cases = shared.config.cases.as_ref().map(|book| book.cases(module)).transpose()?;
            let tests = cases.into_iter().flatten().filter(|case| case.set == "tests");
            Ok(ShownFiles { files, tests: tests.map(|case| NamedTest { name: case.id }).collect() })
        })
        .await,
    )
}

/// `GET /v1/modules/{module}/versions`.
pub(crate) async fn versions(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(module): Name,
) -> Response<Body> {
    let versions =
        at_work(&shared, &client, &module, |shared, module| shared.module_editor()?.versions(module)).await;
    answer(versions.map(|versions| VersionList { versions }))
}

/// `POST /v1/modules/{module}/check`.
pub(crate) async fn check(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(module): Name,
    request: Request,
) -> Response<Body> {
    let (CheckBody { files }, _claim) = match body::read(&shared, request).await {
        Ok(read) => read,
        Err(refusal) => return *refusal,
    };
    let checked = at_work(&shared, &client, &module, move |shared, module| {
        shared.module_editor()?.check(module, &files)
    })
    .await;
    answer(checked.map(|findings| FindingList { findings }))
}

/// `PUT /v1/modules/{module}/files`.
pub(crate) async fn save(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(module): Name,
    request: Request,
) -> Response<Body> {
    let (SaveBody { hash, files }, _claim) = match body::read(&shared, request).await {
        Ok(read) => read,
        Err(refusal) => return *refusal,
    };
    let author = Arc::clone(&client);
    let saved = at_work(&shared, &client, &module, move |shared, module| {
        let paths: Vec<&String> = files.keys().collect();
        let record = || record_edit(shared, &author, module, json!({ "files": paths, "before": hash }));
        let saved: SavedModule = shared.module_editor()?.save(module, &hash, &files, &record)?;
        Ok(saved)
    })
    .await;
    if saved.is_ok() {
        other_servers::tell_of_modules(&shared);
    }
    answer(saved)
}

/// `POST /v1/modules`.
pub(crate) async fn create(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    request: Request,
) -> Response<Body> {
    let (CreateBody { name, tier }, _claim) = match body::read(&shared, request).await {
        Ok(read) => read,
        Err(refusal) => return *refusal,
    };
    let tiers = [Tier::Exec, Tier::Decision, Tier::Exploration];
    let wanted = tier.as_deref().unwrap_or(Tier::Decision.word());
    let Some(tier) = tiers.into_iter().find(|tier| tier.word() == wanted) else {
        let message = "unknown tier, expected `exec`, `decision` or `exploration`";
        return response::failure(Failure::new(ErrorCode::InvalidInput, message));
    };
    if !shared.offers(&name) {
        let message = "this server does not offer modules of this name";
        return response::failure(Failure::new(ErrorCode::PermissionDenied, message));
    }
    let author = Arc::clone(&client);
    let created = author_work(&shared, &client, move |shared| {
        let record = || record_edit(shared, &author, &name, json!({ "created": tier.word() }));
        shared.module_editor()?.create(&name, tier, &record)
    })
    .await
    .and_then(std::convert::identity);
    if created.is_ok() {
        other_servers::tell_of_modules(&shared);
    }
    answer(created)
}

/// `GET /v1/modules/{module}/plan`: the output of `cogn compose plan --json`.
pub(crate) async fn plan(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(module): Name,
) -> Response<Body> {
    let module = match shared.module(&module).await {
        Ok(module) => module,
        Err(failure) => return response::failure(failure),
    };
    let planned =
        author_work(&shared, &client, move |shared| overview(shared.host.modules.as_ref(), &module)).await;
    answer(planned.and_then(std::convert::identity))
}

/// Records a change before it is made. If the operator requires records, a change that cannot be recorded is refused.
pub(crate) fn record_edit(
    shared: &AppState,
    client: &Client,
    module: &str,
    receipt: Value,
) -> Result<(), Failure> {
    let Some(audit) = &shared.host.audit else { return Ok(()) };
    let mut record = AuditRecord::change("edit", SystemTime::now(), &client.trace.id, module, receipt);
    record.key = client.user().map(str::to_owned);
    record.user.clone_from(&record.key);
    match audit.record(&record) {
        Err(reason) if shared.host.audit_required => {
            let message = format!("the change was rejected because it cannot be recorded: {reason}");
            Err(Failure::new(ErrorCode::InternalError, message).with_detail("kind", json!("audit")))
        }
        _ => Ok(()),
    }
}
