//! What several servers share: connects to it, and says now and then that it cannot be reached. Decides nothing about limits and
//! streams.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cogn::{env_vars, wiring};
use cognitive_contract::Failure;
use cognitive_http::{Complaints, SharedState};
use cognitive_redis::RedisState;

use crate::printer::Printer;

/// How often the same complaint is heard.
const OFTEN: Duration = Duration::from_secs(10);

/// Connects to Redis.
pub(super) async fn connect(address: &str) -> Result<Arc<dyn SharedState>, Failure> {
    let password = wiring::environment(env_vars::SERVE_SHARED_PASSWORD);
    let state = RedisState::connect(address, password.as_deref()).await.map_err(|reason| {
        Failure::misconfigured(format!("the servers cannot share anything: {reason}"))
            .suggest("Check `--shared`, or leave it out to serve alone")
    })?;
    Ok(Arc::new(state))
}

/// Tells people what goes wrong while the server runs: once, and again after a while.
pub(super) fn complaints() -> Complaints {
    let last = Mutex::new(None::<Instant>);
    Arc::new(move |what: &str| {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|heard| heard.elapsed() >= OFTEN) {
            *last = Some(Instant::now());
            Printer.alarm(what);
        }
    })
}
