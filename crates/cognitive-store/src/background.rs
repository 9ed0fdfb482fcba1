//! An audit that is kept by a thread of its own, so that a busy server never waits for a disk, except for what has to be
//! safe before something happens: whoever waits for that waits without a thread, and all who wait at once share one
//! transaction. A queue that is full says so instead of growing.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use cognitive_contract::ports::{AuditLog, AuditRecord, DropCounts, PortFuture};
use serde_json::json;

use crate::acknowledgement::Acknowledgement;

/// Records of what happened in runs that may wait. Each is some kilobytes.
const DETAILS: usize = 4_096;
/// The same for records of runs, which are worth more. Calls are not counted: each of them has a run that waits for it.
const RUNS: usize = 4 * DETAILS;
/// Payloads that may wait. Each may be some megabytes; a record that comes later goes without.
const PAYLOADS: usize = 64;
/// The most that one transaction writes, so that nobody waits long for the first of them.
const BATCH: usize = 256;

/// An audit log in front of another. Everything that waits is written before it is gone.
#[derive(Debug)]
pub struct Background {
    books: InnerLog,
    queue: Arc<RecordQueue>,
    writer: Option<JoinHandle<()>>,
}

/// The log that is written to.
struct InnerLog(Arc<dyn AuditLog>);

impl std::fmt::Debug for InnerLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuditLog")
    }
}

/// Records that wait to be written.
#[derive(Debug, Default)]
struct RecordQueue {
    line: Mutex<RecordLine>,
    more: Condvar,
}

/// A record, and who wants to know when it is kept.
type QueuedRecord = (AuditRecord, Option<Arc<Acknowledgement<WriteOutcome>>>);

#[derive(Debug, Default)]
struct RecordLine {
    records: VecDeque<QueuedRecord>,
    payloads: usize,
    closed: bool,
}

impl Background {
    /// Writes into `books` from now on. `complain` hears why a record could not be kept, and that records begin to be
    /// dropped.
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

/// Writes a batch and tells everybody how that went.
fn write(
    books: &dyn AuditLog,
    batch: Vec<(AuditRecord, Option<Arc<Acknowledgement<WriteOutcome>>>)>,
    complain: &dyn Fn(String),
) {
    let (records, receipts): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
    let before = books.drop_counts();
    // Whoever waits must hear something, whatever happens here.
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

/// What is said when the limits of the audit are reached for the first time.
pub const DROPPING: &str = "the audit log has reached its limits: from now on the oldest records or payloads of an owner make \
    room for new ones; `cogn audit stats` counts them, `audit: {keep: …}` sets the limits";

impl RecordQueue {
    fn lock(&self) -> MutexGuard<'_, RecordLine> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(
        &self,
        mut record: AuditRecord,
        receipt: Option<Arc<Acknowledgement<WriteOutcome>>>,
    ) -> Result<(), String> {
        let mut line = self.lock();
        if line.closed {
            return Err("the audit log is closed".to_owned());
        }
        let most = if record.is_detail() { DETAILS } else { RUNS };
        if receipt.is_none() && line.records.len() >= most {
            return Err(format!("more than {most} records wait to be written"));
        }
        if record.payload.is_some() {
            if line.payloads >= PAYLOADS {
                record.payload =
                    Some(json!({ "omitted": format!("more than {PAYLOADS} payloads wait to be written") }));
            } else {
                line.payloads += 1;
            }
        }
        line.records.push_back((record, receipt));
        drop(line);
        self.more.notify_one();
        Ok(())
    }

    /// The next records to write; `None` when there will be no more.
    fn next(&self) -> Option<Vec<QueuedRecord>> {
        let line = self.lock();
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
        self.queue.lock().closed = true;
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

    /// Books that wait for leave, and refuse what is called `bad`.
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
