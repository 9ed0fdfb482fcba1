//! Packages as users handle them: the program as a process, with a temporary project and home, and real registries, web
//! servers and git servers on this machine. After every attack, the files outside the module folder are compared with
//! those before. `packaging` is about the packages of the program itself.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

mod attacks;
mod git;
mod index;
mod kills;
mod local;
#[cfg(unix)]
mod packaging;
mod place;
mod registries;
mod web_server;
