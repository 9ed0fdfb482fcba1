//! `cogn run --stream`: prints the answer while it is generated, as one chunk per line or as text for users.
//! Adds the parts that need a clock: heartbeats, and timeouts for slow or silent streams (S-04).

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cognitive_contract::ports::{Event, EventSink};
use cognitive_contract::stream::Chunk;
use cognitive_contract::trace::{PartEvent, PartState, Trace};
use cognitive_contract::{Envelope, ErrorCode, Failure};
use cognitive_runtime::{Delivery, Host, RunRequest, Stream};
use cognitive_setup::async_runtime;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::reader;
use super::run::AnswerReader;
use super::stop::StopSignal;
use super::trace::Keeper;
use crate::printer::Printer;
use crate::{platform, view};

/// The form of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StreamForm {
    /// One chunk as JSON per line
    Ndjson,
    /// The rationale as it grows, then a card
    Text,
}

/// The timeouts of a stream (S-04).
#[derive(Debug, Clone, Copy)]
struct StreamLimits {
    first_token: Duration,
    silence: Duration,
    total: Duration,
    /// The silence after which an empty chunk is sent as a heartbeat (STREAM-006).
    heartbeat: Duration,
    look: Duration,
}

/// The maximum duration of a stream. Without it, a model that writes without end would hold the terminal and cost
/// without end.
pub(super) const MAX_STREAM: Duration = Duration::from_mins(5);

const LIMITS: StreamLimits = StreamLimits {
    first_token: Duration::from_secs(30),
    silence: Duration::from_mins(1),
    total: MAX_STREAM,
    heartbeat: Duration::from_secs(15),
    look: Duration::from_millis(250),
};

/// The field that is shown to users while it grows.
const SHOWN: &str = "data.rationale";

/// Runs the module and prints chunks; returns the envelope and whether the user cancelled the run.
pub(super) fn run(
    prepared: Result<(Arc<Host>, RunRequest), Failure>,
    form: StreamForm,
    module: &str,
    answer_reader: AnswerReader,
    printer: &Printer,
) -> (Envelope, Option<StopSignal>, Option<Trace>) {
    let clock = StreamClock::new();
    let show = |chunk: Chunk| {
        clock.mark_sent();
        match form {
            StreamForm::Ndjson => printer.line(&serde_json::to_string(&chunk).unwrap_or_default()),
            StreamForm::Text => show_text(&chunk, printer),
        }
    };
    let mut stream = Stream::new(show);
    let (envelope, whole, cancelled, trace) = match prepared {
        Err(failure) => (stream.fail(failure), false, None, None),
        Ok((host, request)) => execute(&mut stream, &host, request, &clock, (form, answer_reader), printer),
    };
    match form {
        StreamForm::Ndjson if whole => printer.line(&serde_json::to_string(&envelope).unwrap_or_default()),
        StreamForm::Ndjson => {}
        StreamForm::Text => {
            printer.print_line("\n");
            for line in view::after_rationale(module, &envelope, printer.width()) {
                printer.print_line(line);
            }
        }
    }
    (envelope, cancelled, trace)
}

fn execute(
    stream: &mut Stream<'_>,
    host: &Host,
    request: RunRequest,
    clock: &StreamClock,
    (form, answer_reader): (StreamForm, AnswerReader),
    printer: &Printer,
) -> (Envelope, bool, Option<StopSignal>, Option<Trace>) {
    let runtime = match async_runtime::on_this_thread() {
        Ok(runtime) => runtime,
        Err(failure) => return (stream.fail(failure), false, None, None),
    };
    let beat = || {
        if form == StreamForm::Ndjson {
            printer.line("{}");
        }
    };
    runtime.block_on(async {
        let mut times = OutputTimes(clock);
        let cancelled = Cell::new(None);
        let stop = async {
            tokio::select! {
                failure = overdue(clock, LIMITS, beat) => failure,
                () = reader::reader_gone(printer), if answer_reader == AnswerReader::Stdout => reader::reader_gone_failure(),
                signal = platform::stop_signal() => {
                    cancelled.set(Some(signal));
                    signal.failure()
                }
            }
        };
        let mut keeper = Keeper::new(&mut times);
        let delivery = stream.run_until(host, request, &mut keeper, stop).await;
        let whole = matches!(delivery, Delivery::Whole(_));
        (delivery.into_envelope(), whole, cancelled.get(), keeper.into_trace())
    })
}

fn show_text(chunk: &Chunk, printer: &Printer) {
    match chunk {
        Chunk::Delta { field, delta, .. } if field == SHOWN => printer.piece(delta),
        // The printed text is obsolete; the new text starts on a new line.
        Chunk::Snapshot { data, .. } if data.is_empty() => printer.piece("\n"),
        _ => {}
    }
}

