//! `tools/call`: maps a tool name and arguments to one result. Every run ends in an envelope, which `result`
//! converts. A failure is returned as a tool error, so that the client's model can read it. Only an unknown tool is a
//! protocol error.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cognitive_contract::policy::Caller;
use cognitive_contract::{Envelope, ErrorCode, Failure, Module};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{ModuleRef, RunRequest};
use futures_util::future::{Either, select};
use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, CreateTaskResult, JsonObject};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::backend::{Admission, McpBackend, RunEnded};
use crate::progress::{self, StageSink};
use crate::search_tools::SearchTool;
use crate::suggestion::{ToolWording, for_agent};
use crate::surface::Offer;
use crate::{result, search_tools};

/// A run that takes longer becomes a task, for clients that support tasks. Clients end calls that stay silent for too
/// long.
pub(crate) const TASK_AFTER: Duration = Duration::from_secs(10);
/// The time limit of a task, and the retention time of its result after its end. Without it, results that are never
/// fetched would fill the memory.
const TASK_TTL: Duration = Duration::from_mins(30);
/// The limit of tasks at once. Above it, a call waits for its run instead. The client decides how many calls it
/// starts.
const MAX_TASKS: usize = 64;

/// Folder scans at once. Each scan reads folders and occupies a thread.
pub(crate) const LOOKS: usize = 2;

/// The state shared by all calls.
#[derive(Clone)]
pub(crate) struct ToolRunner {
    pub(crate) backend: Arc<dyn McpBackend>,
    pub(crate) tasks: TaskManager,
    pub(crate) task_after: Duration,
    /// Permits for folder scans, so that no client can keep the machine busy with them.
    pub(crate) places: Arc<Semaphore>,
}

impl ToolRunner {
    /// Answers a call.
    pub(crate) async fn answer(
        &self,
        offer: &Arc<Offer>,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        if !offer.tools.iter().any(|tool| tool.name == request.name) {
            let name = cognitive_contract::text::cut(&request.name, 128);
            return Err(ErrorData::invalid_params(format!("unknown tool: `{name}`"), None));
        }
        let Some(tool) = SearchTool::from_name(&request.name) else {
            let (module, input) = (request.name.into_owned(), RunInput::Json(Value::Object(arguments)));
            return Ok(self.run(module, input, ToolWording::Modules, context).await);
        };
        match tool {
            SearchTool::List => {
                let (backend, offer) = (Arc::clone(&self.backend), Arc::clone(offer));
                let work = move || Ok(search_tools::list(offer.listed_modules(backend.host()), &arguments));
                Ok(self.run_blocking(work).await.into())
            }
            SearchTool::Info => {
                let backend = Arc::clone(&self.backend);
                Ok(self
                    .run_blocking(move || search_tools::info(&*backend, module_named(&arguments)?))
                    .await
                    .into())
            }
            SearchTool::Validate => {
                let backend = Arc::clone(&self.backend);
                let work = move || {
                    let name = module_named(&arguments)?;
                    search_tools::find_offered(&*backend, name).map(drop).or_else(accept_invalid)?;
                    backend.findings(name)
                };
                Ok(self.run_blocking(work).await.into())
            }
            SearchTool::Run => match run_arguments(arguments) {
                Ok((module, input)) => Ok(self.run(module, input, ToolWording::Search, context).await),
                Err(failure) => Ok(refuse(failure, ToolWording::Search).into()),
            },
        }
    }

    /// Runs work that reads folders outside the serving threads, a few at a time, and converts its outcome to a
    /// result.
    async fn run_blocking(
        &self,
        work: impl FnOnce() -> Result<Value, Failure> + Send + 'static,
    ) -> CallToolResult {
        let broken = || Failure::new(ErrorCode::InternalError, "the modules cannot be read");
        let outcome = match Arc::clone(&self.places).acquire_owned().await {
            // The permit is held until the work is done, even if the client disconnects meanwhile.
            Ok(place) => tokio::task::spawn_blocking(move || {
                let outcome = work();
                drop(place);
                outcome
            })
            .await
            .unwrap_or_else(|_| Err(broken())),
            Err(_) => Err(broken()),
        };
        match outcome {
            Ok(found) => result::value_result(found, false),
            Err(failure) => refuse(failure, ToolWording::Search),
        }
    }

    /// Runs a module. A client that supports tasks gets one if the run takes long.
    async fn run(
        &self,
        module: String,
        input: RunInput,
        wording: ToolWording,
        context: RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let admission = match self.backend.admit(&context.extensions).await {
            Ok(admission) => admission,
            Err(failure) => return refuse(failure, wording).into(),
        };
        let result = move |envelope: &Envelope| result::envelope_result(envelope, wording);
        let (sink, stage) = StageSink::new();
        let knows_tasks = context.client_capabilities().is_some_and(|known| known.supports_tasks());
        let (cancel, cancelled) = watch::channel(false);
        let run = one_run(Arc::clone(&self.backend), module, input, admission, sink, cancelled);
        let gone = {
            let (ct, cancel) = (context.ct.clone(), cancel.clone());
            async move {
                ct.cancelled().await;
                cancel.send_replace(true);
                std::future::pending::<()>().await;
            }
        };
        let report = progress::report(context.peer.clone(), context.meta.get_progress_token(), stage);
        let heard = async {
            tokio::select! { () = gone => {}, never = report => match never {} }
        };
        if !knows_tasks || self.tasks.running_task_count() >= MAX_TASKS {
            let (run, heard) = (Box::pin(run), Box::pin(heard));
            return match select(run, heard).await {
                Either::Left((envelope, _)) => result(&envelope).into(),
                Either::Right(((), run)) => result(&run.await).into(),
            };
        }
        // The run continues in its own task, so that the call can turn into an MCP task while it is in flight.
        let (answered, mut answer) = oneshot::channel();
        tokio::spawn(async move {
            let _ = answered.send(run.await);
        });
        tokio::select! {
            envelope = &mut answer => return result(&unless_aborted(envelope)).into(),
            () = heard => {}
            () = tokio::time::sleep(self.task_after) => {}
        }
        let ttl = u64::try_from(TASK_TTL.as_millis()).unwrap_or(u64::MAX);
        let options = TaskOptions::new().with_ttl_ms(ttl).with_status_message("the module is running");
        let task = self.tasks.spawn(options, |task| {
            Box::pin(async move {
                tokio::select! {
                    envelope = &mut answer => return Ok(result(&unless_aborted(envelope))),
                    () = task.cancelled() => {}
                }
                cancel.send_replace(true);
                // The run writes its record before the task counts as cancelled.
                let _ = answer.await;
                Err(TaskExit::Cancelled)
            })
        });
        CreateTaskResult::new(task).into()
    }
}

