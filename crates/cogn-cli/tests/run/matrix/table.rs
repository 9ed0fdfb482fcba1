//! A table of cells. All of them run, some at once, and each failed one is reported.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// The cells that run at once: most of them wait for processes and time limits.
const AT_ONCE: usize = 12;

/// A cell: its name, and its test. `Ok(false)` if its surface is not on this machine.
struct Cell<'a> {
    name: String,
    test: Box<dyn FnOnce() -> Result<bool, String> + Send + 'a>,
}

/// The cells to run.
pub(super) struct Table<'a> {
    name: &'static str,
    cells: Vec<Cell<'a>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, cells: Vec::new() }
    }

    pub(super) fn cell(&mut self, name: String, test: impl FnOnce() -> Result<bool, String> + Send + 'a) {
        self.cells.push(Cell { name, test: Box::new(test) });
    }

    /// Runs every cell and prints their number. Panics if any failed.
    pub(super) fn run(self) {
        let (cells, results) = (Mutex::new(self.cells), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let next = cells.lock().unwrap().pop();
                        let Some(Cell { name, test }) = next else { break };
                        let result = catch_unwind(AssertUnwindSafe(test));
                        let result = result.unwrap_or_else(|panic| Err(message(&*panic)));
                        results.lock().unwrap().push((name, result));
                    }
                });
            }
        });
        let results = results.into_inner().unwrap();
        let ran = results.iter().filter(|(_, result)| *result != Ok(false)).count();
        let mut failed: Vec<String> = results
            .iter()
            .filter_map(|(name, result)| result.as_ref().err().map(|why| format!("{name}: {why}")))
            .collect();
        failed.sort();
        println!("{}: {ran} cells, {} failed", self.name, failed.len());
        assert!(failed.is_empty(), "{} of {ran} cells of {}: {failed:#?}", failed.len(), self.name);
    }
}

/// The message of a panic.
pub(super) fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
