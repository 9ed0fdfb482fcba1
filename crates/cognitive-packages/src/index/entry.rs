//! One package in a list: its identity, metadata, dependencies, location and quality. (REG-001, REG-012)
//! Ignores unknown members.

use cognitive_contract::text::cut;
use serde::{Deserialize, Serialize};

use crate::PackageError;
use crate::name::check_name;

/// A package in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegistryEntry {
    /// The identity.
    pub identity: Identity,
    /// The description and other metadata.
    pub metadata: EntryMetadata,
    /// The dependencies.
    pub dependencies: Dependencies,
    /// The location of the archive.
    pub distribution: Distribution,
    /// The quality, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// The dates of events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<Timestamps>,
}

/// The identity of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The name.
    pub name: String,
    /// The namespace of the owner.
    pub namespace: String,
    /// The version.
    pub version: String,
    /// The version of the specification that the package targets.
    pub spec_version: String,
}

/// The metadata of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryMetadata {
    /// At most 500 characters.
    pub description: String,
    /// The author.
    pub author: String,
    /// `exec`, `decision` or `exploration`.
    pub tier: String,
    /// The licence identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// The address of the source code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Search keywords.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
}

/// The dependencies of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependencies {
    /// The minimum runtime version.
    pub runtime_min: String,
    /// The required modules.
    #[serde(default)]
    pub modules: Vec<EntryDependency>,
}

/// A module that another module requires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryDependency {
    /// The name.
    pub name: String,
    /// The accepted versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// True if the module is optional.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// The location of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// The address of the archive. It may be relative to the address of the list.
    pub tarball: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub checksum: String,
    /// The size of the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The paths of the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The address of its minisign signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The address of the signing key. The installing user decides whether to trust it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_key: Option<String>,
}

/// The quality of a package. (REG-011: levels from 1 to 4)
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Quality {
    /// The conformance level, from 1 to 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conformance_level: Option<u8>,
    /// Set if a reviewer trusted by the list has checked the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// True if the package is deprecated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// The replacement package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    /// The reason for the deprecation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation_reason: Option<String>,
}

/// The dates of events of a package.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Timestamps {
    /// The date of the first publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// The date of the deprecation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated_at: Option<String>,
}

/// The deprecation of a package. (REG-008)
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deprecation {
    /// The date, in RFC 3339.
    pub at: String,
    /// The replacement package.
    #[serde(default)]
    pub successor: Option<String>,
    /// The reason.
    pub reason: String,
}

impl RegistryEntry {
    /// Refuses an unusable entry, because its content decides what is fetched and where it is installed.
    pub fn check(&self) -> Result<(), PackageError> {
        let identity = &self.identity;
        check_name(&identity.name)?;
        let refused = |what: &str| {
            PackageError::new(format!("invalid entry of the index: {what}: `{}`", identity.name))
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

    /// The warning for users who install the package; `None` if it is not deprecated. (REG-008)
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
