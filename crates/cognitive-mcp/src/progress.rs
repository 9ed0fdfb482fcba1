//! What a client hears while a run goes on: which stage it is at, and at least every so often that it is still alive. Clients
//! give up after a minute of silence, and a model may take longer. Sends nothing to a client that gave no token.

use std::time::Duration;

use cognitive_contract::ports::{Event, EventSink};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::sync::watch;

/// The longest silence.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The shortest time between two messages, so that a composition of many parts does not flood its client.
const REST: Duration = Duration::from_secs(1);

/// Hears the stages of a run.
#[derive(Debug)]
pub(crate) struct StageSink(watch::Sender<&'static str>);

impl StageSink {
    /// The sink, and what says at which stage the run is.
    pub(crate) fn new() -> (Self, watch::Receiver<&'static str>) {
        let (sender, receiver) = watch::channel("begin");
        (Self(sender), receiver)
    }
}

impl EventSink for StageSink {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Stage(stage) = event {
            self.0.send_replace(stage.as_str());
        }
    }
}

/// Tells the client how the run goes on, until it is dropped. Never ends by itself.
pub(crate) async fn report(
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    mut stage: watch::Receiver<&'static str>,
) -> std::convert::Infallible {
    let Some(token) = token else { return std::future::pending().await };
    let mut count = 0.0;
    loop {
        let message = *stage.borrow_and_update();
        let progress = ProgressNotificationParam::new(token.clone(), count).with_message(message);
        // A client that is gone is noticed by whoever writes the answer.
        let _ = peer.notify_progress(progress).await;
        count += 1.0;
        tokio::time::sleep(REST).await;
        tokio::select! {
            changed = stage.changed() => if changed.is_err() { return std::future::pending().await },
            () = tokio::time::sleep(HEARTBEAT) => {}
        }
    }
}
