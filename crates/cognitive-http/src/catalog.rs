//! Modules as requests see them, one by one; `overview` has all of them. Whatever may walk through folders does so beside the
//! threads that serve, and only so often: a caller must not be able to keep the server busy with looking.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use cognitive_contract::text::is_plain_name;
use cognitive_contract::{ErrorCode, Failure, Module};
use tokio::sync::Semaphore;

use crate::app::Shared;

/// Searches at once.
const SEARCHES: usize = 2;
/// Names that are remembered; more modules than this are looked for beside the serving threads every time.
const NAMES: usize = 10_000;

/// What is known about the modules without looking.
#[derive(Debug)]
pub(crate) struct Catalog {
    /// Names of modules that were there. Whether they still are costs a few looks at one folder.
    seen: Mutex<HashSet<String>>,
    searches: Arc<Semaphore>,
    /// Lists have places of their own: who watches over the server does not wait behind those who guess names.
    pub(crate) lists: Arc<Semaphore>,
}

impl Default for Catalog {
    fn default() -> Self {
        let places = || Arc::new(Semaphore::new(SEARCHES));
        Self { seen: Mutex::default(), searches: places(), lists: places() }
    }
}

impl Catalog {
    fn with_seen<T>(&self, act: impl FnOnce(&mut HashSet<String>) -> T) -> T {
        act(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Does something slow beside the threads that serve.
pub(crate) async fn beside<T: Send + 'static>(
    shared: &Arc<Shared>,
    places: &Arc<Semaphore>,
    act: impl FnOnce(&Shared) -> T + Send + 'static,
) -> Result<T, Failure> {
    let fault = |_| Failure::new(ErrorCode::InternalError, "the modules cannot be read");
    // The place is taken until the work is done, even if the client goes away meanwhile.
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

impl Shared {
    /// Whether callers may know of a module. One that is not offered is answered as one that is not there.
    pub(crate) fn offers(&self, name: &str) -> bool {
        self.config.offers.as_ref().is_none_or(|offers| offers(name))
    }

    /// A module by its name. A path, which the command line takes as well, is none: a caller from outside has no
    /// business with other folders.
    pub(crate) async fn module(self: &Arc<Self>, name: &str) -> Result<Arc<Module>, Failure> {
        if !is_plain_name(name) || !self.offers(name) {
            return Err(no_module(name));
        }
        if self.catalog.with_seen(|seen| seen.contains(name)) {
            let found = self.host.modules.module(name);
            if found.is_err() {
                self.catalog.with_seen(|seen| seen.remove(name));
            }
            return found;
        }
        let wanted = name.to_owned();
        let found =
            beside(self, &self.catalog.searches, move |shared| shared.host.modules.module(&wanted)).await??;
        self.catalog.with_seen(|seen| {
            if seen.len() < NAMES {
                seen.insert(name.to_owned());
            }
        });
        Ok(found)
    }
}

/// There is no module by this name, which is repeated only in part.
pub(crate) fn no_module(name: &str) -> Failure {
    let name = cognitive_contract::text::cut(name, 128);
    Failure::new(ErrorCode::ModuleNotFound, format!("module not found: `{name}`"))
        .suggest("`GET /api/modules` lists what is offered")
}
