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
            // The module itself has no path; its own stages are reported above.
            Event::Part(part) if !part.path.is_empty() => {
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

#[cfg(test)]
mod tests {
    use cognitive_contract::trace::{PartEvent, PartState};

    use super::*;

    #[test]
    fn only_parts_with_a_name_are_reported() {
        let (mut sink, seen) = StageSink::new();
        sink.event(Event::Part(PartEvent::new("", PartState::Speaks, 0, 3)));
        assert_eq!(*seen.borrow(), "begin");
        sink.event(Event::Part(PartEvent::new("outer/inner", PartState::Finished, 1, 3)));
        assert!(seen.borrow().starts_with("outer/inner ") && seen.borrow().ends_with(", 1 of 3 done"));
    }
}
