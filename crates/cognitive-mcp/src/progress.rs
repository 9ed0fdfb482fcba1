//! Progress notifications during a run: its stage, the start and end of the parts of a composition, and a periodic
//! heartbeat. Clients time out after a minute of silence, and a model may take longer. Sends nothing to a client
//! without a progress token.

use std::borrow::Cow;
use std::time::Duration;

use cognitive_contract::ports::{Event, EventSink};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::sync::watch;

/// The longest silence. Clients end calls that stay silent for too long.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The shortest time between two messages, so that a composition of many parts does not flood its client.
const REST: Duration = Duration::from_secs(1);
/// The number of first messages without that pause: most runs are over by then, and users see at once that a run has
/// started.
const AT_ONCE: u8 = 8;

/// The current activity of a run, as shown by clients.
type Doing = Cow<'static, str>;

/// Receives the stages and parts of a run.
#[derive(Debug)]
pub(crate) struct StageSink(watch::Sender<Doing>);

impl StageSink {
    /// Creates the sink, and a receiver for the current activity.
    pub(crate) fn new() -> (Self, watch::Receiver<Doing>) {
        let (sender, receiver) = watch::channel(Cow::Borrowed("begin"));
        (Self(sender), receiver)
    }
}

impl EventSink for StageSink {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Stage(stage) => self.0.send_replace(Cow::Borrowed(stage.as_str())),
            Event::Part(part) => {
                let (path, state) = (part.path, part.state.word());
                self.0.send_replace(Cow::Owned(format!("{path} {state}, {} of {} done", part.done, part.of)))
            }
            _ => return,
        };
    }
}

/// Sends progress to the client until it is dropped. Never returns.
pub(crate) async fn report(
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    mut stage: watch::Receiver<Doing>,
) -> std::convert::Infallible {
    let Some(token) = token else { return std::future::pending().await };
    let mut count = 0.0;
    let mut at_once = AT_ONCE;
    loop {
        let message = stage.borrow_and_update().clone();
        let progress = ProgressNotificationParam::new(token.clone(), count).with_message(message);
        // The code that writes the response detects a disconnected client.
        let _ = peer.notify_progress(progress).await;
        count += 1.0;
        match at_once.checked_sub(1) {
            Some(left) => at_once = left,
            None => tokio::time::sleep(REST).await,
        }
        tokio::select! {
            changed = stage.changed() => if changed.is_err() { return std::future::pending().await },
            () = tokio::time::sleep(HEARTBEAT) => {}
        }
    }
}
