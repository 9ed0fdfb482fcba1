//! Packages as users handle them: the program as a process, with a project and a home of its own, a real registry, real web and git
//! servers on this machine. Whatever an attacker sends, the tree outside of the folder of modules is compared before and after.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

mod attacks;
mod git;
mod index;
mod kills;
mod local;
mod place;
mod registries;
mod web_server;
