//! An audit log that writes in a background thread, so that a busy server never waits for the disk. Records that must
//! be durable before a run continues are awaited without blocking a thread, and waiting runs share one transaction. A
//! full queue refuses records instead of growing.
//!
//! While the log behind it cannot be written, records are refused at once, so that only the runs of the first failed
//! transaction wait for its timeout. Every record that is refused or fails is counted as lost.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use cognitive_contract::lock::Lock;
use cognitive_contract::ports::{AuditLog, AuditRecord, DropCounts, PortFuture};
use serde_json::json;

use crate::acknowledgement::Acknowledgement;

/// The queue length at which detail records are refused. A record has some kilobytes.
const DETAILS: usize = 4_096;
/// The queue length at which run records are refused; higher, because they are worth more. Records that a run waits
/// for are never refused.
const RUNS: usize = 4 * DETAILS;
/// The most payloads in the queue. Each may have some megabytes; later records are queued without theirs.
const PAYLOADS: usize = 64;
/// The most records of one transaction, to bound the wait for the first of them.
const BATCH: usize = 256;
/// The pause between two checks of a log that could not be written.
const PROBE: Duration = Duration::from_secs(1);

/// An audit log in front of another. On drop, all queued records are written.
#[derive(Debug)]
pub struct Background {
    books: InnerLog,
    queue: Arc<RecordQueue>,
    writer: Option<JoinHandle<()>>,
}

/// The inner log.
struct InnerLog(Arc<dyn AuditLog>);

impl std::fmt::Debug for InnerLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuditLog")
    }
}

/// The queue of records to write.
#[derive(Debug, Default)]
struct RecordQueue {
    line: Lock<RecordLine>,
    more: Condvar,
}

/// A record, and the acknowledgement for its waiter.
type QueuedRecord = (AuditRecord, Option<Arc<Acknowledgement<WriteOutcome>>>);

#[derive(Debug, Default)]
struct RecordLine {
    records: VecDeque<QueuedRecord>,
    payloads: usize,
    closed: bool,
    /// The reason why records are refused: the log could not be written, and no check has succeeded since.
    outage: Option<String>,
    /// The number of lost records.
    lost: u64,
}

/// The next work of the writer.
enum WriterTask {
    Write(Vec<QueuedRecord>),
    Check,
}

impl Background {
    /// Starts to write into `books`. `complain` receives write errors, and a notice when records begin to be dropped.
    pub fn new(
        books: Arc<dyn AuditLog>,
        complain: impl Fn(String) + Send + 'static,
    ) -> std::io::Result<Self> {
        let queue = Arc::new(RecordQueue::default());
        let (to, from) = (Arc::clone(&books), Arc::clone(&queue));
        let work = move || {
            while let Some(task) = from.next() {
                match task {
                    WriterTask::Write(batch) => write(to.as_ref(), &from, batch, &complain),
                    WriterTask::Check => check(to.as_ref(), &from, &complain),
                }
            }
        };
        let writer = std::thread::Builder::new().name("audit".to_owned()).spawn(work)?;
        Ok(Self { books: InnerLog(books), queue, writer: Some(writer) })
    }
}

/// Writes a batch and reports the outcome to every waiter. If the log cannot be written at all, the queue refuses
/// records from now on.
fn write(books: &dyn AuditLog, queue: &RecordQueue, batch: Vec<QueuedRecord>, complain: &dyn Fn(String)) {
    let (records, receipts): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
    let before = books.drop_counts();
    // Every waiter must get an outcome, even after a panic.
    let kept = catch_unwind(AssertUnwindSafe(|| books.record_all(&records))).unwrap_or_default();
    let lost = receipts.len() - kept.iter().filter(|outcome| outcome.is_ok()).count();
    if lost > 0 {
        queue.lose(lost, check_outcome(books).err());
    }
    let mut kept = kept.into_iter();
    for receipt in receipts {
        let outcome = kept.next().unwrap_or_else(|| Err(PANICKED.to_owned()));
        if let Err(reason) = &outcome {
            complain(format!("a run was not recorded: {reason}"));
        }
        if let Some(receipt) = receipt {
            receipt.give(outcome);
        }
    }
    if books.drop_counts().owners > before.owners {
        complain(DROPPING.to_owned());
    }
}

/// Looks whether the log can be written again, and if so ends the outage.
fn check(books: &dyn AuditLog, queue: &RecordQueue, complain: &dyn Fn(String)) {
    if check_outcome(books).is_ok() {
        queue.line.lock().outage = None;
        complain(RECORDING_AGAIN.to_owned());
    }
}

/// The outcome of a check, also if it panics.
fn check_outcome(books: &dyn AuditLog) -> WriteOutcome {
    catch_unwind(AssertUnwindSafe(|| books.check())).unwrap_or_else(|_| Err(PANICKED.to_owned()))
}

