//! Notifies clients when the list of tools changes because an author adds, removes or changes a module. Scans the
//! folders periodically and only while a client listens. A caller that has changed a module can trigger a scan at
//! once.

use std::sync::Arc;
use std::time::Duration;

use rmcp::service::{Peer, RoleServer, SubscriptionContext};

use crate::backend::McpBackend;
use crate::surface::{Offer, Offers};

/// The scan interval. Shorter ones would keep the disk busy, and users notice no difference.
const LOOK: Duration = Duration::from_secs(1);

/// Resolves with the new offer when its tools differ from the known ones.
async fn next_change(backend: &Arc<dyn McpBackend>, offers: &Arc<Offers>, known: &Arc<Offer>) -> Arc<Offer> {
    let mut hints = offers.hints();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = hints.changed() => {}
        }
        let now = current_offer(backend, offers).await;
        if now.as_ref().is_some_and(|now| now.tools != known.tools)
            && let Some(now) = now
        {
            return now;
        }
    }
}

/// Returns the current offer, read outside the serving threads.
pub(crate) async fn current_offer(backend: &Arc<dyn McpBackend>, offers: &Arc<Offers>) -> Option<Arc<Offer>> {
    let (backend, offers) = (Arc::clone(backend), Arc::clone(offers));
    tokio::task::spawn_blocking(move || offers.now(&*backend)).await.ok()
}

/// Returns the offer that a new listener has seen. Starting from the current one would miss a change between its list
/// request and the first scan.
async fn shown_offer(backend: &Arc<dyn McpBackend>, offers: &Arc<Offers>) -> Option<Arc<Offer>> {
    let (backend, offers) = (Arc::clone(backend), Arc::clone(offers));
    tokio::task::spawn_blocking(move || offers.shown_offer(&*backend)).await.ok()
}

/// Notifies a client of the older protocol revisions until it disconnects.
pub(crate) async fn tell_session(backend: Arc<dyn McpBackend>, offers: Arc<Offers>, peer: Peer<RoleServer>) {
    let Some(mut known) = shown_offer(&backend, &offers).await else { return };
    while !peer.is_transport_closed() {
        let Ok(now) = tokio::time::timeout(LOOK * 10, next_change(&backend, &offers, &known)).await else {
            continue;
        };
        known = now;
        let told = [peer.notify_tool_list_changed().await, peer.notify_prompt_list_changed().await];
        if told.iter().any(Result::is_err) {
            return;
        }
    }
}

/// Notifies a subscribed client until it unsubscribes.
pub(crate) async fn tell_subscriber(
    backend: Arc<dyn McpBackend>,
    offers: Arc<Offers>,
    context: SubscriptionContext,
) {
    let Some(mut known) = shown_offer(&backend, &offers).await else { return };
    loop {
        tokio::select! {
            () = context.cancelled() => return,
            now = next_change(&backend, &offers, &known) => known = now,
        }
        // The sink refuses notifications that the client did not subscribe to; that is no error.
        let _ = context.sink().notify_tool_list_changed().await;
        let _ = context.sink().notify_prompt_list_changed().await;
        let _ = context.sink().notify_resource_list_changed().await;
    }
}
