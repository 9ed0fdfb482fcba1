//! The protocol as clients see it: lines of JSON over a pipe, in both revisions, against modules from memory.

mod calls;
mod harness;
mod lists;
mod tasks;
