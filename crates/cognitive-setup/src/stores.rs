//! The user's database: the audit and the stored context, in one file or one database on a server. Opens it, and
//! reports why it cannot be opened. Without the feature `store` nothing is recorded or stored.

use std::sync::Arc;

use cognitive_contract::ports::{AuditLog, ContextStore, PortFuture};
use cognitive_contract::{Failure, Warning};
use cognitive_ports::archive::RunArchive;
use cognitive_ports::review::{
    CalibrationReport, DecidedReview, NewDecision, Review, ReviewEntry, ReviewError, ReviewExport,
    ReviewFilter, ReviewPage, ReviewQueue,
};
use cognitive_ports::spending::SpendingLedger;
use cognitive_runtime::Spending;

use crate::config::Config;
use crate::env_vars;
use crate::settings::Settings;
#[cfg(feature = "store")]
use crate::settings::database;
#[cfg(feature = "store")]
use crate::wiring::environment;

/// The stores that outlive a run.
#[derive(Clone, Default)]
pub struct Stores {
    /// The audit log.
    pub audit: Option<Arc<dyn AuditLog>>,
    /// The context store.
    pub context: Option<Arc<dyn ContextStore>>,
    /// The review queue with its decisions.
    pub review: Option<Arc<dyn ReviewQueue>>,
    /// The archive for queries about past runs; present only if runs are recorded.
    pub archive: Option<Arc<dyn RunArchive>>,
}

impl Stores {
    /// Opens the configured database. If that fails and recording is optional, returns no stores and a warning for
    /// `meta.warnings`.
    pub fn open_or_warn(settings: &Settings, named: bool) -> Result<(Self, Option<Warning>), Failure> {
        match Self::open(settings, named) {
            Ok(stores) => Ok((stores, None)),
            Err(reason) if settings.audit_required => Err(Failure::config_fault(format!(
                "the run cannot be recorded: {reason}"
            ))
            .suggest(
                "Make the audit log writable, or turn the requirement off with `audit: {required: false}`",
            )),
            Err(reason) => {
                let message = format!("the run is not recorded, and context is not stored: {reason}");
                Ok((Self::without_database(settings, &reason), Some(Warning::new("AUDIT", message))))
            }
        }
    }

    /// Opens the configured database for a server, whose audit is written by a background thread. Returns an error if
    /// runs must be recorded and cannot be. `complain` reports everything else that is not stored.
    pub fn open_for_server(
        settings: &Settings,
        complain: impl Fn(String) + Send + 'static,
    ) -> Result<Self, Failure> {
        match Self::open(settings, true) {
            Ok(stores) => stores.in_background(complain),
            Err(reason) if settings.audit_enabled => {
                let hint = if settings.store.is_some() {
                    "Make the database of `audit.path` or `COGNITIVE_DB` available, or start with `--no-audit` to record no runs"
                } else {
                    "Set `HOME` or `COGNITIVE_DB`, or start with `--no-audit` to record no runs"
                };
                Err(Failure::config_fault(format!("runs cannot be recorded: {reason}")).suggest(hint))
            }
            Err(reason) => {
                complain(format!("context is not stored: {reason}"));
                Ok(Self::without_database(settings, &reason))
            }
        }
    }

    /// Returns the stores without a database: none, except a review queue that rejects every run with this reason.
    #[must_use]
    pub fn without_database(settings: &Settings, reason: &str) -> Self {
        let review_queue = || Arc::new(DisabledReviewQueue(reason.to_owned())) as Arc<dyn ReviewQueue>;
        Self { review: (!settings.review.is_empty()).then(review_queue), ..Self::default() }
    }
}

/// A review queue that stores nothing; holds the reason.
struct DisabledReviewQueue(String);

