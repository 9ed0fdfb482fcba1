//! `/v1/session`: a browser sends its key once to log in, reads its roles, and logs out. The key appears in no URL
//! and no log, and is never stored. The response to a wrong key reveals nothing else.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use cognitive_contract::ports::AuditRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{body, logins, shared_logins};
use crate::admission::{host_is_local, wrong_key};
use crate::app::AppState;
use crate::auth::Client;
use crate::config::ApiKey;
use crate::response;
use crate::roles::{KeyRole, Roles};

/// The version of the protocol between Studio and its server.
const STUDIO: u32 = 1;
/// The longest body of a login, in bytes. Clients without a key may send it, so many of them must fit into the memory.
const MAX_BODY: usize = 4 << 10;

/// A key, shown once.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LoginRequest", extend("required" = ["key"]))]
pub(crate) struct LoginBody {
    #[serde(default)]
    key: String,
}

/// A client, and what it may do.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StudioSession<'a> {
    /// The name of the key; null on a server without keys.
    name: Option<&'a str>,
    roles: Vec<KeyRole>,
    /// True if the server has keys.
    keyed: bool,
    version: &'static str,
    /// The version of the protocol between Studio and its server.
    studio: u32,
    has: StudioParts,
}

/// The parts of Studio that this server has.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of the answer")]
struct StudioParts {
    runs: bool,
    payloads: bool,
    review: bool,
    edit: bool,
}

/// The end of a login.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionEnd {
    #[schemars(extend("const" = "ended"))]
    status: &'static str,
}

/// `GET /v1/session`: the client and its roles.
pub(crate) async fn show(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
) -> Response<Body> {
    response::json(StatusCode::OK, &session(&shared, client.user(), client.roles))
}

/// `POST /v1/session`: logs in.
pub(crate) async fn begin(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    request: Request,
) -> Response<Body> {
    let may_be_plain = host_is_local(request.headers());
    let before = logins::cookie_secret(request.headers()).map(str::to_owned);
    let (LoginBody { key }, _) = match body::read_up_to(&shared, request, MAX_BODY).await {
        Ok(read) => read,
        Err(refusal) => return *refusal,
    };
    if shared.config.keys.is_empty() {
        return response::json(StatusCode::OK, &session(&shared, None, Roles::ALL));
    }
    let keys = shared.keys();
    let Some(key) = ApiKey::find(&keys, key.trim()) else {
        return wrong_key(&shared, &client.address).await;
    };
    // The previous login of this browser ends.
    let begun = async {
        if let Some(before) = &before {
            shared_logins::end(&shared, before).await?;
        }
        shared_logins::begin(&shared, key).await
    };
    let secret = match begun.await {
        Ok(secret) => secret,
        Err(failure) => return response::failure(failure),
    };
    record(&shared, &client, key, "login");
    let mut response = response::json(StatusCode::OK, &session(&shared, Some(&key.name), key.roles));
    put_cookie(&mut response, logins::set_cookie(&secret, may_be_plain));
    response
}

/// `DELETE /v1/session`: logs out.
pub(crate) async fn end(State(shared): State<Arc<AppState>>, headers: HeaderMap) -> Response<Body> {
    if let Some(secret) = logins::cookie_secret(&headers)
        && let Err(failure) = shared_logins::end(&shared, secret).await
    {
        return response::failure(failure);
    }
    let mut response = response::json(StatusCode::OK, &SessionEnd { status: "ended" });
    put_cookie(&mut response, logins::delete_cookie(host_is_local(&headers)));
    response
}

fn put_cookie(response: &mut Response<Body>, cookie: Option<HeaderValue>) {
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
}

fn session<'a>(shared: &AppState, name: Option<&'a str>, roles: Roles) -> StudioSession<'a> {
    let config = &shared.config;
    StudioSession {
        name,
        roles: roles.all().collect(),
        keyed: !config.keys.is_empty(),
        version: env!("CARGO_PKG_VERSION"),
        studio: STUDIO,
        has: StudioParts {
            runs: config.archive.is_some(),
            payloads: shared.host.audit.is_some() && shared.host.audit_payloads,
            review: config.reviews.is_some(),
            edit: config.module_editor.as_ref().is_some_and(|module_editor| module_editor.edits()),
        },
    }
}

/// Records a login in the audit log. If that fails, the access log still has the request.
fn record(shared: &AppState, client: &Client, key: &ApiKey, event: &'static str) {
    let Some(audit) = &shared.host.audit else { return };
    let mut record = AuditRecord::change(event, SystemTime::now(), &client.trace.id, "", json!({}));
    record.key = Some(key.name.clone());
    let _in_the_access_log = audit.record(&record);
}
