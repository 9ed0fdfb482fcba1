//! The ports of the runtime, as tests need them: no file, no network, and what was asked can be read afterwards.

mod audit;
mod context;
mod modules;
mod provider;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use audit::MemoryAuditLog;
pub use context::MemoryContext;
pub use modules::{FolderModule, LoadedModule, NamedModules, module_folder};
pub use provider::ScriptedProvider;

/// A list behind a lock is whole after a panic too: every change is one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