impl ReviewQueue for DisabledReviewQueue {
    fn enter<'a>(&'a self, _: &'a ReviewEntry) -> PortFuture<'a, Result<String, String>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }

    fn list(&self, _: &ReviewFilter) -> Result<ReviewPage, String> {
        Err(self.0.clone())
    }

    fn get(&self, _: &str) -> Result<Option<Review>, String> {
        Err(self.0.clone())
    }

    fn decide(&self, _: &str, _: &NewDecision) -> Result<DecidedReview, ReviewError> {
        Err(ReviewError::Unavailable(self.0.clone()))
    }

    fn calibration(&self, _: Option<&str>) -> Result<CalibrationReport, String> {
        Err(self.0.clone())
    }

    fn calibrated_confidence(&self, _: &str, _: &str, _: f64) -> Option<f64> {
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

/// Returns the configured budget with its ledger, if there is one. A budget that cannot be recorded cannot be enforced,
/// so it is an error.
pub fn spending(settings: &Settings) -> Result<Option<Spending>, Failure> {
    if !settings.budget.is_set() {
        return Ok(None);
    }
    let refused = |reason: String| {
        Failure::config_fault(format!("cannot record spending for `budget`: {reason}")).suggest(
            "Make the database writable (`audit: {path: …}` sets its path), or remove `budget` from the \
             configuration",
        )
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

/// Opens a store: a file, or a database on a server whose password comes from the environment. Creates it if necessary.
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

/// Opens a store for queries; `None` if it does not exist. A server always has one.
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

/// Returns the reason for a missing store when no path is configured.
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
    /// Opens the configured database; the error is the reason for the missing audit and context. If the audit is
    /// disabled, the file is created only if `named` is set.
    pub fn open(settings: &Settings, named: bool) -> Result<Self, String> {
        use cognitive_store::{AuditArchive, StoreOptions, StoredReviewQueue};

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
        let review_queue = |store| {
            Arc::new(StoredReviewQueue::new(
                store,
                review_limits(settings.review_limits),
                settings.store.is_some(),
            ))
        };
        Ok(Self {
            review: store.clone().map(|store| review_queue(store) as Arc<dyn ReviewQueue>),
            archive: audit.clone().map(|store| Arc::new(AuditArchive::new(store)) as Arc<dyn RunArchive>),
            audit: audit.map(|store| store as Arc<dyn AuditLog>),
            context: store.map(|store| store as Arc<dyn ContextStore>),
        })
    }

    /// Returns the stored context, for a command that only reads. An unreadable store counts as none.
    #[must_use]
    pub fn context_of(config: &Config) -> Option<Arc<dyn ContextStore>> {
        let path = database(config, &environment)?;
        let store = existing_store(&path, cognitive_store::StoreOptions::default()).ok().flatten()?;
        Some(Arc::new(store))
    }

    /// Returns the review queue, for a command; `None` if there is no database yet. The error is the reason why it
    /// cannot be opened.
    pub fn queue_of(config: &Config) -> Result<Option<Arc<dyn ReviewQueue>>, String> {
        use cognitive_store::{StoreOptions, StoredReviewQueue};

        let path = database(config, &environment).ok_or_else(no_place)?;
        let options = StoreOptions { retention: retention(config.audit.keep), ..StoreOptions::default() };
        let store = existing_store(&path, options).map_err(|error| error.to_string())?;
        let limits = review_limits((config.review.max_open, config.review.max_decided));
        let review_queue =
            |store| StoredReviewQueue::new(Arc::new(store), limits, config.audit.enabled != Some(false));
        Ok(store.map(|store| Arc::new(review_queue(store)) as Arc<dyn ReviewQueue>))
    }

    /// Returns the same stores with an audit that a background thread writes, as a server needs it. `complain` is
    /// called once if records cannot be written.
    fn in_background(self, complain: impl Fn(String) + Send + 'static) -> Result<Self, Failure> {
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

/// Converts the limits of the review queue, with defaults for missing ones.
#[cfg(feature = "store")]
fn review_limits((open, decided): (Option<u64>, Option<u64>)) -> cognitive_store::ReviewLimits {
    let usual = cognitive_store::ReviewLimits::default();
    cognitive_store::ReviewLimits {
        open: open.unwrap_or(usual.open),
        decided: decided.unwrap_or(usual.decided),
        ..usual
    }
}

/// Converts the configured retention, with defaults for missing values.
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
    /// This build has no store: nothing is recorded or stored. An error if runs must be recorded.
    pub fn open(settings: &Settings, _: bool) -> Result<Self, String> {
        if settings.audit_required {
            return Err("this build has no store".to_owned());
        }
        Ok(Self::default())
    }

    /// This build stores no context.
    #[must_use]
    pub fn context_of(_: &Config) -> Option<Arc<dyn ContextStore>> {
        None
    }

    /// This build has no review queue.
    pub fn queue_of(_: &Config) -> Result<Option<Arc<dyn ReviewQueue>>, String> {
        Err("this build has no store".to_owned())
    }

    /// This build has no audit.
    #[expect(clippy::unnecessary_wraps, reason = "with a store, the thread may fail to start")]
    fn in_background(self, _: impl Fn(String) + Send + 'static) -> Result<Self, Failure> {
        Ok(self)
    }
}
