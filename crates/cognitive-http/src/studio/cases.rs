//! The cases of a module: its golden tests and labelled cases, verdicts on answers, and saving an answer as a case.
//! Verdicts use the expectation language only. Writes only where the module may be changed, and records the change
//! first.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::Response;
use cognitive_contract::recorded_reply::{self, dialect_names};
use cognitive_contract::{Envelope, ErrorCode, Failure, RecordedReply};
use cognitive_ports::module_editor::{CaseBook, CaseKind, CaseVerdict, ModuleCase, NewCase};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::body;
use super::module_files::{answer, at_work, record_edit};
use crate::app::AppState;
use crate::auth::Client;
use crate::routes::Name;

/// An answer to keep as a case.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CaseRequest")]
pub(crate) struct CaseBody {
    kind: CaseWord,
    name: String,
    input: Value,
    #[schemars(with = "Envelope")]
    envelope: Value,
    /// The raw text of the model.
    reply: Option<String>,
    /// The dialect of the schema that the provider was sent with it; `none` without this member.
    #[schemars(extend("enum" = dialect_names().collect::<Vec<_>>()))]
    reply_dialect: Option<String>,
}

impl CaseBody {
    /// The reply that the caller recorded, if any. A dialect without a reply is refused.
    fn recorded_reply(&mut self) -> Result<Option<RecordedReply>, Failure> {
        let named = self.reply_dialect.as_deref().map(recorded_reply::dialect).transpose();
        let dialect = named.map_err(|why| Failure::new(ErrorCode::InvalidInput, why))?;
        match (self.reply.take(), dialect) {
            (None, Some(_)) => Err(Failure::new(ErrorCode::InvalidInput, "`reply_dialect` needs a `reply`")),
            (reply, dialect) => Ok(reply.map(|text| RecordedReply::new(text, dialect.flatten()))),
        }
    }
}

/// Answers to one case.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "JudgeRequest")]
pub(crate) struct JudgeBody {
    set: String,
    id: String,
    #[schemars(with = "Vec<Envelope>")]
    envelopes: Vec<Value>,
}

/// The cases of a module.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CaseList {
    cases: Vec<ModuleCase>,
}

/// The verdicts on the answers, in their order.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VerdictList {
    verdicts: Vec<CaseVerdict>,
}

/// The limit of answers to one case per request. Judging happens while the request waits.
const MOST_ANSWERS: usize = 1_000;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum CaseWord {
    Golden,
    Example,
    Case,
}

fn book(shared: &AppState) -> Result<&dyn CaseBook, Failure> {
    shared.config.cases.as_deref().ok_or_else(|| {
        Failure::new(ErrorCode::PermissionDenied, "this server does not show the cases of modules")
            .suggest("Contact the server operator")
    })
}

/// `GET /v1/modules/{module}/cases`.
pub(crate) async fn list(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(module): Name,
) -> Response<Body> {
    let cases = at_work(&shared, &client, &module, |shared, module| book(shared)?.cases(module)).await;
    answer(cases.map(|cases| CaseList { cases }))
}

/// `POST /v1/modules/{module}/judge`: checks answers to one case against its expectations.
pub(crate) async fn judge(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(module): Name,
    request: Request,
) -> Response<Body> {
    let (JudgeBody { set, id, envelopes }, _claim) = match body::read(&shared, request).await {
        Ok(read) => read,
        Err(refusal) => return *refusal,
    };
    if envelopes.len() > MOST_ANSWERS {
        let message = format!("at most {MOST_ANSWERS} answers are judged at once");
        return answer(Err::<(), _>(Failure::new(ErrorCode::InputTooLarge, message)));
    }
    let judged = at_work(&shared, &client, &module, move |shared, module| {
        book(shared)?.judge(module, &set, &id, &envelopes)
    });
    answer(judged.await.map(|verdicts| VerdictList { verdicts }))
}

/// `POST /v1/modules/{module}/cases`.
pub(crate) async fn keep(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(module): Name,
    request: Request,
) -> Response<Body> {
    let (mut body, _claim) = match body::read::<CaseBody>(&shared, request).await {
        Ok(read) => read,
        Err(refusal) => return *refusal,
    };
    let reply = match body.recorded_reply() {
        Ok(reply) => reply,
        Err(failure) => return answer(Err::<(), _>(failure)),
    };
    let CaseBody { kind, name, input, envelope, .. } = body;
    let kind = match kind {
        CaseWord::Golden => CaseKind::Golden,
        CaseWord::Example => CaseKind::Example,
        CaseWord::Case => CaseKind::Labelled,
    };
    // Use the reply that the caller recorded, otherwise the one recorded on this server.
    let trace = envelope.pointer("/meta/trace_id").and_then(Value::as_str);
    let remembered = || shared.replies.find(&client.name, trace?);
    let replies = reply.map(|reply| BTreeMap::from([(module.clone(), reply)])).or_else(remembered);
    let case = NewCase { kind, name, input, envelope, replies };
    let author = Arc::clone(&client);
    answer(
        at_work(&shared, &client, &module, move |shared, module| {
            let record = || record_edit(shared, &author, module, json!({ "case": case.name }));
            book(shared)?.keep(module, &case, &record)
        })
        .await,
    )
}
