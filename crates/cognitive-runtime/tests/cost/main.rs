//! Cost limits: the worst case of a run is known before it starts, and no run exceeds it, whatever a model does.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

mod bundled;
mod hostile;
mod limits;
mod random_modules;
mod stub;
