//! What the holder of a key may do. A key has roles; a server without keys gives every caller all of them, since only its own
//! machine reaches it. Holds no rule about single operations: `routes` says which role each of them needs.

use std::fmt;

use cognitive_contract::{ErrorCode, Failure};
use serde_json::json;

/// One thing that a key may be good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRole {
    /// Run modules, and see what became of one's own runs.
    Run,
    /// Try drafts and other models, see and change the files of modules.
    Author,
    /// Judge what waits for a person.
    Review,
    /// See everybody's runs, and do everything else.
    Admin,
}

impl KeyRole {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Run, Self::Author, Self::Review, Self::Admin];

    /// The word that files, answers and failures have for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Author => "author",
            Self::Review => "review",
            Self::Admin => "admin",
        }
    }

    /// Reads the word.
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

/// Several of them. Cheap to copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    /// Those of somebody who showed nothing.
    pub const NONE: Self = Self(0);
    /// Those of somebody who may do everything.
    pub const ALL: Self = Self(15);
    /// Those of a key whose operator says nothing about it.
    pub const USUAL: Self = Self(1);

    /// These roles and no others.
    #[must_use]
    pub fn of(roles: impl IntoIterator<Item = KeyRole>) -> Self {
        Self(roles.into_iter().fold(0, |bits, role| bits | role.bit()))
    }

    /// Whether somebody with these roles may do what needs that one. An admin may do everything.
    #[must_use]
    pub const fn has(self, role: KeyRole) -> bool {
        self.0 & (role.bit() | KeyRole::Admin.bit()) != 0
    }

    /// The words of all that its holder may do.
    #[must_use]
    pub fn words(self) -> Vec<&'static str> {
        KeyRole::ALL.into_iter().filter(|role| self.has(*role)).map(KeyRole::word).collect()
    }

    /// Fails where a role is missing, and names it. (E4007)
    pub(crate) fn need(self, role: KeyRole) -> Result<(), Failure> {
        if self.has(role) {
            return Ok(());
        }
        let word = role.word();
        Err(Failure::new(ErrorCode::PermissionDenied, format!("this key does not have the role: `{word}`"))
            .with_detail("role", json!(word))
            .suggest("Ask whoever runs this server for a key that has it"))
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
            assert!(Roles::of([KeyRole::Admin]).has(role) && Roles::ALL.has(role) && !Roles::NONE.has(role));
            assert_eq!(KeyRole::parse(role.word()), Some(role));
        }
        let both = Roles::of([KeyRole::Run, KeyRole::Review]);
        assert_eq!(both.words(), ["run", "review"]);
        assert_eq!(Roles::USUAL.words(), ["run"]);
        let refused = both.need(KeyRole::Author).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::PermissionDenied);
        assert!(both.need(KeyRole::Run).is_ok() && KeyRole::parse("Admin").is_none());
    }
}
