//! Cached overviews of all modules: their list, their description and their count. Each consists of one piece per
//! module, and a piece is rebuilt only when its module changes. Changes are detected by scanning the folders, rarely
//! enough never to keep the server busy. Loads no module into the cache of modules that are run.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use cognitive_contract::Failure;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::app::AppState;
use crate::catalog::run_blocking;

/// The minimum validity of a scan.
const FRESH: Duration = Duration::from_secs(1);
/// The validity of a scan as a multiple of its duration, so that scanning takes at most a tenth of a processor.
const REST: u32 = 10;
/// The count before the first scan.
const UNKNOWN: usize = usize::MAX;

/// All modules at one point in time.
#[derive(Debug)]
pub(crate) struct Marks {
    all: Vec<(String, Option<u64>)>,
    /// A hash that differs whenever any module differs.
    version: u64,
}

/// The result of the last scan.
#[derive(Debug)]
pub(crate) struct LastLook {
    looked: Mutex<Option<(Instant, Duration, Arc<Marks>)>>,
    count: AtomicUsize,
    /// Makes versions unique when the stamps of some modules are unknown.
    looks: AtomicU64,
}

impl Default for LastLook {
    fn default() -> Self {
        let looked = Mutex::new(None);
        Self { looked, count: AtomicUsize::new(UNKNOWN), looks: AtomicU64::new(0) }
    }
}

impl AppState {
    /// Returns all modules as of the last scan. Concurrent callers share one scan.
    async fn marks(self: &Arc<Self>) -> Result<Arc<Marks>, Failure> {
        let mut looked = self.overview.looked.lock().await;
        if let Some((at, took, marks)) = looked.as_ref()
            && at.elapsed() < FRESH.max(*took * REST)
        {
            return Ok(Arc::clone(marks));
        }
        let (took, marks) = run_blocking(self, &self.catalog.lists, |shared| {
            let started = Instant::now();
            let mut all = shared.host.modules.marks();
            all.retain(|(name, _)| shared.offers(name));
            (started.elapsed(), Marks { version: shared.overview.version(&all), all })
        })
        .await?;
        self.overview.count.store(marks.all.len(), Ordering::Relaxed);
        let marks = Arc::new(marks);
        *looked = Some((Instant::now(), took, Arc::clone(&marks)));
        Ok(marks)
    }

    /// Returns the number of modules at the last scan. Waits only for the very first scan; later ones run in the
    /// background. The cost for monitoring therefore does not depend on the number of modules.
    pub(crate) async fn modules_count(self: &Arc<Self>) -> Result<usize, Failure> {
        match self.overview.count.load(Ordering::Relaxed) {
            UNKNOWN => Ok(self.marks().await?.all.len()),
            known => {
                if self.overview.looked.try_lock().is_ok() {
                    let shared = Arc::clone(self);
                    tokio::spawn(async move { shared.marks().await.map(drop) });
                }
                Ok(known)
            }
        }
    }
}

impl LastLook {
    fn version(&self, all: &[(String, Option<u64>)]) -> u64 {
        let mut hasher = DefaultHasher::new();
        all.hash(&mut hasher);
        if all.iter().any(|(_, mark)| mark.is_none()) {
            self.looks.fetch_add(1, Ordering::Relaxed).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// An overview of all modules, built from one piece per module.
pub(crate) trait PerModule: Send + Sync + 'static {
    /// The cached data of one module.
    type Piece: Send + 'static;

    /// Builds the piece of one module.
    fn piece(shared: &AppState, name: &str) -> Self::Piece;

    /// Combines all pieces, in the order of the names.
    fn combine(shared: &AppState, pieces: &[&Self::Piece]) -> CombinedOverview;
}

/// The combined overview.
#[derive(Debug, Clone)]
pub(crate) struct CombinedOverview {
    pub(crate) text: Bytes,
    /// The largest body limit of any module.
    pub(crate) most_taken: usize,
    /// Differs for every other text.
    pub(crate) version: u64,
}

type Pieces<T> = HashMap<String, (Option<u64>, <T as PerModule>::Piece)>;

/// The pieces of the last overview, and the overview itself.
pub(crate) struct OverviewCache<T: PerModule>(Mutex<(Pieces<T>, Option<CombinedOverview>)>);

impl<T: PerModule> Default for OverviewCache<T> {
    fn default() -> Self {
        Self(Mutex::new((HashMap::new(), None)))
    }
}

impl<T: PerModule> OverviewCache<T> {
    /// Returns the overview, rebuilt only for modules that changed.
    pub(crate) async fn get(&self, shared: &Arc<AppState>) -> Result<CombinedOverview, Failure> {
        let marks = shared.marks().await?;
        let mut kept = self.0.lock().await;
        if let Some(told) = kept.1.as_ref().filter(|told| told.version == marks.version) {
            return Ok(told.clone());
        }
        let before = std::mem::take(&mut kept.0);
        let made = run_blocking(shared, &shared.catalog.lists, move |shared| {
            renew_pieces::<T>(shared, &marks, before)
        });
        let (pieces, told) = made.await?;
        *kept = (pieces, Some(told.clone()));
        Ok(told)
    }
}

fn renew_pieces<T: PerModule>(
    shared: &AppState,
    marks: &Marks,
    mut before: Pieces<T>,
) -> (Pieces<T>, CombinedOverview) {
    let mut pieces = HashMap::with_capacity(marks.all.len());
    for (name, mark) in &marks.all {
        let kept = before.remove(name).filter(|(before, _)| mark.is_some() && before == mark);
        let piece = kept.map_or_else(|| T::piece(shared, name), |(_, piece)| piece);
        pieces.insert(name.clone(), (*mark, piece));
    }
    let in_order: Vec<&T::Piece> =
        marks.all.iter().filter_map(|(name, _)| pieces.get(name).map(|(_, piece)| piece)).collect();
    let told = CombinedOverview { version: marks.version, ..T::combine(shared, &in_order) };
    (pieces, told)
}
