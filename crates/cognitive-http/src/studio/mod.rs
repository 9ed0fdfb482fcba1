//! Studio: the page on which people try, compare, watch, edit and judge modules, and the operations that it needs besides those
//! of every program. All of them are public, described in `/openapi.json`, and need a role. Nothing here runs a module in a
//! way of its own: what runs enters by `run`, counts against the same limits, and leaves the same records.

pub(crate) mod assets;
pub(crate) mod body;
pub(crate) mod cases;
pub(crate) mod choice;
mod curl;
pub(crate) mod described;
mod difference;
pub(crate) mod login;
pub(crate) mod logins;
pub(crate) mod models;
pub(crate) mod preview;
pub(crate) mod replay;
pub(crate) mod replies;
pub(crate) mod reviews;
pub(crate) mod runs;
pub(crate) mod shared_logins;
pub(crate) mod workbench;
