//! The database of this user: the audit and kept context, which are one file. Opens it, and says why it cannot.
//! Without the feature `store` nothing is recorded and nothing is kept.

use std::sync::Arc;

use cognitive_contract::ports::{AuditLog, ContextStore};
use cognitive_contract::{Failure, Warning};

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
                Ok((Self::default(), Some(Warning::new("AUDIT", message))))
            }
        }
    }
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
        use cognitive_store::{Store, StoreOptions};

        let Some(path) = &settings.database else {
            return if settings.audit_enabled { Err(no_place()) } else { Ok(Self::default()) };
        };
        let options = StoreOptions { retention: retention(settings.audit_keep), ..StoreOptions::default() };
        let opened = if named || settings.store.is_some() {
            Store::open_with(path, options).map(Some)
        } else {
            Store::open_existing(path)
        };
        let store = opened.map_err(|error| error.to_string())?.map(Arc::new);
        let audit = store.clone().filter(|_| settings.store.is_some());
        Ok(Self {
            audit: audit.map(|store| store as Arc<dyn AuditLog>),
            context: store.map(|store| store as Arc<dyn ContextStore>),
        })
    }

    /// The context that is kept, for a command that only looks. A store that cannot be read is like none.
    #[must_use]
    pub fn context_of(config: &Config) -> Option<Arc<dyn ContextStore>> {
        let path = database(config, &environment)?;
        let store = cognitive_store::Store::open_existing(&path).ok().flatten()?;
        Some(Arc::new(store))
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

    /// There is no audit in this build.
    pub fn in_background(self, _: impl Fn(String) + Send + 'static) -> Result<Self, Failure> {
        Ok(self)
    }
}
