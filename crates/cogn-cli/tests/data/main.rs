//! Labelled cases, golden tests and vectors: `cogn eval`, `cogn train`, `cogn test`, `cogn conformance`, and mutated envelopes and
//! modules.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod conformance;
mod eval;
mod golden;
mod labelled;
mod mutations;
#[cfg(feature = "local")]
mod train;

use cognitive_testkit::Home;

/// A home with nothing from this machine.
fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_cogn"))
}