/// The times of the last input and output, in milliseconds since the start.
struct StreamClock {
    start: Instant,
    heard: AtomicU64,
    spoken: AtomicBool,
    sent: AtomicU64,
    open: AtomicBool,
}

impl StreamClock {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            heard: AtomicU64::new(0),
            spoken: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            open: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn mark_sent(&self) {
        self.sent.store(self.now(), Ordering::Relaxed);
        self.open.store(true, Ordering::Relaxed);
    }

    fn since(&self, last: &AtomicU64) -> Duration {
        Duration::from_millis(self.now().saturating_sub(last.load(Ordering::Relaxed)))
    }

    /// Returns the reason why the stream timed out, if it did.
    fn overdue(&self, limits: StreamLimits) -> Option<Failure> {
        let spoken = self.spoken.load(Ordering::Relaxed);
        let silence = if spoken { limits.silence } else { limits.first_token };
        let (limit, what) = if self.start.elapsed() >= limits.total {
            (limits.total, "the stream took longer than")
        } else if self.since(&self.heard) >= silence {
            (silence, "the model was silent for")
        } else {
            return None;
        };
        let message = format!("{what} {} seconds", limit.as_secs());
        Some(Failure::new(ErrorCode::StreamTimeout, message).suggest("Run it again, or without `--stream`"))
    }

    /// Returns whether a heartbeat is due.
    fn beat_is_due(&self, limits: StreamLimits) -> bool {
        let due = self.open.load(Ordering::Relaxed) && self.since(&self.sent) >= limits.heartbeat;
        if due {
            self.mark_sent();
        }
        due
    }
}

/// Records the time of model output.
struct OutputTimes<'a>(&'a StreamClock);

impl EventSink for OutputTimes<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Text(_) | Event::Part(PartEvent { state: PartState::Speaks, .. }) => {
                self.0.spoken.store(true, Ordering::Relaxed);
            }
            // Each call gets the full time until its first token.
            Event::Stage(_) => self.0.spoken.store(false, Ordering::Relaxed),
            _ => {}
        }
        self.0.heard.store(self.0.now(), Ordering::Relaxed);
    }
}

/// Resolves when a stream times out, and sends heartbeats while it is silent.
async fn overdue(clock: &StreamClock, limits: StreamLimits, mut beat: impl FnMut()) -> Failure {
    let mut look = interval(limits.look);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        if let Some(failure) = clock.overdue(limits) {
            return failure;
        }
        if clock.beat_is_due(limits) {
            beat();
        }
    }
}

#[cfg(test)]
mod tests {
    use cognitive_contract::ports::Stage;

    use super::*;

    /// Runs on a paused clock that skips idle time.
    fn wait(opened: bool, limits: StreamLimits) -> (String, usize, Duration) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let clock = StreamClock::new();
            if opened {
                clock.mark_sent();
            }
            let mut beats = 0;
            let failure = overdue(&clock, limits, || beats += 1).await;
            let why = format!("{} {}", failure.code().number(), failure.message());
            (why, beats, clock.start.elapsed())
        })
    }

    // C-12, STREAM-022: a timeout is E2011.
    #[test]
    fn stream_022_s_04_silence_and_length_end_a_stream_with_e2011() {
        let (why, beats, after) = wait(false, LIMITS);
        assert_eq!(why, "E2011 the model was silent for 30 seconds");
        assert_eq!((beats, after.as_secs()), (0, 30), "a heartbeat is never first");
        let patient = StreamLimits { first_token: Duration::from_hours(1), ..LIMITS };
        let (why, _, after) = wait(false, patient);
        assert_eq!(why, "E2011 the stream took longer than 300 seconds");
        assert_eq!(after.as_secs(), 300);
    }

    #[test]
    fn stream_006_a_silence_is_filled_with_heartbeats() {
        let patient = StreamLimits { first_token: Duration::from_hours(1), ..LIMITS };
        assert_eq!(wait(true, patient).1, 19, "every 15 seconds, but not at the end");
    }

    #[test]
    fn s_04_the_first_token_ends_the_first_limit_and_each_call_begins_anew() {
        let clock = StreamClock::new();
        let mut times = OutputTimes(&clock);
        times.event(Event::Text("x"));
        assert!(clock.overdue(StreamLimits { first_token: Duration::ZERO, ..LIMITS }).is_none());
        times.event(Event::Stage(Stage::Call));
        assert!(clock.overdue(StreamLimits { first_token: Duration::ZERO, ..LIMITS }).is_some());
    }
}
