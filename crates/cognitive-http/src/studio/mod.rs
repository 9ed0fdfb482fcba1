//! Studio: the web page on which people try, compare, monitor, edit and review modules, and the API operations that
//! it needs. All operations are public, described in `/openapi.json`, and require a role. Runs have no special path
//! here: they enter through `run`, count against the same limits, and leave the same records.

pub(crate) mod assets;
pub(crate) mod body;
pub(crate) mod cases;
pub(crate) mod choice;
mod curl;
mod difference;
pub(crate) mod login;
pub(crate) mod logins;
pub(crate) mod models;
pub(crate) mod module_files;
pub(crate) mod preview;
pub(crate) mod replay;
pub(crate) mod replies;
pub(crate) mod reviews;
pub(crate) mod runs;
pub(crate) mod shared_logins;
