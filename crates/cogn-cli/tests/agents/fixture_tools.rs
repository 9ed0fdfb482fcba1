//! The tools of the conformance suite that request input from the client, in both ways: by a result that needs input
//! (2026-07-28), and by a server request (2025-11-25). Also tools whose tasks wait for input or fail.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientResult, ContentBlock,
    CreateTaskResult, ElicitRequest, InputRequest, InputRequiredResult, InputResponses, ServerRequest, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

/// Requests to the client, by the names that its answers use.
type Requests = Vec<(&'static str, Value)>;

/// The requests of each round. The round number goes to the client and back, sealed.
pub(crate) struct Rounds(pub(crate) Vec<Requests>);

impl Rounds {
    /// Returns the next requests; `None` after the last answer. The error is a state that this server did not seal.
    pub(crate) fn next(
        &self,
        responses: Option<&InputResponses>,
        state: Option<&str>,
    ) -> Result<Option<InputRequiredResult>, ErrorData> {
        let round = state.map_or(Ok(0), unsealed)?;
        let answers = |key: &str| responses.and_then(|all| all.get(key)).is_some_and(Value::is_object);
        let asked = self.0.get(round).map(Vec::as_slice).unwrap_or_default();
        let round = if asked.iter().all(|(key, _)| answers(key)) { round + 1 } else { round };
        let Some(requests) = self.0.get(round) else { return Ok(None) };
        let requests = requests.iter().map(|(key, request)| ((*key).to_owned(), input_request(request)));
        Ok(Some(InputRequiredResult::new(Some(requests.collect()), Some(sealed(round)))))
    }
}

fn sealed(round: usize) -> String {
    let seal = Sha256::digest(format!("a key of this test, {round}"));
    format!("{round}.{}", STANDARD.encode(seal))
}

fn unsealed(state: &str) -> Result<usize, ErrorData> {
    let round = state.split_once('.').and_then(|(round, _)| round.parse().ok());
    let genuine = round.filter(|round| sealed(*round) == state);
    genuine.ok_or_else(|| ErrorData::invalid_params("the request state was changed", None))
}

fn input_request(request: &Value) -> InputRequest {
    serde_json::from_value(request.clone()).unwrap()
}

/// Returns a request for one text from the user.
pub(crate) fn elicit(message: &str, member: &str) -> Value {
    form(message, json!({ member: { "type": "string" } }), &[member])
}

fn form(message: &str, properties: Value, required: &[&str]) -> Value {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": schema } })
}

fn sample(text: &str) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": 100 } })
}

fn roots() -> Value {
    json!({ "method": "roots/list" })
}

/// Returns the requests that a tool sends by results, given the capabilities of the client.
fn rounds(tool: &str, known: &ClientCapabilities) -> Option<Rounds> {
    let name = || elicit("What is your name?", "name");
    let confirm = || form("Go on?", json!({ "ok": { "type": "boolean" } }), &["ok"]);
    let one = |requests: Requests| Rounds(vec![requests]);
    Some(match tool.strip_prefix("test_input_required_result_").unwrap_or(tool) {
        "elicitation" | "test_tool_with_task" => one(vec![("user_name", name())]),
        "sampling" => one(vec![("capital_question", sample("What is the capital of France?"))]),
        "list_roots" => one(vec![("client_roots", roots())]),
        "request_state" | "tampered_state" => one(vec![("confirm", confirm())]),
        "multiple_inputs" => one(vec![
            ("user_name", name()),
            ("greeting", sample("Greet somebody.")),
            ("client_roots", roots()),
        ]),
        "multi_round" => {
            Rounds(vec![vec![("step1", name())], vec![("step2", elicit("Which colour?", "colour"))]])
        }
        "capabilities" => {
            let mut requests = Vec::new();
            if known.elicitation.is_some() {
                requests.push(("user_name", name()));
            }
            if known.sampling.is_some() {
                requests.push(("greeting", sample("Greet somebody.")));
            }
            one(requests)
        }
        _ => return None,
    })
}

/// Returns the request that a tool sends from the server.
fn elicitation(tool: &str, arguments: &Value) -> Option<Value> {
    let text = json!({ "type": "string" });
    Some(match tool {
        "test_elicitation" => {
            let message = arguments["message"].as_str().unwrap_or("Who are you?");
            form(message, json!({ "username": text, "email": text }), &["username", "email"])
        }
        "test_elicitation_sep1034_defaults" => form(
            "Look through these.",
            json!({ "name": { "type": "string", "default": "John Doe" }, "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 }, "verified": { "type": "boolean", "default": true },
                "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" } }),
            &[],
        ),
        "test_elicitation_sep1330_enums" => {
            let plain = json!(["option1", "option2", "option3"]);
            let titled =
                json!([{ "const": "value1", "title": "First" }, { "const": "value2", "title": "Second" }]);
            form(
                "Choose.",
                json!({ "untitledSingle": { "type": "string", "enum": plain },
                    "titledSingle": { "type": "string", "oneOf": titled },
                    "legacyEnum": { "type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"] },
                    "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
                    "titledMulti": { "type": "array", "items": { "anyOf": titled } } }),
                &[],
            )
        }
        _ => return None,
    })
}

