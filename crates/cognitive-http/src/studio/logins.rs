//! Browser logins: a browser sends its key once and gets a cookie for half a day. Stores only hashes, in the memory
//! of this process. Limits wrong keys per address. Knows no HTTP except the format of a cookie.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, header};
use cognitive_contract::lock::Lock;
use cognitive_contract::text::hex;
use sha2::{Digest, Sha256};

use crate::config::ApiKey;
use crate::limits::Limits;
use crate::roles::Roles;

/// The name of the cookie.
pub(crate) const COOKIE: &str = "cogn_session";
/// The lifetime of a login. A browser on a shared machine must not stay logged in for days.
pub(super) const LIFETIME: Duration = Duration::from_hours(12);
/// The limit of logins of one key. Above it, the one of this key that expires first is removed, so that the holder of
/// one key cannot log out the others. Without the limit, repeated logins would fill the memory.
const MOST: usize = 100;
/// Wrong keys per address and minute that are answered at once. Without the limit, a key could be guessed.
const GUESSES: u32 = 10;
/// The delay of the answer to further wrong keys. With the limit of connections per address, it bounds the guesses.
const WRONG_KEY_PAUSE: Duration = Duration::from_secs(1);

/// All logins of a server.
pub(crate) struct Logins {
    by_hash: Lock<HashMap<[u8; 32], TimedLogin>>,
    guesses: Limits,
}

/// A client that logged in with a key.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    pub(crate) name: Arc<str>,
    pub(crate) roles: Roles,
}

/// A login and its expiry.
#[derive(Debug, Clone)]
struct TimedLogin {
    login: Login,
    until: Instant,
}

impl Login {
    /// Returns the login of the holder of a key.
    pub(super) fn from_key(key: &ApiKey) -> Self {
        Self { name: key.name.as_str().into(), roles: key.roles }
    }
}

impl Default for Logins {
    fn default() -> Self {
        Self { by_hash: Lock::default(), guesses: Limits::new(GUESSES, 0) }
    }
}

impl Logins {
    /// Logs in the holder of a key, and returns the secret for the cookie.
    pub(crate) fn begin(&self, key: &ApiKey, now: Instant) -> String {
        let secret = new_secret();
        let login = TimedLogin { login: Login::from_key(key), until: now + LIFETIME };
        let mut all = self.by_hash.lock();
        all.retain(|_, login| login.until > now);
        let same = all.iter().filter(|(_, known)| known.login.name == login.login.name);
        let (count, first) =
            same.fold((0, None), |(count, first): (usize, Option<(&[u8; 32], Instant)>), (hash, known)| {
                let is_first = first.is_none_or(|(_, until)| known.until < until);
                (count + 1, if is_first { Some((hash, known.until)) } else { first })
            });
        if let Some(first) = first.filter(|_| count >= MOST).map(|(hash, _)| *hash) {
            all.remove(&first);
        }
        all.insert(hash(&secret), login);
        secret
    }

    /// Returns the login of a cookie, unless it has expired.
    pub(crate) fn find(&self, secret: &str, now: Instant) -> Option<Login> {
        self.by_hash
            .lock()
            .get(&hash(secret))
            .filter(|known| known.until > now)
            .map(|known| known.login.clone())
    }

    /// Ends the logins that do not satisfy a condition.
    pub(crate) fn retain(&self, stays: impl Fn(&Login) -> bool) {
        self.by_hash.lock().retain(|_, known| stays(&known.login));
    }

    /// Ends a login.
    pub(crate) fn end(&self, secret: &str) {
        self.by_hash.lock().remove(&hash(secret));
    }

    /// Counts a wrong key. Returns how long its answer has to wait, if the address has sent too many. A right key from the
    /// same address never waits, since many clients may share it.
    pub(crate) fn wrong_key(&self, address: &str, now: Instant) -> Option<Duration> {
        self.guesses.run(address, now).err().map(|_| WRONG_KEY_PAUSE)
    }
}