const PANICKED: &str = "internal error of the audit log";

/// The notice at the end of an outage.
const RECORDING_AGAIN: &str =
    "runs are recorded again; the metric `cogn_audit_lost_total` counts lost records";

/// The notice for the first time that the limits of the audit are reached.
pub const DROPPING: &str = "the audit log has reached its limits: from now on, retention drops the oldest \
     records or payloads of an owner; `cogn audit stats` counts them, `audit: {keep: …}` sets the limits";

impl RecordQueue {
    fn push(
        &self,
        mut record: AuditRecord,
        receipt: Option<Arc<Acknowledgement<WriteOutcome>>>,
    ) -> Result<(), String> {
        let mut line = self.line.lock();
        if line.closed {
            return Err("the audit log is closed".to_owned());
        }
        if let Some(reason) = line.outage.clone() {
            line.lost += 1;
            return Err(reason);
        }
        let most = if record.is_detail() { DETAILS } else { RUNS };
        if receipt.is_none() && line.records.len() >= most {
            line.lost += 1;
            return Err(format!("more than {most} records are waiting to be written"));
        }
        if record.payload.is_some() {
            if line.payloads >= PAYLOADS {
                record.payload = Some(
                    json!({ "omitted": format!("more than {PAYLOADS} payloads are waiting to be written") }),
                );
            } else {
                line.payloads += 1;
            }
        }
        line.records.push_back((record, receipt));
        drop(line);
        self.more.notify_one();
        Ok(())
    }

    /// Counts lost records. With the reason of an outage, records are refused until the log can be written again; those
    /// in the queue wait for that too.
    fn lose(&self, count: usize, outage: Option<String>) {
        let mut line = self.line.lock();
        line.lost += count as u64;
        if let Some(reason) = outage {
            let (waiting, kept): (Vec<_>, Vec<_>) =
                line.records.drain(..).partition(|(_, receipt)| receipt.is_some());
            line.records = kept.into();
            line.lost += waiting.len() as u64;
            for receipt in waiting.into_iter().filter_map(|(_, receipt)| receipt) {
                receipt.give(Err(reason.clone()));
            }
            line.outage = Some(reason);
        }
    }

    /// Waits for the next work; `None` after the last record. During an outage, records are written only at the end.
    fn next(&self) -> Option<WriterTask> {
        let line = self.line.lock();
        let mut line = if line.outage.is_some() {
            let (line, waited) = self
                .more
                .wait_timeout_while(line, PROBE, |line| !line.closed)
                .unwrap_or_else(PoisonError::into_inner);
            if waited.timed_out() {
                return Some(WriterTask::Check);
            }
            line
        } else {
            let is_idle = |line: &mut RecordLine| line.records.is_empty() && !line.closed;
            self.more.wait_while(line, is_idle).unwrap_or_else(PoisonError::into_inner)
        };
        let count = line.records.len().min(BATCH);
        let batch: Vec<_> = line.records.drain(..count).collect();
        if line.records.is_empty() {
            line.payloads = 0;
        }
        (!batch.is_empty()).then_some(WriterTask::Write(batch))
    }
}

type WriteOutcome = Result<(), String>;

impl AuditLog for Background {
    fn record(&self, record: &AuditRecord) -> Result<(), String> {
        self.queue.push(record.clone(), None)
    }

    fn submit(&self, record: AuditRecord) -> Result<(), String> {
        self.queue.push(record, None)
    }

    fn check(&self) -> Result<(), String> {
        self.queue.line.lock().outage.clone().map_or(Ok(()), Err)
    }

