//! The database of this user: the audit and kept context, which are one file or one database on a server. Opens it, and says why it cannot.
//! Without the feature `store` nothing is recorded and nothing is kept.

use std::sync::Arc;

use cognitive_contract::archive::RunArchive;
use cognitive_contract::ports::{AuditLog, ContextStore, PortFuture};
use cognitive_contract::review::{
    CalibrationReport, Decided, DeskError, NewDecision, Review, ReviewDesk, ReviewEntry, ReviewExport,
    ReviewFilter, ReviewPage,
};
use cognitive_contract::spending::SpendingLedger;
use cognitive_contract::{Failure, Warning};
use cognitive_runtime::Spending;

use crate::config::Config;
use crate::env_vars;
use crate::settings::Settings;
#[cfg(feature = "store")]
use crate::settings::database;
#[cfg(feature = "store")]
use crate::wiring::environment;

/// What outlasts a run.
#[derive(Clone, Default)]
pub struct Stores {
    /// The audit.
    pub audit: Option<Arc<dyn AuditLog>>,
    /// Context.
    pub context: Option<Arc<dyn ContextStore>>,
    /// Runs that people look at, and what they decided.
    pub review: Option<Arc<dyn ReviewDesk>>,
    /// Questions about runs of the past; only where they are recorded.
    pub archive: Option<Arc<dyn RunArchive>>,
}

impl Stores {
    /// Opens the database of the settings. Where that fails and runs need not be recorded, there are no stores, and a warning
    /// for `meta.warnings` says so.
    pub fn open_or_warn(settings: &Settings, named: bool) -> Result<(Self, Option<Warning>), Failure> {
        match Self::open(settings, named) {
            Ok(stores) => Ok((stores, None)),
            Err(reason) if settings.audit_required => Err(Failure::misconfigured(format!(
                "the run cannot be recorded: {reason}"
            ))
            .suggest(
                "Make the audit log writable, or turn the requirement off with `audit: {required: false}`",
            )),
            Err(reason) => {
                let message = format!("the run is not recorded, and context is not stored: {reason}");
                Ok((Self::closed(settings, &reason), Some(Warning::new("AUDIT", message))))
            }
        }
    }

    /// What there is where there is no database: nothing, and a desk that says so to every run that should be queued.
    #[must_use]
    pub fn closed(settings: &Settings, reason: &str) -> Self {
        let desk = || Arc::new(ClosedDesk(reason.to_owned())) as Arc<dyn ReviewDesk>;
        Self { review: (!settings.review.is_empty()).then(desk), ..Self::default() }
    }
}

/// A desk that keeps nothing, and why.
struct ClosedDesk(String);

impl ReviewDesk for ClosedDesk {
    fn enter<'a>(&'a self, _: &'a ReviewEntry) -> PortFuture<'a, Result<String, String>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }

    fn list(&self, _: &ReviewFilter) -> Result<ReviewPage, String> {
        Err(self.0.clone())
    }

    fn get(&self, _: &str) -> Result<Option<Review>, String> {
        Err(self.0.clone())
    }

    fn decide(&self, _: &str, _: &NewDecision) -> Result<Decided, DeskError> {
        Err(DeskError::Unavailable(self.0.clone()))
    }

    fn calibration(&self, _: Option<&str>) -> Result<CalibrationReport, String> {
        Err(self.0.clone())
    }

    fn calibrated(&self, _: &str, _: &str, _: f64) -> Option<f64> {
        None
    }

    fn export(
        &self,
        _: ReviewExport,
        _: Option<&str>,
        _: &mut dyn FnMut(serde_json::Value) -> bool,
    ) -> Result<(), String> {
        Err(self.0.clone())
    }
}

/// The budget of the settings with its books, if there is one. A budget that nobody could keep is no budget, so it is not
/// gone without.
pub fn spending(settings: &Settings) -> Result<Option<Spending>, Failure> {
    if !settings.budget.is_set() {
        return Ok(None);
    }
    let refused = |reason: String| {
        Failure::misconfigured(format!("the books of `budget` cannot be kept: {reason}"))
            .suggest("Make the database writable (`audit: {path: …}` says where it is), or take `budget` out of the configuration")
    };
    let ledger = open_ledger(settings).map_err(refused)?;
    Ok(Some(Spending { budget: settings.budget, ledger }))
}

#[cfg(feature = "store")]
fn open_ledger(settings: &Settings) -> Result<Arc<dyn SpendingLedger>, String> {
    let path = settings.database.as_ref().ok_or_else(no_place)?;
    let store =
        open_store(path, cognitive_store::StoreOptions::default()).map_err(|error| error.to_string())?;
    Ok(Arc::new(store))
}

/// Opens a store and creates it if need be: a file, or a database on a server, whose password is a secret of the environment.
#[cfg(feature = "store")]
pub fn open_store(
    place: &std::path::Path,
    options: cognitive_store::StoreOptions,
) -> Result<cognitive_store::Store, cognitive_store::StoreError> {
    #[cfg(feature = "postgres")]
    if cognitive_store::Store::is_server(place) {
        let password = environment(env_vars::DATABASE_PASSWORD);
        return cognitive_store::Store::connect(place, password.as_deref(), options);
    }
    cognitive_store::Store::open_with(place, options)
}

/// Opens a store to ask it questions; `None` if there is none. A server always has one.
#[cfg(feature = "store")]
pub fn existing_store(
    place: &std::path::Path,
    options: cognitive_store::StoreOptions,
) -> Result<Option<cognitive_store::Store>, cognitive_store::StoreError> {
    if cognitive_store::Store::is_server(place) {
        return open_store(place, options).map(Some);
    }
    cognitive_store::Store::open_existing_with(place, options)
}

