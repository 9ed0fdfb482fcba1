//! What a client hears while a run goes on: which stage it is at, which parts of a composition have begun and ended, and at least
//! every so often that it is still alive. Clients give up after a minute of silence, and a model may take longer. Sends nothing to
//! a client that gave no token.

use std::borrow::Cow;
use std::time::Duration;

use cognitive_contract::ports::{Event, EventSink};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::sync::watch;

/// The longest silence.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The shortest time between two messages, so that a composition of many parts does not flood its client.
const REST: Duration = Duration::from_secs(1);
/// So many messages come without a rest: most runs are over by then, and people see at once what they have begun.
const AT_ONCE: u8 = 8;

/// What the run is at, in the words that a client shows.
type Doing = Cow<'static, str>;

/// Hears the stages and the parts of a run.
#[derive(Debug)]
pub(crate) struct StageSink(watch::Sender<Doing>);

impl StageSink {
    /// The sink, and what says at which stage the run is.
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

/// Tells the client how the run goes on, until it is dropped. Never ends by itself.
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
        // A client that is gone is noticed by whoever writes the answer.
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
