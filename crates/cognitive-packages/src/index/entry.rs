//! One package in a list: who it is, what it does, what it needs, where it is and what is known of its quality. (REG-001, REG-012)
//! Members that nobody here knows are passed over.

use cognitive_contract::text::cut;
use serde::{Deserialize, Serialize};

use crate::PackageError;
use crate::name::check_name;

/// A package in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegistryEntry {
    /// Who it is.
    pub identity: Identity,
    /// What it does.
    pub metadata: EntryMetadata,
    /// What it needs.
    pub dependencies: Dependencies,
    /// Where it is.
    pub distribution: Distribution,
    /// What is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// When something happened to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<Timestamps>,
}

/// Who a package is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub namespace: String,
    /// Its version.
    pub version: String,
    /// The version of the specification that it is written for.
    pub spec_version: String,
}

/// What a package does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryMetadata {
    /// At most 500 characters.
    pub description: String,
    /// Who wrote it.
    pub author: String,
    /// `exec`, `decision` or `exploration`.
    pub tier: String,
    /// The name of a licence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Where its source is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
}

/// What a package needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependencies {
    /// The oldest runtime that can run it.
    pub runtime_min: String,
    /// Other modules.
    #[serde(default)]
    pub modules: Vec<EntryDependency>,
}

/// A module that another one needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryDependency {
    /// Its name.
    pub name: String,
    /// The versions that fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether it can be left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// Where a package is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// The address of the archive, also relative to that of the list.
    pub tarball: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub checksum: String,
    /// Its length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The files in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The address of its signature, by minisign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The address of the key that it was made with. Whoever installs decides whether to trust it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_key: Option<String>,
}

/// What is known of a package. (REG-011: levels from 1 to 4)
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Quality {
    /// From 1 to 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conformance_level: Option<u8>,
    /// Whether somebody whom the list trusts has looked at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// Whether it should not be used any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// What to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation_reason: Option<String>,
}

/// When something happened to a package.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Timestamps {
    /// When it was first published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// Since when it should not be used any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated_at: Option<String>,
}

/// Why a package should not be used any more. (REG-008)
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deprecation {
    /// Since when, as RFC 3339.
    pub at: String,
    /// What to use instead.
    #[serde(default)]
    pub successor: Option<String>,
    /// Why.
    pub reason: String,
}

impl RegistryEntry {
    /// Refuses an entry that cannot be used: what it says decides what is fetched and where it is put.
    pub fn check(&self) -> Result<(), PackageError> {
        let identity = &self.identity;
        check_name(&identity.name)?;
        let refused = |what: &str| {
            PackageError::new(format!("the entry of the index cannot be used: {what}: `{}`", identity.name))
        };
        if semver::Version::parse(&identity.version).is_err() {
            return Err(refused("its version is not of the form `1.2.3`"));
        }
        let hash = self.distribution.checksum.strip_prefix("sha256:").unwrap_or_default();
        if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(refused("its checksum is not `sha256:` with 64 hexadecimal digits"));
        }
        let level = self.quality.as_ref().and_then(|quality| quality.conformance_level);
        if level.is_some_and(|level| !(1..=4).contains(&level)) {
            return Err(refused("its conformance level is not 1, 2, 3 or 4"));
        }
        Ok(())
    }

    /// The warning that whoever installs it gets; `None` for one that may be used. (REG-008)
    #[must_use]
    pub fn deprecation(&self) -> Option<String> {
        let quality = self.quality.as_ref()?;
        let since = self.timestamps.as_ref().and_then(|times| times.deprecated_at.as_deref());
        if !quality.deprecated && since.is_none() {
            return None;
        }
        let part = |before: &str, text: Option<&str>, after: &str| {
            text.map(|text| format!("{before}{}{after}", cut(text, 200))).unwrap_or_default()
        };
        Some(format!(
            "`{}` is deprecated{}{}{}",
            self.identity.name,
            part(" since ", since, ""),
            part(": ", quality.deprecation_reason.as_deref(), ""),
            part("; use `", quality.successor.as_deref(), "`"),
        ))
    }
}
