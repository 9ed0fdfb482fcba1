//! The state that several servers share: connects to Redis, and warns while it is unreachable. Decides nothing about
//! limits and streams.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cognitive_contract::Failure;
use cognitive_contract::lock::Lock;
use cognitive_http::redis::RedisState;
use cognitive_http::{Complaints, SharedState};
use cognitive_setup::{env_vars, wiring};

use crate::printer::Printer;

/// The minimum interval between warnings, because each call to an unavailable Redis causes one.
const OFTEN: Duration = Duration::from_secs(10);

/// Connects to Redis.
pub(super) async fn connect(address: &str) -> Result<Arc<dyn SharedState>, Failure> {
    let password = wiring::environment(env_vars::SERVE_SHARED_PASSWORD);
    let state = RedisState::connect(address, password.as_deref()).await.map_err(|reason| {
        Failure::config_fault(format!("cannot use the shared state: {reason}"))
            .suggest("Check `--shared`, or remove it to run a single server")
    })?;
    Ok(Arc::new(state))
}

/// Returns a callback that prints problems while the server runs, rate limited.
pub(super) fn complaints() -> Complaints {
    let last = Lock::new(None::<Instant>);
    Arc::new(move |what: &str| {
        let mut last = last.lock();
        if last.is_none_or(|heard| heard.elapsed() >= OFTEN) {
            *last = Some(Instant::now());
            Printer.alarm(what);
        }
    })
}
