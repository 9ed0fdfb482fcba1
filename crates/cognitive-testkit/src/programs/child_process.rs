//! A process that does not outlive its test.

#![expect(clippy::expect_used, clippy::missing_panics_doc, reason = "in a test, a panic is the report")]

use std::process::{Child, Command};

use crate::command;

/// A process that is killed when this value is dropped.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a command.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().expect("the program"))
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let sent = command("kill").args([&format!("-{name}"), &self.0.id().to_string()]).status();
        assert!(sent.expect("`kill`").success(), "the process is gone");
    }
}