#[cfg(not(feature = "store"))]
fn open_ledger(_: &Settings) -> Result<Arc<dyn SpendingLedger>, String> {
    Err("this build has no store".to_owned())
}

/// Why there is no store where nothing says where it is.
#[must_use]
pub fn no_place() -> String {
    format!(
        "no database path is configured: neither `{}` nor `{}` is set",
        env_vars::HOME,
        env_vars::DATABASE
    )
}

#[cfg(feature = "store")]
impl Stores {
    /// Opens the database of the settings; the error says why there is neither audit nor context. Where the audit is switched
    /// off, the file is created only for a caller who is named.
    pub fn open(settings: &Settings, named: bool) -> Result<Self, String> {
        use cognitive_store::{AuditArchive, Desk, StoreOptions};

        let Some(path) = &settings.database else {
            return if settings.audit_enabled { Err(no_place()) } else { Ok(Self::default()) };
        };
        let options = StoreOptions { retention: retention(settings.audit_keep), ..StoreOptions::default() };
        let opened = if named || settings.store.is_some() || !settings.review.is_empty() {
            open_store(path, options).map(Some)
        } else {
            existing_store(path, StoreOptions::default())
        };
        let store = opened.map_err(|error| error.to_string())?.map(Arc::new);
        let audit = store.clone().filter(|_| settings.store.is_some());
        let desk = |store| {
            Arc::new(Desk::new(store, review_limits(settings.review_limits), settings.store.is_some()))
        };
        Ok(Self {
            review: store.clone().map(|store| desk(store) as Arc<dyn ReviewDesk>),
            archive: audit.clone().map(|store| Arc::new(AuditArchive::new(store)) as Arc<dyn RunArchive>),
            audit: audit.map(|store| store as Arc<dyn AuditLog>),
            context: store.map(|store| store as Arc<dyn ContextStore>),
        })
    }

    /// The context that is kept, for a command that only looks. A store that cannot be read is like none.
    #[must_use]
    pub fn context_of(config: &Config) -> Option<Arc<dyn ContextStore>> {
        let path = database(config, &environment)?;
        let store = existing_store(&path, cognitive_store::StoreOptions::default()).ok().flatten()?;
        Some(Arc::new(store))
    }

    /// The desk, for a command: nothing if there is no database yet; the error says why it cannot be opened.
    pub fn desk_of(config: &Config) -> Result<Option<Arc<dyn ReviewDesk>>, String> {
        use cognitive_store::{Desk, StoreOptions};

        let path = database(config, &environment).ok_or_else(no_place)?;
        let options = StoreOptions { retention: retention(config.audit.keep), ..StoreOptions::default() };
        let store = existing_store(&path, options).map_err(|error| error.to_string())?;
        let limits = review_limits((config.review.max_open, config.review.max_decided));
        let desk = |store| Desk::new(Arc::new(store), limits, config.audit.enabled != Some(false));
        Ok(store.map(|store| Arc::new(desk(store)) as Arc<dyn ReviewDesk>))
    }

    /// The same stores with an audit that a thread of its own writes, as a server needs it. `complain` hears once what cannot
    /// be written.
    pub fn in_background(self, complain: impl Fn(String) + Send + 'static) -> Result<Self, Failure> {
        let audit = self.audit.map(|audit| {
            let background = cognitive_store::Background::new(audit, complain).map_err(|error| {
                let message = format!("cannot start a thread: {error}");
                Failure::new(cognitive_contract::ErrorCode::InternalError, message)
            })?;
            Ok::<_, Failure>(Arc::new(background) as Arc<dyn AuditLog>)
        });
        Ok(Self { audit: audit.transpose()?, ..self })
    }
}

/// The same for the queue of reviews.
#[cfg(feature = "store")]
fn review_limits((open, decided): (Option<u64>, Option<u64>)) -> cognitive_store::ReviewLimits {
    let usual = cognitive_store::ReviewLimits::default();
    cognitive_store::ReviewLimits {
        open: open.unwrap_or(usual.open),
        decided: decided.unwrap_or(usual.decided),
        ..usual
    }
}

/// What the configuration says about how much is kept, with what it does not say.
#[cfg(feature = "store")]
fn retention(keep: crate::config::KeepConfig) -> cognitive_store::Retention {
    let usual = cognitive_store::Retention::default();
    let bytes = |mb: Option<u64>, usual: u64| mb.map_or(usual, |mb| mb.saturating_mul(1 << 20));
    cognitive_store::Retention {
        records: keep.records.unwrap_or(usual.records),
        bytes: bytes(keep.mb, usual.bytes),
        payload_bytes: bytes(keep.payload_mb, usual.payload_bytes),
        age: keep.days.map(|days| std::time::Duration::from_secs(days.saturating_mul(86_400))),
    }
}

#[cfg(not(feature = "store"))]
impl Stores {
    /// There is no store in this build: nothing is recorded and nothing is kept, unless runs have to be recorded.
    pub fn open(settings: &Settings, _: bool) -> Result<Self, String> {
        if settings.audit_required {
            return Err("this build has no store".to_owned());
        }
        Ok(Self::default())
    }

    /// There is no kept context in this build.
    #[must_use]
    pub fn context_of(_: &Config) -> Option<Arc<dyn ContextStore>> {
        None
    }

    /// There is no desk in this build.
    pub fn desk_of(_: &Config) -> Result<Option<Arc<dyn ReviewDesk>>, String> {
        Err("this build has no store".to_owned())
    }

    /// There is no audit in this build.
    pub fn in_background(self, _: impl Fn(String) + Send + 'static) -> Result<Self, Failure> {
        Ok(self)
    }
}
