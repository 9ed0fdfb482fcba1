//! The command line: what each command prints, writes and returns, how it reads its options and its input, and what a hostile folder
//! cannot make it do. `surfaces` and `matrix` compare the surfaces of the program with each other.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod cli;
mod compose;
mod context;
#[cfg(unix)]
mod files;
mod hostile;
mod import;
mod matrix;
mod options;
mod stream;
mod surfaces;
mod types;
#[cfg(unix)]
mod untrusted;

use cognitive_testkit::Home;

/// A home with nothing from this machine.
fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_cogn"))
}
