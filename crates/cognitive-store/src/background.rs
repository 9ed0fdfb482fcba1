//! Books that are kept by a thread of their own, so that a busy server never waits for a disk.
//! A record counts as kept when it is in the queue; a queue that is full says so instead of growing.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use cognitive_contract::ports::{AuditLog, AuditRecord};

/// Records that may wait. Each is some kilobytes.
const WAITING: usize = 4_096;

/// An audit log in front of another. Everything that waits is written before it is gone.
#[derive(Debug)]
pub struct Background {
    queue: Option<SyncSender<AuditRecord>>,
    writer: Option<JoinHandle<()>>,
}

impl Background {
    /// Writes into `books` from now on. `complain` hears why a record could not be kept.
    pub fn new(
        books: Arc<dyn AuditLog>,
        complain: impl Fn(String) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (queue, waiting) = sync_channel::<AuditRecord>(WAITING);
        let writer = std::thread::Builder::new().name("books".to_owned()).spawn(move || {
            for record in waiting {
                if let Err(reason) = books.record(&record) {
                    complain(reason);
                }
            }
        })?;
        Ok(Self { queue: Some(queue), writer: Some(writer) })
    }
}

impl AuditLog for Background {
    fn record(&self, record: &AuditRecord) -> Result<(), String> {
        let Some(queue) = &self.queue else { return Err("the books are closed".to_owned()) };
        queue.try_send(record.clone()).map_err(|refused| match refused {
            TrySendError::Full(_) => format!("more than {WAITING} records wait to be written"),
            TrySendError::Disconnected(_) => "the books are closed".to_owned(),
        })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Without a queue the writer comes to its end; a writer that panicked has nothing left to write.
        self.queue = None;
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
        assert_eq!(heard.recv().unwrap(), "refused");
    }

    #[test]
    fn a_full_queue_says_so() {
        let (leave, wait) = channel();
        let books = Arc::new(Slow(Mutex::new(wait), Mutex::default()));
        let background = Background::new(books, |_| {}).unwrap();
        let outcomes: Vec<_> = (0..WAITING + 2).map(|_| background.record(&record("a"))).collect();
        assert!(outcomes.iter().any(Result::is_err));
        drop(leave);
    }
}
