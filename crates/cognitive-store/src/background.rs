//! An audit log that writes in a background thread, so that a busy server never waits for the disk. Records that must
//! be durable before a run continues are awaited without blocking a thread, and waiting runs share one transaction. A
//! full queue refuses records instead of growing.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, PoisonError};
use std::thread::JoinHandle;

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
            while let Some(batch) = from.next() {
                write(to.as_ref(), batch, &complain);
            }
        };
        let writer = std::thread::Builder::new().name("audit".to_owned()).spawn(work)?;
        Ok(Self { books: InnerLog(books), queue, writer: Some(writer) })
    }
}

/// Writes a batch and reports the outcome to every waiter.
fn write(
    books: &dyn AuditLog,
    batch: Vec<(AuditRecord, Option<Arc<Acknowledgement<WriteOutcome>>>)>,
    complain: &dyn Fn(String),
) {
    let (records, receipts): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
    let before = books.drop_counts();
    // Every waiter must get an outcome, even after a panic.
    let kept = catch_unwind(AssertUnwindSafe(|| books.record_all(&records))).unwrap_or_default();
    let mut kept = kept.into_iter();
    for receipt in receipts {
        let outcome = kept.next().unwrap_or_else(|| Err("internal error of the audit log".to_owned()));
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
        let most = if record.is_detail() { DETAILS } else { RUNS };
        if receipt.is_none() && line.records.len() >= most {
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

    /// Waits for the next records to write; `None` after the last one.
    fn next(&self) -> Option<Vec<QueuedRecord>> {
        let line = self.line.lock();
        let mut line = self
            .more
            .wait_while(line, |line| line.records.is_empty() && !line.closed)
            .unwrap_or_else(PoisonError::into_inner);
        let count = line.records.len().min(BATCH);
        let batch: Vec<_> = line.records.drain(..count).collect();
        if line.records.is_empty() {
            line.payloads = 0;
        }
        (!batch.is_empty()).then_some(batch)
    }
}

type WriteOutcome = Result<(), String>;

impl AuditLog for Background {
    fn record(&self, record: &AuditRecord) -> Result<(), String> {
        self.queue.push(record.clone(), None)
    }

    fn commit<'a>(&'a self, record: &'a AuditRecord) -> PortFuture<'a, Result<(), String>> {
        let receipt = Arc::new(Acknowledgement::default());
        let queued = self.queue.push(record.clone(), Some(Arc::clone(&receipt)));
        Box::pin(async move {
            queued?;
            receipt.wait().await
        })
    }

    fn drop_counts(&self) -> DropCounts {
        self.books.0.drop_counts()
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
}
