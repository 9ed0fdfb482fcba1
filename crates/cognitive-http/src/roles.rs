//! The roles of keys. A server without keys grants all roles to every caller, since only its own machine reaches it.
//! Contains no rules about single operations: `operations` lists the role that each of them requires.

use std::fmt;

use cognitive_contract::{ErrorCode, Failure};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// A permission that a key may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum KeyRole {
    /// Run modules, and see the outcome of one's own runs.
    Run,
    /// Try drafts and other models, and read and change the files of modules.
    Author,
    /// Decide reviews.
    Review,
    /// See the runs of all clients, and do everything else.
    Admin,
}

impl KeyRole {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Run, Self::Author, Self::Review, Self::Admin];

    /// Returns the name used in files, responses and failures.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Author => "author",
            Self::Review => "review",
            Self::Admin => "admin",
        }
    }

    /// Parses a role name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.word() == word)
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Run => 1,
            Self::Author => 2,
            Self::Review => 4,
            Self::Admin => 8,
        }
    }
}

/// A set of roles. Cheap to copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    /// The roles of an unauthenticated client: none.
    pub const NONE: Self = Self(0);
    /// All roles.
    pub const ALL: Self = Self(15);
    /// The default roles of a key: run only.
    pub const USUAL: Self = Self(1);

    /// Creates a set of these roles.
    #[must_use]
    pub fn from_roles(roles: impl IntoIterator<Item = KeyRole>) -> Self {
        Self(roles.into_iter().fold(0, |bits, role| bits | role.bit()))
    }

    /// Returns whether these roles include `role`. An admin has every role.
    #[must_use]
    pub const fn has(self, role: KeyRole) -> bool {
        self.0 & (role.bit() | KeyRole::Admin.bit()) != 0
    }

    /// Returns all roles that the holder has.
    pub(crate) fn all(self) -> impl Iterator<Item = KeyRole> {
        KeyRole::ALL.into_iter().filter(move |role| self.has(*role))
    }

    /// Returns the names of all roles that the holder has.
    #[must_use]
    pub fn words(self) -> Vec<&'static str> {
        self.all().map(KeyRole::word).collect()
    }

    /// Fails with the name of a missing role. (E4007)
    pub(crate) fn need(self, role: KeyRole) -> Result<(), Failure> {
        if self.has(role) {
            return Ok(());
        }
        let word = role.word();
        Err(Failure::new(ErrorCode::PermissionDenied, format!("this key does not have the role: `{word}`"))
            .with_detail("role", json!(word))
            .suggest("Ask the server operator for a key with this role"))
    }
}

impl fmt::Debug for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.words()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_has_every_role_and_nobody_else_has_more_than_was_said() {
        for role in KeyRole::ALL {
            assert!(
                Roles::from_roles([KeyRole::Admin]).has(role)
                    && Roles::ALL.has(role)
                    && !Roles::NONE.has(role)
            );
            assert_eq!(KeyRole::parse(role.word()), Some(role));
        }
        let both = Roles::from_roles([KeyRole::Run, KeyRole::Review]);
        assert_eq!(both.words(), ["run", "review"]);
        assert_eq!(Roles::USUAL.words(), ["run"]);
        let refused = both.need(KeyRole::Author).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::PermissionDenied);
        assert!(both.need(KeyRole::Run).is_ok() && KeyRole::parse("Admin").is_none());
    }
}
