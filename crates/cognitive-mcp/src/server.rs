//! The MCP server: dispatches every request of the protocol to the module that answers it.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, GetPromptRequestParams, GetPromptResponse,
    GetTaskParams, GetTaskResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, SubscriptionFilter, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::{ErrorData, ServerHandler};
use tokio::sync::Semaphore;

use crate::backend::McpBackend;
use crate::call::{LOOKS, TASK_AFTER, ToolRunner};
use crate::surface::{Offer, Offers, ToolSurface};
use crate::{list_changes, prompts, resources};

/// The instructions for clients on all tools.
const INSTRUCTIONS: &str = "Each module is one AI task with a contract. A call answers with an envelope: \
    `meta` says how sure the module is, how risky the answer is and why; `data` is the answer, `data.rationale` \
    its reasons. A failure has `error` with a code and a suggestion.";

/// A server of the Model Context Protocol. Cheap to clone; clones share their tasks.
#[derive(Clone)]
pub struct McpServer {
    offers: Arc<Offers>,
    runner: ToolRunner,
}

impl McpServer {
    /// Creates a server that offers the modules of a door.
    #[must_use]
    pub fn new(backend: Arc<dyn McpBackend>, surface: ToolSurface) -> Self {
        let places = Arc::new(Semaphore::new(LOOKS));
        let runner = ToolRunner { backend, tasks: TaskManager::new(), task_after: TASK_AFTER, places };
        Self { offers: Arc::new(Offers::new(surface)), runner }
    }

    /// Turns every run that takes longer than `wait` into a task, for clients that support tasks.
    #[must_use]
    pub fn with_tasks_after(mut self, wait: Duration) -> Self {
        self.runner.task_after = wait;
        self
    }

    /// Triggers a scan of the modules after one was changed. Clients are notified if their list differs.
    pub fn rescan(&self) {
        self.offers.mark_outdated();
    }

    /// Returns the answer of `tools/list` as JSON, for measuring its size.
    #[must_use]
    pub fn tools_as_json(&self) -> serde_json::Value {
        let tools = &self.offers.now(&*self.runner.backend).tools;
        serde_json::json!({ "tools": tools })
    }

    async fn offer(&self) -> Result<Arc<Offer>, ErrorData> {
        let offer = list_changes::current_offer(&self.runner.backend, &self.offers).await;
        offer.ok_or_else(|| ErrorData::internal_error("the modules cannot be read", None))
    }
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").finish_non_exhaustive()
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("cogn", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.offer().await?.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let offer = self.offer().await?;
        self.runner.answer(&offer, request, context).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(resources::list(&*self.offer().await?))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(Arc::clone(&self.runner.backend), self.offer().await?, request).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(prompts::list(&*self.offer().await?))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&*self.offer().await?, &request)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // All list changes can be subscribed to; single resources are not monitored.
        let mut accepted = requested.clone();
        accepted.resource_subscriptions = None;
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        list_changes::tell_subscriber(Arc::clone(&self.runner.backend), Arc::clone(&self.offers), context)
            .await;
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (backend, offers) = (Arc::clone(&self.runner.backend), Arc::clone(&self.offers));
        tokio::spawn(list_changes::tell_session(backend, offers, context.peer));
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.runner.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.runner.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.runner.tasks.cancel_task(&request.task_id)
    }
}
