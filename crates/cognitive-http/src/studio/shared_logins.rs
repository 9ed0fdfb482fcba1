//! Browser logins across all servers, stored in the shared state, or in this server if there is none. The entry is a
//! hash of the cookie, the name of the key and a proof that the key was known. Write access to the shared state alone
//! therefore cannot forge a login. Removing or rotating a key revokes its logins. While the shared state is
//! unavailable, no login is valid.

use std::time::Instant;

use cognitive_contract::Failure;
use cognitive_contract::text::hex;

use super::logins::{LIFETIME, Login, hash, new_secret};
use crate::app::AppState;
use crate::config::ApiKey;
use crate::other_servers::state_unavailable;

/// Logs in the holder of a key, and returns the secret for the cookie.
pub(crate) async fn begin(shared: &AppState, key: &ApiKey) -> Result<String, Failure> {
    let Some(state) = &shared.config.shared else { return Ok(shared.logins.begin(key, Instant::now())) };
    let secret = new_secret();
    let login = hash(&secret);
    let holder = format!("{} {}", key.login_proof(&login), key.name);
    state.keep_login(&hex(&login), &holder, LIFETIME).await.map_err(|reason| unreachable(shared, &reason))?;
    Ok(secret)
}

/// Returns the login of a cookie, unless it has expired.
pub(crate) async fn find(shared: &AppState, secret: &str) -> Result<Option<Login>, Failure> {
    let Some(state) = &shared.config.shared else { return Ok(shared.logins.find(secret, Instant::now())) };
    let login = hash(secret);
    let kept = state.login(&hex(&login)).await.map_err(|reason| unreachable(shared, &reason))?;
    let Some((proof, name)) = kept.as_deref().and_then(|holder| holder.split_once(' ')) else {
        return Ok(None);
    };
    let keys = shared.keys();
    Ok(keys.iter().find(|key| key.name == name && key.is_login_proof(&login, proof)).map(Login::from_key))
}

/// Ends a login at all servers.
pub(crate) async fn end(shared: &AppState, secret: &str) -> Result<(), Failure> {
    let Some(state) = &shared.config.shared else {
        shared.logins.end(secret);
        return Ok(());
    };
    state.end_login(&hex(&hash(secret))).await.map_err(|reason| unreachable(shared, &reason))
}

fn unreachable(shared: &AppState, reason: &str) -> Failure {
    shared.config.complain(&format!("logins are unavailable: {reason}"));
    state_unavailable("logins are unavailable at the moment")
        .suggest("Try again in a moment, or send `Authorization: Bearer KEY`")
}
