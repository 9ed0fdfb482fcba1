//! Finds modules for requests, one at a time; `overview` covers all of them. Folder searches run outside the serving
//! threads and are limited in number: a caller must not be able to keep the server busy with searches.

use std::collections::HashSet;
use std::sync::Arc;

use cognitive_contract::lock::Lock;
use cognitive_contract::text::is_plain_name;
use cognitive_contract::{ErrorCode, Failure, Module};
use tokio::sync::Semaphore;

use crate::app::AppState;
use crate::auth::Client;

/// Searches at once. Each search reads folders and occupies a thread.
const SEARCHES: usize = 2;
/// The limit of remembered names. Modules beyond it are searched for outside the serving threads every time.
const NAMES: usize = 10_000;

/// The module names known without a search.
#[derive(Debug)]
pub(crate) struct Catalog {
    /// Names of modules found before. Checking that one still exists takes a few reads of one folder.
    seen: Lock<HashSet<String>>,
    searches: Arc<Semaphore>,
    /// Separate permits for lists, so that monitoring does not wait behind clients that guess names.
    pub(crate) lists: Arc<Semaphore>,
}

impl Default for Catalog {
    fn default() -> Self {
        let places = || Arc::new(Semaphore::new(SEARCHES));
        Self { seen: Lock::default(), searches: places(), lists: places() }
    }
}

impl Catalog {
    fn with_seen_sessions<T>(&self, act: impl FnOnce(&mut HashSet<String>) -> T) -> T {
        act(&mut self.seen.lock())
    }
}

/// Runs slow work outside the serving threads.
pub(crate) async fn run_blocking<T: Send + 'static>(
    shared: &Arc<AppState>,
    places: &Arc<Semaphore>,
    act: impl FnOnce(&AppState) -> T + Send + 'static,
) -> Result<T, Failure> {
    let fault = |_| Failure::new(ErrorCode::InternalError, "the modules cannot be read");
    // The permit is held until the work is done, even if the client disconnects meanwhile.
    let place = Arc::clone(places)
        .acquire_owned()
        .await
        .map_err(|_| Failure::new(ErrorCode::InternalError, "the modules can no longer be read"))?;
    let shared = Arc::clone(shared);
    let work = tokio::task::spawn_blocking(move || {
        let outcome = act(&shared);
        drop(place);
        outcome
    });
    work.await.map_err(fault)
}

/// Runs work of an author with module files outside the serving threads, when it is the turn of its key.
pub(crate) async fn author_work<T: Send + 'static>(
    shared: &Arc<AppState>,
    client: &Client,
    act: impl FnOnce(&AppState) -> T + Send + 'static,
) -> Result<T, Failure> {
    let place = shared.authors.enter(&client.name).await?;
    let shared = Arc::clone(shared);
    let work = tokio::task::spawn_blocking(move || {
        // The place is held until the work is done, even if the client disconnects meanwhile.
        let _place = place;
        act(&shared)
    });
    work.await.map_err(|_| Failure::new(ErrorCode::InternalError, "the modules cannot be read"))
}

impl AppState {
    /// Returns whether callers may see a module. One that is not offered is treated as missing.
    pub(crate) fn offers(&self, name: &str) -> bool {
        self.config.offers.as_ref().is_none_or(|offers| offers(name))
    }

    /// Finds a module by its name. Paths, which the command line accepts, are refused: a remote caller must not reach
    /// other folders.
    pub(crate) async fn module(self: &Arc<Self>, name: &str) -> Result<Arc<Module>, Failure> {
        if !is_plain_name(name) || !self.offers(name) {
            return Err(no_module(name));
        }
        if self.catalog.with_seen_sessions(|seen| seen.contains(name)) {
            let found = self.host.modules.module(name);
            if found.is_err() {
                self.catalog.with_seen_sessions(|seen| seen.remove(name));
            }
            return found;
        }
        let wanted = name.to_owned();
        let found =
            run_blocking(self, &self.catalog.searches, move |shared| shared.host.modules.module(&wanted))
                .await??;
        self.catalog.with_seen_sessions(|seen| {
            if seen.len() < NAMES {
                seen.insert(name.to_owned());
            }
        });
        Ok(found)
    }
}

/// The failure for a missing module. Repeats the name only in part.
pub(crate) fn no_module(name: &str) -> Failure {
    let name = cognitive_contract::text::cut(name, 128);
    Failure::new(ErrorCode::ModuleNotFound, format!("module not found: `{name}`"))
        .suggest("`GET /api/modules` lists the modules")
}
