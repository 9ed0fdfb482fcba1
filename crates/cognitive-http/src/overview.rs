//! What is told about all modules at once: their list, their description, how many there are. Each is made of one piece per
//! module, and a piece is made anew only when its module changed; what changed is told by a look at the folders, which
//! happens so seldom that looking never keeps the server busy. Puts no module on the shelf of those that are run.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use cognitive_contract::Failure;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::app::Shared;
use crate::catalog::beside;

/// How long a look at the folders is good for, at least.
const FRESH: Duration = Duration::from_secs(1);
/// How much longer than it took a look is good for, so that looking takes at most a tenth of a processor.
const REST: u32 = 10;
/// The count of modules that nobody has counted.
const UNKNOWN: usize = usize::MAX;

/// All modules at one moment.
#[derive(Debug)]
pub(crate) struct Marks {
    all: Vec<(String, Option<u64>)>,
    /// Another one if anything is.
    version: u64,
}

/// The last look at the folders.
#[derive(Debug)]
pub(crate) struct LastLook {
    looked: Mutex<Option<(Instant, Duration, Arc<Marks>)>>,
    count: AtomicUsize,
    /// Makes a version out of marks that nobody knows.
    looks: AtomicU64,
}

impl Default for LastLook {
    fn default() -> Self {
        let looked = Mutex::new(None);
        Self { looked, count: AtomicUsize::new(UNKNOWN), looks: AtomicU64::new(0) }
    }
}

impl Shared {
    /// All modules, as they were a moment ago. One looks for all who ask.
    async fn marks(self: &Arc<Self>) -> Result<Arc<Marks>, Failure> {
        let mut looked = self.overview.looked.lock().await;
        if let Some((at, took, marks)) = looked.as_ref()
            && at.elapsed() < FRESH.max(*took * REST)
        {
            return Ok(Arc::clone(marks));
        }
        let (took, marks) = beside(self, &self.catalog.lists, |shared| {
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

    /// How many modules there were at the last look. Waits for nothing but the very first one; the next look is taken
    /// beside, so that whoever watches over the server costs it the same however many modules it has.
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

/// How something is told of all modules.
pub(crate) trait PerModule: Send + Sync + 'static {
    /// What is kept of one module.
    type Piece: Send + 'static;

    /// The piece of one module.
    fn piece(shared: &Shared, name: &str) -> Self::Piece;

    /// All pieces together, in the order of the names.
    fn together(shared: &Shared, pieces: &[&Self::Piece]) -> Told;
}

/// What was made of all pieces.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) text: Bytes,
    /// The largest body that any module takes.
    pub(crate) most_taken: usize,
    /// Another one for every other text.
    pub(crate) version: u64,
}

type Pieces<T> = HashMap<String, (Option<u64>, <T as PerModule>::Piece)>;

/// What was told last, and the pieces of it.
pub(crate) struct Renewed<T: PerModule>(Mutex<(Pieces<T>, Option<Told>)>);

impl<T: PerModule> Default for Renewed<T> {
    fn default() -> Self {
        Self(Mutex::new((HashMap::new(), None)))
    }
}

impl<T: PerModule> Renewed<T> {
    /// What there is to tell, made anew only as far as something changed.
    pub(crate) async fn get(&self, shared: &Arc<Shared>) -> Result<Told, Failure> {
        let marks = shared.marks().await?;
        let mut kept = self.0.lock().await;
        if let Some(told) = kept.1.as_ref().filter(|told| told.version == marks.version) {
            return Ok(told.clone());
        }
        let before = std::mem::take(&mut kept.0);
        let made = beside(shared, &shared.catalog.lists, move |shared| renewed::<T>(shared, &marks, before));
        let (pieces, told) = made.await?;
        *kept = (pieces, Some(told.clone()));
        Ok(told)
    }
}

fn renewed<T: PerModule>(shared: &Shared, marks: &Marks, mut before: Pieces<T>) -> (Pieces<T>, Told) {
    let mut pieces = HashMap::with_capacity(marks.all.len());
    for (name, mark) in &marks.all {
        let kept = before.remove(name).filter(|(before, _)| mark.is_some() && before == mark);
        let piece = kept.map_or_else(|| T::piece(shared, name), |(_, piece)| piece);
        pieces.insert(name.clone(), (*mark, piece));
    }
    let in_order: Vec<&T::Piece> =
        marks.all.iter().filter_map(|(name, _)| pieces.get(name).map(|(_, piece)| piece)).collect();
    let told = Told { version: marks.version, ..T::together(shared, &in_order) };
    (pieces, told)
}