/// Runs a module from admission to envelope.
async fn one_run(
    backend: Arc<dyn McpBackend>,
    name: String,
    input: RunInput,
    admission: Admission,
    mut sink: StageSink,
    mut cancelled: watch::Receiver<bool>,
) -> Envelope {
    let Admission { mut options, stop, held, ended } = admission;
    let mut note = EndNote { module: name.clone(), started: Instant::now(), ended };
    options.caller = Caller::Agent;
    options.remote = true;
    let found = {
        let (backend, name) = (Arc::clone(&backend), name.clone());
        tokio::task::spawn_blocking(move || search_tools::find_offered(&*backend, &name)).await
    };
    let module = match found {
        Ok(Ok(module)) => match refuse_options(&module, &input) {
            Ok(()) => ModuleRef::from_module(&name, module),
            Err(failure) => ModuleRef::Refused { name: name.clone(), failure },
        },
        // Passing the failure to the run gives it a trace and a record like any other.
        Ok(Err(failure)) => ModuleRef::Refused { name: name.clone(), failure },
        Err(_) => ModuleRef::from(&name),
    };
    let cancel = async move {
        // A dropped sender means that no caller waits any more: the client is gone, or its task has expired.
        let why = match cancelled.wait_for(|is| *is).await {
            Ok(_) => "the client cancelled the call",
            Err(_) => "the client disconnected",
        };
        Failure::cancellation(why).suggest("Call the tool again")
    };
    let stop = async {
        tokio::select! { failure = cancel => failure, failure = stop => failure }
    };
    let request = RunRequest { module, input, options };
    let envelope = cognitive_runtime::run_until(backend.host(), request, &mut sink, stop).await;
    note.say(&envelope);
    drop(held);
    envelope
}

/// Reports the end of a run, including a run that was dropped because its client disconnected.
struct EndNote {
    module: String,
    started: Instant,
    ended: Option<RunEnded>,
}

impl EndNote {
    fn say(&mut self, envelope: &Envelope) {
        if let Some(ended) = self.ended.take() {
            ended(&self.module, envelope, self.started.elapsed());
        }
    }
}

impl Drop for EndNote {
    fn drop(&mut self) {
        if self.ended.is_some() {
            self.say(&Failure::cancellation("the client disconnected").into_envelope());
        }
    }
}

/// Returns the envelope of a spawned run, or a failure if it was aborted.
fn unless_aborted(envelope: Result<Envelope, oneshot::error::RecvError>) -> Envelope {
    envelope.unwrap_or_else(|_| {
        Failure::new(ErrorCode::InternalError, "internal error of the server: the run was aborted")
            .into_envelope()
    })
}

/// Returns the result of a call that failed before its run.
fn refuse(failure: Failure, wording: ToolWording) -> CallToolResult {
    result::value_result(for_agent(failure, wording), true)
}

fn module_named(arguments: &JsonObject) -> Result<&str, Failure> {
    arguments.get("module").and_then(Value::as_str).ok_or_else(|| {
        Failure::new(ErrorCode::InvalidInput, "`module` must name a module")
            .suggest("`cognitive_list` lists the modules")
    })
}

/// Refuses `_options` of a request: agents set no options of runs, and the model would read them as input. (D-27)
fn refuse_options(module: &Module, input: &RunInput) -> Result<(), Failure> {
    let RunInput::Json(Value::Object(members)) = input else { return Ok(()) };
    let declared =
        module.contract.input().schema().get("properties").and_then(|members| members.get("_options"));
    if declared.is_some() || !members.contains_key("_options") {
        return Ok(());
    }
    Err(Failure::new(ErrorCode::InvalidInput, "agents cannot set `_options`")
        .suggest("Leave them out; the operator sets them by flags or in the configuration"))
}

/// Accepts a broken module, which can be validated; a missing one cannot.
fn accept_invalid(failure: Failure) -> Result<(), Failure> {
    if failure.code() == ErrorCode::ModuleNotFound { Err(failure) } else { Ok(()) }
}

/// Returns the module and the input of `cognitive_run`.
fn run_arguments(mut arguments: Map<String, Value>) -> Result<(String, RunInput), Failure> {
    let module = module_named(&arguments)?.to_owned();
    let input = match (arguments.shift_remove("input"), arguments.shift_remove("args")) {
        (None, Some(Value::String(text))) => RunInput::Text(text),
        (Some(input), None) => RunInput::Json(input),
        (None, None) => RunInput::Json(json!({})),
        (_, Some(_)) => {
            return Err(Failure::new(
                ErrorCode::InvalidInput,
                "`args` must be a string, and excludes `input`",
            )
            .suggest("Send `input` in the form that `cognitive_info` describes"));
        }
    };
    Ok((module, input))
}
