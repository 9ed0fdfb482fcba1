//! The credentials for a registry. The caller provides them; they are never looked up and never shown.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;

use crate::secret::Secret;

/// The credentials for a registry.
#[derive(Clone)]
pub struct Credentials {
    kind: LoginKind,
}

#[derive(Clone)]
pub(crate) enum LoginKind {
    /// A user name, and a password or a token in its place.
    Basic { user: String, password: Secret },
    /// A token that is sent to the registry unchanged.
    Bearer(Secret),
    /// A token that is exchanged for others at the registry's token server.
    Identity(Secret),
}

impl Credentials {
    /// Creates credentials from a user name, and a password or a token in its place.
    #[must_use]
    pub fn basic(user: impl Into<String>, password: Secret) -> Self {
        Self { kind: LoginKind::Basic { user: user.into(), password } }
    }

    /// Creates credentials from a token that is sent unchanged, as `Authorization: Bearer`.
    #[must_use]
    pub fn bearer(token: Secret) -> Self {
        Self { kind: LoginKind::Bearer(token) }
    }

    /// Creates credentials from an identity token, as stored by `docker login` for some registries. It is exchanged
    /// for a short-lived token.
    #[must_use]
    pub fn identity(token: Secret) -> Self {
        Self { kind: LoginKind::Identity(token) }
    }

    pub(crate) fn kind(&self) -> &LoginKind {
        &self.kind
    }

    /// Returns the secret that no text may contain.
    pub(crate) fn secret(&self) -> &Secret {
        match &self.kind {
            LoginKind::Basic { password, .. } => password,
            LoginKind::Bearer(token) | LoginKind::Identity(token) => token,
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials([redacted])")
    }
}

/// Returns the header for a user name and a password; `None` if they cannot be encoded: a colon would end the name
/// early.
pub(crate) fn basic_header(user: &str, password: &Secret) -> Option<HeaderValue> {
    let both = Secret::new(format!("{user}:{}", password.reveal())).filter(|_| !user.contains(':'))?;
    sensitive_header(&format!("Basic {}", STANDARD.encode(both.reveal())))
}

/// Returns the header for a token; `None` if no header can contain it.
pub(crate) fn bearer_header(token: &Secret) -> Option<HeaderValue> {
    sensitive_header(&format!("Bearer {}", token.reveal()))
}

/// Returns a header value marked sensitive, so that it is never printed.
fn sensitive_header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    // ERR-015: printing credentials by accident reveals nothing.
    #[test]
    fn err_015_a_login_is_never_shown() {
        let secret = || Secret::new("pa55word").unwrap();
        let header = basic_header("me", &secret()).unwrap();
        assert_eq!(header, "Basic bWU6cGE1NXdvcmQ=");
        for shown in [
            format!("{:?}", Credentials::basic("me", secret())),
            format!("{:#?}", Credentials::bearer(secret())),
            format!("{header:?} {:?}", bearer_header(&secret())),
        ] {
            assert!(!shown.contains("pa55word") && !shown.contains("bWU6"), "{shown}");
        }
    }

    #[test]
    fn what_no_header_can_say_is_no_header() {
        assert_eq!(basic_header("a:b", &Secret::new("c").unwrap()), None);
        assert_eq!(bearer_header(&Secret::new("a\nb").unwrap()), None);
    }
}