/// Generates a random secret.
pub(super) fn new_secret() -> String {
    // Three random ids have more than 256 random bits; the secret is a hash of them.
    let random = [(); 3].map(|()| uuid::Uuid::new_v4().into_bytes()).concat();
    hex(&Sha256::digest(random))
}

/// Returns the stored form of a secret.
pub(super) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Returns the secret in the cookie of a request. Two cookies of this name are refused, since one of them may be
/// forged.
pub(crate) fn cookie_secret(headers: &HeaderMap) -> Option<&str> {
    let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut ours = pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value);
    ours.next().filter(|_| ours.next().is_none())
}

/// Returns the header that sets the cookie. Without `Secure` only for local hosts, where the connection cannot be
/// intercepted.
pub(crate) fn set_cookie(secret: &str, may_be_plain: bool) -> Option<HeaderValue> {
    header(secret, LIFETIME.as_secs(), may_be_plain)
}

/// Returns the header that deletes the cookie.
pub(crate) fn delete_cookie(may_be_plain: bool) -> Option<HeaderValue> {
    header("", 0, may_be_plain)
}

fn header(secret: &str, seconds: u64, may_be_plain: bool) -> Option<HeaderValue> {
    let secure = if may_be_plain { "" } else { "; Secure" };
    let text = format!("{COOKIE}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::KeyRole;

    fn key() -> ApiKey {
        ApiKey::new("ann", "0123456789abcdef").unwrap().with_roles(Roles::from_roles([KeyRole::Review]))
    }

    #[test]
    fn a_login_ends_after_its_time_or_when_it_is_ended() {
        let (logins, now) = (Logins::default(), Instant::now());
        let (first, second) = (logins.begin(&key(), now), logins.begin(&key(), now));
        assert!(first.len() == 64 && first != second);
        let found = logins.find(&first, now).unwrap();
        assert_eq!((&*found.name, found.roles), ("ann", Roles::from_roles([KeyRole::Review])));
        assert!(logins.find(&first, now + LIFETIME).is_none() && logins.find("", now).is_none());
        logins.end(&first);
        assert!(logins.find(&first, now).is_none() && logins.find(&second, now).is_some());
    }

    #[test]
    fn a_key_has_so_many_logins_and_ends_only_its_own() {
        let (logins, now) = (Logins::default(), Instant::now());
        let other = ApiKey::new("bob", "fedcba9876543210").unwrap();
        let of_other = logins.begin(&other, now);
        let oldest = logins.begin(&key(), now);
        for number in 0..MOST {
            logins.begin(&key(), now + Duration::from_millis(1 + number as u64));
        }
        assert_eq!(logins.by_hash.lock().len(), MOST + 1);
        assert!(logins.find(&oldest, now).is_none() && logins.find(&of_other, now).is_some());
    }

    #[test]
    fn an_address_that_guesses_has_to_wait_and_no_other_has() {
        let (logins, now) = (Logins::default(), Instant::now());
        for _ in 0..GUESSES {
            assert_eq!(logins.wrong_key("a", now), None);
        }
        assert!(logins.wrong_key("a", now).is_some() && logins.wrong_key("b", now).is_none());
        assert_eq!(logins.wrong_key("a", now + Duration::from_mins(1)), None);
    }

    #[test]
    fn a_cookie_is_found_among_others_and_only_once() {
        let shown = |texts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for text in texts {
                headers.append(header::COOKIE, HeaderValue::from_static(text));
            }
            cookie_secret(&headers).map(str::to_owned)
        };
        assert_eq!(shown(&["a=1; cogn_session=x; b=2"]).as_deref(), Some("x"));
        assert_eq!(shown(&["a=1", "cogn_session=x"]).as_deref(), Some("x"));
        assert_eq!(shown(&["cogn_session=x; cogn_session=y"]), None);
        assert_eq!(shown(&["xcogn_session=x", ""]), None);
        let given = set_cookie("s", false).unwrap();
        assert_eq!(given, "cogn_session=s; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure");
    }
}
