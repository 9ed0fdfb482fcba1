//! Cognitive Modules as tools of the Model Context Protocol (MCP): agents list modules, read their descriptions and
//! run them.
//!
//! A surface implements [`McpBackend`], which provides the host that runs modules and the permissions of clients.
//! [`McpServer`] answers every request of the protocol with it, over stdio ([`serve_stdio`]) or HTTP ([`McpHttp`]).
//! Every run enters through [`cognitive_runtime::run_until`]. Its envelope is returned as `structuredContent` and as
//! text, with a content block for each media item.
//!
//! Contains no rules about modules or envelopes, reads no file and no environment variable, and writes only protocol
//! messages. Never asks a client for a model (sampling), folders (roots) or logs: the protocol has discontinued
//! these.
//!
//! # Modules
//!
//! - The protocol: `server` dispatches every request, `transports` has stdio and HTTP, `backend` is the interface to a
//!   surface.
//! - Tools: `surface` selects the tools that a client sees, `module_tool` describes a module as a tool, `search_tools`
//!   has the four tools for servers with many modules.
//! - Calls: `call` runs a tool, `result` builds its result, `suggestion` rewords hints for agents, `progress` reports
//!   progress.
//! - Further: `list_changes` (notifies clients of changed tools), `prompts` and `resources`.

mod backend;
mod call;
mod list_changes;
mod module_tool;
mod progress;
mod prompts;
mod resources;
mod result;
mod search_tools;
mod server;
mod suggestion;
mod surface;
mod transports;

pub use backend::{Admission, AdmissionFuture, McpBackend, RunEnded};
pub use rmcp::model::Extensions;
pub use server::McpServer;
pub use surface::{DEFAULT_MAX_MODULE_TOOLS, ToolSurface};
pub use transports::{McpHttp, McpHttpService, serve_stdio};
