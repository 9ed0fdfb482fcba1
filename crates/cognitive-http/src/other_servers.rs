//! Messages between the servers of one service. A stream runs on one server, but its client may cancel it at any of
//! them. A module that Studio changes at one server is reloaded by all, since they may share its folder. Nothing here
//! waits for another server: if a message cannot be delivered, the caller gets a failure.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::code::Blame;
use cognitive_contract::{ErrorCode, Failure};
use serde_json::json;

use crate::app::AppState;
use crate::response::UNSHARED;
use crate::shared_state::ServerWord;

/// The pause before retrying after messages of other servers could not be received. Without it, an unavailable Redis
/// would keep a processor busy.
const DEAF: Duration = Duration::from_secs(1);

/// Handles messages of other servers for as long as this one serves.
pub(crate) async fn follow_servers(shared: &AppState) {
    let Some(state) = &shared.config.shared else { return std::future::pending().await };
    loop {
        match state.hear().await {
            Ok(ServerWord::CancelStream(id)) => {
                if let Some(session) = shared.sessions.local_stream(&id) {
                    session.cancel(cancelled_by_client());
                }
            }
            Ok(ServerWord::ModulesChanged) => shared.mcp.rescan(),
            Err(reason) => {
                shared.config.complain(&format!("cannot receive messages of other servers: {reason}"));
                tokio::time::sleep(DEAF).await;
            }
        }
    }
}

/// Cancels a stream that another server runs; `false` if this owner has no stream with this id.
pub(crate) async fn cancel_stream(shared: &AppState, id: &str, owner: &str) -> Result<bool, Failure> {
    let Some(state) = &shared.config.shared else { return Ok(false) };
    state.cancel_stream(id, owner).await.map_err(|reason| {
        shared.config.complain(&format!("cannot cancel a stream of another server: {reason}"));
        state_unavailable("cannot cancel this stream: the shared state is unavailable")
    })
}

/// The failure for an operation that needs the shared state while it is unavailable.
pub(crate) fn state_unavailable(message: &str) -> Failure {
    Failure::new(ErrorCode::ProviderUnavailable, message)
        .with_blame(Blame::Runtime)
        .with_detail("kind", json!(UNSHARED))
        .suggest("Try again in a moment")
}

/// Makes all servers check their modules now, this one first. A server that misses the message finds the change
/// within a second or two.
pub(crate) fn tell_of_modules(shared: &Arc<AppState>) {
    shared.mcp.rescan();
    let Some(state) = shared.config.shared.clone() else { return };
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        if let Err(reason) = state.tell_of_modules().await {
            shared.config.complain(&format!("cannot tell other servers about a changed module: {reason}"));
        }
    });
}

/// The failure of a run that its client cancelled.
pub(crate) fn cancelled_by_client() -> Failure {
    Failure::cancellation("the run was cancelled by the client").suggest("Run it again")
}
