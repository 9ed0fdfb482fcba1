//! Cognitive Modules as tools of the Model Context Protocol (MCP): agents list modules, look into them and run them.
//!
//! A surface lends an [`McpDoor`]: the host that runs modules, and who may run what. [`McpServer`] answers every request of the
//! protocol with it, over the standard streams ([`serve_stdio`]) or over HTTP ([`McpHttp`]). Every run enters by
//! [`cognitive_runtime::run_until`]; what comes back is its envelope, as `structuredContent` and as the same text,
//! with a content block for each medium.
//!
//! Holds no rule about modules or envelopes, reads no file and no environment, writes nothing but the protocol. Asks no client
//! for a model (sampling), for folders (roots) or for logs: the protocol has given these up.

mod call;
mod door;
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

pub use door::{Admission, McpDoor, RunEnded};
pub use rmcp::model::Extensions;
pub use server::McpServer;
pub use surface::{DEFAULT_MAX_MODULE_TOOLS, ToolSurface};
pub use transports::{McpHttp, McpHttpService, serve_stdio};
