//! Many runs and their records: labelled cases, golden tests, vectors, mutated envelopes and modules, batches, reviews, and the audit.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod batch;
mod conformance;
mod eval;
mod golden;
mod labelled;
mod mutations;
#[cfg(unix)]
mod review;
#[cfg(unix)]
mod trail;
#[cfg(feature = "local")]
mod train;

use cognitive_testkit::Home;

/// A home with nothing from this machine.
fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_cogn"))
}