    fn commit(&self, record: AuditRecord) -> PortFuture<'_, Result<(), String>> {
        let receipt = Arc::new(Acknowledgement::default());
        let queued = self.queue.push(record, Some(Arc::clone(&receipt)));
        Box::pin(async move {
            queued?;
            receipt.wait().await
        })
    }

    fn drop_counts(&self) -> DropCounts {
        let mut counts = self.books.0.drop_counts();
        counts.lost += self.queue.line.lock().lost;
        counts
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.queue.line.lock().closed = true;
        self.queue.more.notify_all();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::time::SystemTime;

    use cognitive_contract::{ErrorCode, Failure};

    use super::*;

    /// An audit log that waits for permission, and refuses the module `bad`.
    struct Slow(Mutex<std::sync::mpsc::Receiver<()>>, Mutex<Vec<String>>);

    impl AuditLog for Slow {
        fn record(&self, record: &AuditRecord) -> Result<(), String> {
            let _ = self.0.lock().unwrap().recv();
            if record.module == "bad" {
                return Err("refused".to_owned());
            }
            self.1.lock().unwrap().push(record.module.clone());
            Ok(())
        }
    }

    fn record(module: &str) -> AuditRecord {
        let envelope = Failure::new(ErrorCode::Timeout, "m").into_envelope();
        AuditRecord::new(SystemTime::UNIX_EPOCH, "t", module, &envelope)
    }

    #[test]
    fn nothing_waits_for_the_disk_and_nothing_is_lost_at_the_end() {
        let (leave, wait) = channel();
        let books = Arc::new(Slow(Mutex::new(wait), Mutex::default()));
        let (complain, heard) = channel();
        let background = Background::new(Arc::clone(&books) as Arc<dyn AuditLog>, move |reason| {
            complain.send(reason).unwrap();
        })
        .unwrap();
        for module in ["a", "bad", "b"] {
            background.record(&record(module)).unwrap();
        }
        assert!(books.1.lock().unwrap().is_empty(), "the books have no leave yet");
        for _ in 0..3 {
            leave.send(()).unwrap();
        }
        drop(background);
        assert_eq!(*books.1.lock().unwrap(), ["a", "b"]);
        assert_eq!(heard.recv().unwrap(), "a run was not recorded: refused");
    }

    #[test]
    fn a_full_queue_says_so() {
        let (leave, wait) = channel();
        let books = Arc::new(Slow(Mutex::new(wait), Mutex::default()));
        let background = Background::new(books, |_| {}).unwrap();
        let outcomes: Vec<_> = (0..RUNS + BATCH + 2).map(|_| background.record(&record("a"))).collect();
        assert!(outcomes.iter().any(Result::is_err));
        drop(leave);
    }

    /// An audit log that an outage interrupts, and that counts how often it was asked.
    #[derive(Default)]
    struct Interrupted {
        is_out: AtomicBool,
        asked: AtomicUsize,
    }

    impl AuditLog for Interrupted {
        fn record(&self, _: &AuditRecord) -> Result<(), String> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.check()
        }

        fn check(&self) -> Result<(), String> {
            if self.is_out.load(Ordering::SeqCst) { Err("gone".to_owned()) } else { Ok(()) }
        }
    }

    fn wait<T>(future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        let waker = std::task::Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
                std::task::Poll::Ready(value) => return value,
                std::task::Poll::Pending => std::thread::park(),
            }
        }
    }

    struct Unpark(std::thread::Thread);

    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    // Only the first run waits for a log that cannot be written. Each lost record is an error for its run and counted.
    #[test]
    fn during_an_outage_records_are_refused_at_once_and_counted() {
        let books = Arc::new(Interrupted::default());
        let (complain, heard) = channel();
        let background = Background::new(Arc::clone(&books) as Arc<dyn AuditLog>, move |reason| {
            complain.send(reason).unwrap();
        })
        .unwrap();
        wait(background.commit(record("a"))).unwrap();
        assert_eq!((background.check(), background.drop_counts().lost), (Ok(()), 0));
        books.is_out.store(true, Ordering::SeqCst);
        assert_eq!(wait(background.commit(record("a"))), Err("gone".to_owned()));
        assert_eq!(books.asked.load(Ordering::SeqCst), 2);
        // The part of a composition, and its end record.
        assert_eq!(wait(background.commit(record("a"))), Err("gone".to_owned()));
        assert_eq!(background.record(&record("a")), Err("gone".to_owned()));
        assert_eq!(background.submit(record("a")), Err("gone".to_owned()));
        assert_eq!(books.asked.load(Ordering::SeqCst), 2, "the log is not asked during an outage");
        assert_eq!((background.check(), background.drop_counts().lost), (Err("gone".to_owned()), 4));
        assert_eq!(heard.recv().unwrap(), "a run was not recorded: gone");
        books.is_out.store(false, Ordering::SeqCst);
        assert_eq!(heard.recv().unwrap(), RECORDING_AGAIN);
        wait(background.commit(record("a"))).unwrap();
        assert_eq!((background.check(), background.drop_counts().lost), (Ok(()), 4));
    }

    #[test]
    fn what_was_queued_before_an_outage_is_written_after_it() {
        let queue = RecordQueue::default();
        let receipt = Arc::new(Acknowledgement::default());
        queue.push(record("a"), None).unwrap();
        queue.push(record("b"), Some(Arc::clone(&receipt))).unwrap();
        queue.lose(1, Some("gone".to_owned()));
        assert_eq!(
            wait(receipt.wait()),
            Err("gone".to_owned()),
            "a run does not wait for the end of an outage"
        );
        assert_eq!(queue.line.lock().lost, 2);
        queue.line.lock().outage = None;
        let Some(WriterTask::Write(batch)) = queue.next() else { unreachable!() };
        assert_eq!(batch.iter().map(|(record, _)| record.module.as_str()).collect::<Vec<_>>(), ["a"]);
    }
}
