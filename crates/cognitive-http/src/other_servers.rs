//! What servers of one service tell each other. A stream is run by one of them, and its client may say at any that it wants no more
//! of it. A module that Studio changes at one is looked for by all, since they may share its folder. Nothing here waits for another server: who cannot be told is said to whoever asked.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::code::Blame;
use cognitive_contract::{ErrorCode, Failure};
use serde_json::json;

use crate::app::Shared;
use crate::response::UNSHARED;
use crate::shared_state::ServerWord;

/// How long a server that cannot hear the others waits before it tries again.
const DEAF: Duration = Duration::from_secs(1);

/// Does what other servers tell this one, for as long as it serves.
pub(crate) async fn heed(shared: &Shared) {
    let Some(state) = &shared.config.shared else { return std::future::pending().await };
    loop {
        match state.hear().await {
            Ok(ServerWord::CancelStream(id)) => {
                if let Some(session) = shared.sessions.run_here(&id) {
                    session.cancel(cancelled_by_client());
                }
            }
            Ok(ServerWord::ModulesChanged) => shared.mcp.look_again(),
            Err(reason) => {
                shared.config.complain(&format!("other servers cannot be heard: {reason}"));
                tokio::time::sleep(DEAF).await;
            }
        }
    }
}

/// Ends a stream that another server runs; `false` if this owner has none of this name.
pub(crate) async fn cancel_stream(shared: &Shared, id: &str, owner: &str) -> Result<bool, Failure> {
    let Some(state) = &shared.config.shared else { return Ok(false) };
    state.cancel_stream(id, owner).await.map_err(|reason| {
        shared.config.complain(&format!("a stream of another server cannot be ended: {reason}"));
        unshared("the server of this stream cannot be told to end it")
    })
}

/// Why something is refused that only all servers together can do.
pub(crate) fn unshared(message: &str) -> Failure {
    Failure::new(ErrorCode::ProviderUnavailable, message)
        .blaming(Blame::Runtime)
        .with_detail("kind", json!(UNSHARED))
        .suggest("Try again in a moment")
}

/// Has all servers look at their modules at once, this one first. One that does not hear of it looks by itself within a second or two.
pub(crate) fn tell_of_modules(shared: &Arc<Shared>) {
    shared.mcp.look_again();
    let Some(state) = shared.config.shared.clone() else { return };
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        if let Err(reason) = state.tell_of_modules().await {
            shared.config.complain(&format!("other servers are not told of a changed module: {reason}"));
        }
    });
}

/// Why a run ends whose client wants no more of it.
pub(crate) fn cancelled_by_client() -> Failure {
    Failure::cancelled("the run was cancelled by the client").suggest("Run it again")
}
