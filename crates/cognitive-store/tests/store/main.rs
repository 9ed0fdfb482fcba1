//! The store on a real file system and on a real server, under good and bad conditions. One binary, so that `SQLite`
//! is linked once.

#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

mod archive;
mod audit;
mod chain;
mod child;
mod common;
mod context;
mod file;
mod group_commit;
mod processes;
mod review;
mod row_changes;
mod server;
mod spending;
mod trouble;