/// The tools, with their tasks.
#[derive(Clone, Default)]
pub(crate) struct FixtureTools {
    pub(crate) tasks: TaskManager,
    /// Signals that the lists have changed.
    pub(crate) changes: watch::Sender<()>,
}

const NAMES: [&str; 19] = [
    "confirm_delete",
    "greet",
    "multi_input",
    "protocol_error_job",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_input_required_result_capabilities",
    "test_input_required_result_elicitation",
    "test_input_required_result_list_roots",
    "test_input_required_result_multi_round",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_request_state",
    "test_input_required_result_sampling",
    "test_input_required_result_tampered_state",
    "test_missing_capability",
    "test_tool_with_task",
    "test_trigger_prompt_change",
    "test_trigger_tool_change",
];

impl FixtureTools {
    pub(crate) fn list() -> impl Iterator<Item = Tool> {
        let schema = json!({ "type": "object" }).as_object().unwrap().clone();
        NAMES.into_iter().map(move |name| Tool::new(name, "A fixture of the suite", schema.clone()))
    }

    /// Answers a call, unless the tool belongs to the real server.
    pub(crate) async fn answer(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        let known = context.client_capabilities().unwrap_or_default();
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        if let Some(asked) = elicitation(&request.name, &arguments) {
            let asked: ElicitRequest = serde_json::from_value(asked).unwrap();
            let answer = context.peer.send_request(ServerRequest::ElicitRequest(asked)).await;
            let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            let ClientResult::ElicitResult(answer) = answer else { return Ok(Some(text("no answer"))) };
            return Ok(Some(text(&json!(answer).to_string())));
        }
        if let Some(rounds) = rounds(&request.name, &known) {
            let responses = request.input_responses.as_ref();
            return Ok(Some(match rounds.next(responses, request.request_state.as_deref())? {
                Some(required) => required.into(),
                None if request.name == "test_tool_with_task" => self.task(greeted(json!(responses))),
                None => text(&json!(responses).to_string()),
            }));
        }
        Ok(Some(match &*request.name {
            "test_missing_capability" => {
                let sampling = serde_json::from_value(json!({ "sampling": {} })).unwrap();
                return Err(ErrorData::missing_required_client_capability(sampling));
            }
            "failing_job" if !known.supports_tasks() => {
                let tasks = ClientCapabilities::builder().enable_tasks().build();
                return Err(ErrorData::missing_required_client_capability(tasks));
            }
            "test_trigger_tool_change" | "test_trigger_prompt_change" => {
                self.changes.send_replace(());
                text("changed")
            }
            // A module would answer with an envelope, and the suite expects this text.
            "greet" => text(&format!("Hello, {}!", arguments["name"].as_str().unwrap_or("World"))),
            "protocol_error_job" => {
                self.task(|_| async { Err(TaskExit::Error(ErrorData::internal_error("it broke", None))) })
            }
            "confirm_delete" => self.task(asking_once),
            "multi_input" => self.task(asking_twice),
            _ => return Ok(None),
        }))
    }

    fn task<F>(&self, work: impl FnOnce(TaskContext) -> F) -> CallToolResponse
    where
        F: Future<Output = Result<CallToolResult, TaskExit>> + Send + 'static,
    {
        let task = self.tasks.spawn(TaskOptions::new(), |context| Box::pin(work(context)));
        CallToolResponse::Task(CreateTaskResult::new(task))
    }
}

fn text(text: &str) -> CallToolResponse {
    done(text).into()
}

fn done(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn greeted(
    responses: Value,
) -> impl FnOnce(TaskContext) -> std::future::Ready<Result<CallToolResult, TaskExit>> {
    move |_| std::future::ready(Ok(done(&responses.to_string())))
}

/// Sends one request, and completes when it is answered.
async fn asking_once(task: TaskContext) -> Result<CallToolResult, TaskExit> {
    let answer = task.request_input("confirm", input_request(&elicit("Which?", "name"))).await?;
    Ok(done(&answer.to_string()))
}

/// Sends two concurrent requests, and completes when both are answered.
async fn asking_twice(task: TaskContext) -> Result<CallToolResult, TaskExit> {
    let ask = |key: &'static str| task.request_input(key, input_request(&elicit("Which?", "name")));
    let (first, second) = tokio::try_join!(ask("first"), ask("second"))?;
    Ok(done(&json!([first, second]).to_string()))
}
