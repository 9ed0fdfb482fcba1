//! The destinations of answers, reports and weights, as processes: a stdout that fails, files that cannot be written,
//! pipes without a reader, and exhausted file descriptors.

mod documents;
mod limits;
mod media_out;
mod migration;
mod stdout;
mod support;
mod targets;
