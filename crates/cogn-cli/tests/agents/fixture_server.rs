//! The server features that the conformance suite needs and the product does not have: tools that send requests to the
//! client, prompts and resources with given names. The handler forwards everything else to the real [`McpServer`], over
//! the transport of `/mcp`. Tasks of modules are those of the real server, started earlier, because the suite does not
//! wait ten seconds.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::Failure;
use cognitive_contract::ports::{
    CallSink, DecodeMode, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
};
use cognitive_mcp::{Admission, AdmissionFuture, Extensions, McpBackend, McpServer, ToolSurface};
use cognitive_runtime::{Host, RunOptions};
use cognitive_testkit::{NamedModules, module_folder};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, GetPromptRequestParams, GetPromptResponse,
    GetTaskParams, GetTaskResult, ListPromptsResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerConfig, SubscriptionFilter, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};

use crate::fixture_content::{prompt, resource};
use crate::fixture_tools::FixtureTools;
use crate::project::FixtureModule;

/// Long enough for a model that answers at once, short enough for the suite.
const TASK_AFTER: Duration = Duration::from_millis(500);

/// A model with the delay that its input names; it answers for the modules of `real_server`.
#[derive(Debug)]
struct PacedModel(Vec<(&'static str, String)>);

impl Provider for PacedModel {
    fn name(&self) -> &'static str {
        "paced"
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            let seconds = call.input.split_once("\"seconds\":").map_or("0", |(_, rest)| rest.trim_start());
            let digits: String = seconds.chars().take_while(char::is_ascii_digit).collect();
            let least = u64::from(call.module == "failing_job");
            tokio::time::sleep(Duration::from_secs(digits.parse().unwrap_or(0).max(least))).await;
            let (_, reply) = self.0.iter().find(|(name, _)| *name == call.module).unwrap();
            sink.piece(reply);
            Ok(ModelEnd::complete("m", DecodeMode::Prompt))
        })
    }
}

struct FixtureBackend(Host);

impl McpBackend for FixtureBackend {
    fn host(&self) -> &Host {
        &self.0
    }

    fn admit<'a>(&'a self, _: &'a Extensions) -> AdmissionFuture<'a> {
        Box::pin(async { Ok(Admission::new(RunOptions::default())) })
    }

    fn findings(&self, name: &str) -> Result<Value, Failure> {
        Ok(json!({ "module": name, "valid": true, "findings": [] }))
    }
}

/// Returns the real server, with the modules that the task scenarios call.
fn real_server() -> McpServer {
    let modules = [FixtureModule::new("slow_compute", json!({})), FixtureModule::failing("failing_job")];
    let loaded = modules.iter().map(|each| {
        let folder = module_folder(&each.manifest(), &each.schema(), &each.prompt());
        (each.name.to_owned(), Arc::new(cognitive_library::load(&folder).unwrap()))
    });
    let source = NamedModules(loaded.collect());
    let model = PacedModel(modules.iter().map(|each| (each.name, each.reply())).collect());
    let backend = FixtureBackend(Host::new(Arc::new(source), Arc::new(model)));
    McpServer::new(Arc::new(backend), ToolSurface::All).with_tasks_after(TASK_AFTER)
}

#[derive(Clone)]
struct FixtureServer {
    real: McpServer,
    tools: FixtureTools,
}

impl ServerHandler for FixtureServer {
    fn get_info(&self) -> ServerConfig {
        self.real.get_info()
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.real.list_tools(page, context).await?;
        listed.tools.extend(FixtureTools::list());
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match self.tools.answer(&request, &context).await? {
            Some(response) => Ok(response),
            None => self.real.call_tool(request, context).await,
        }
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.real.list_prompts(page, context).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        match prompt(&request) {
            Some(response) => Ok(response),
            None => self.real.get_prompt(request, context).await,
        }
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match resource(&request.uri) {
            Some(response) => Ok(response),
            None => self.real.read_resource(request, context).await,
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.real.accepted_subscription_filter(requested)
    }

    /// The real server polls its folders once a second. The suite changes the list by a call and does not wait that
    /// long.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.tools.changes.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                told = changes.changed() => told.unwrap(),
            }
            let _ = context.sink().notify_tool_list_changed().await;
            let _ = context.sink().notify_prompt_list_changed().await;
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.real.on_initialized(context).await;
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        match self.tools.tasks.get_task(&request.task_id) {
            Ok(task) => Ok(GetTaskResult::new(task)),
            Err(_) => self.real.get_task(request, context).await,
        }
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.tools.tasks.get_task(&request.task_id).is_ok() {
            return self.tools.tasks.update_task(&request.task_id, request.input_responses);
        }
        self.real.update_task(request, context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match self.tools.tasks.cancel_task(&request.task_id) {
            Ok(()) => Ok(()),
            Err(_) => self.real.cancel_task(request, context).await,
        }
    }
}

/// Serves on loopback until it is dropped with its runtime.
pub(crate) struct FixtureServing {
    pub(crate) url: String,
    _runtime: tokio::runtime::Runtime,
}

impl FixtureServing {
    pub(crate) fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let server = FixtureServer { real: real_server(), tools: FixtureTools::default() };
        let config = StreamableHttpServerConfig::default();
        let sessions = Arc::new(LocalSessionManager::default());
        let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
        let router = axum::Router::new().route_service("/mcp", service);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url, _runtime: runtime }
    }
}
