//! Money: what a run can cost is known before it begins, and it never costs more, whatever a model does.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

mod bundled;
mod drawn;
mod hostile;
mod limits;
mod stub;
