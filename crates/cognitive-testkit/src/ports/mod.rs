//! The ports of the runtime for tests: no file, no network, and every request can be inspected afterwards.

mod audit;
mod context;
mod fake_provider;
mod modules;
mod provider;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use audit::MemoryAuditLog;
pub use context::MemoryContext;
pub use fake_provider::{FakeProvider, complete};
pub use modules::{FolderModule, LoadedModule, NamedModules, loaded_module, module_folder, open_schema};
pub use provider::ScriptedProvider;

/// A panic leaves no half-changed list, because every change is one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
