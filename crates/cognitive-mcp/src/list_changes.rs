//! Tells clients that the list of tools has changed, when an author adds, removes or changes a module. The folders are looked
//! at every so often and only while a client listens; who has changed one may say so, and then they are looked at at once.

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{Peer, RoleServer, SubscriptionContext};

use crate::door::McpDoor;
use crate::surface::{Offer, Offers};

/// How often the folders are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Resolves with the new offer when it is another one than this.
async fn changed(door: &Arc<dyn McpDoor>, offers: &Arc<Offers>, known: &Arc<Offer>) -> Arc<Offer> {
    let mut hints = offers.hints();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = hints.changed() => {}
        }
        let now = current(door, offers).await;
        if now.as_ref().is_some_and(|now| now.tools != known.tools)
            && let Some(now) = now
        {
            return now;
        }
    }
}

/// The offer as the modules are now, read beside the threads that serve.
pub(crate) async fn current(door: &Arc<dyn McpDoor>, offers: &Arc<Offers>) -> Option<Arc<Offer>> {
    let (door, offers) = (Arc::clone(door), Arc::clone(offers));
    tokio::task::spawn_blocking(move || offers.now(&*door)).await.ok()
}

/// What a client that begins to listen has seen: a change between its list and its first look would be told to nobody.
async fn shown(door: &Arc<dyn McpDoor>, offers: &Arc<Offers>) -> Option<Arc<Offer>> {
    let (door, offers) = (Arc::clone(door), Arc::clone(offers));
    tokio::task::spawn_blocking(move || offers.shown(&*door)).await.ok()
}

/// Tells a client of the older revisions, until it is gone.
pub(crate) async fn tell_session(door: Arc<dyn McpDoor>, offers: Arc<Offers>, peer: Peer<RoleServer>) {
    let Some(mut known) = shown(&door, &offers).await else { return };
    while !peer.is_transport_closed() {
        let Ok(now) = tokio::time::timeout(LOOK * 10, changed(&door, &offers, &known)).await else {
            continue;
        };
        known = now;
        let told = [peer.notify_tool_list_changed().await, peer.notify_prompt_list_changed().await];
        if told.iter().any(Result::is_err) {
            return;
        }
    }
}

/// Tells a client that listens, until it stops.
pub(crate) async fn tell_subscriber(
    door: Arc<dyn McpDoor>,
    offers: Arc<Offers>,
    context: SubscriptionContext,
) {
    let Some(mut known) = shown(&door, &offers).await else { return };
    loop {
        tokio::select! {
            () = context.cancelled() => return,
            now = changed(&door, &offers, &known) => known = now,
        }
        // What the client did not ask for is refused by the sink, which is fine.
        let _ = context.sink().notify_tool_list_changed().await;
        let _ = context.sink().notify_prompt_list_changed().await;
        let _ = context.sink().notify_resource_list_changed().await;
    }
}
