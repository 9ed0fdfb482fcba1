//! Who asks a registry. Handed in by the caller; nothing is looked up, and nothing of it is ever shown.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;

use crate::secret::Secret;

/// A login at a registry.
#[derive(Clone)]
pub struct Credentials {
    kind: LoginKind,
}

#[derive(Clone)]
pub(crate) enum LoginKind {
    /// A name and a password, or a token that takes the place of one.
    Basic { user: String, password: Secret },
    /// A token that the registry takes as it is.
    Bearer(Secret),
    /// A token that is exchanged for others where the registry says.
    Identity(Secret),
}

impl Credentials {
    /// A name, and a password or a token that the registry takes in its place.
    #[must_use]
    pub fn basic(user: impl Into<String>, password: Secret) -> Self {
        Self { kind: LoginKind::Basic { user: user.into(), password } }
    }

    /// A token that goes to the registry as it is, as `Authorization: Bearer`.
    #[must_use]
    pub fn bearer(token: Secret) -> Self {
        Self { kind: LoginKind::Bearer(token) }
    }

    /// An identity token, as `docker login` keeps it for some registries: it is exchanged for a short-lived one.
    #[must_use]
    pub fn identity(token: Secret) -> Self {
        Self { kind: LoginKind::Identity(token) }
    }

    pub(crate) fn kind(&self) -> &LoginKind {
        &self.kind
    }

    /// What no text may repeat.
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

/// The header for a name and a password; `None` if no header can say them: a colon would end the name early.
pub(crate) fn basic_header(user: &str, password: &Secret) -> Option<HeaderValue> {
    let both = Secret::new(format!("{user}:{}", password.reveal())).filter(|_| !user.contains(':'))?;
    marked(&format!("Basic {}", STANDARD.encode(both.reveal())))
}

/// The header for a token; `None` if no header can hold it.
pub(crate) fn bearer_header(token: &Secret) -> Option<HeaderValue> {
    marked(&format!("Bearer {}", token.reveal()))
}

/// Marked, so that nothing prints it.
fn marked(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    // ERR-015: whoever prints a login by accident prints nothing of it.
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
