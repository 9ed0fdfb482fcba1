//! The formats of a module folder, detected by file names and manifest keys.
//! The manifest's `version` is the module's own version and is ignored here.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// A module format. The order is oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Format {
    /// Six files; recognised and readable, deprecated.
    #[serde(rename = "v0")]
    V0,
    /// `MODULE.md` with front matter, and `schema.json`; deprecated.
    #[serde(rename = "v1")]
    V1,
    /// `module.yaml` without tier, overflow and enums; legacy.
    #[serde(rename = "v2.1")]
    V21,
    /// `module.yaml` with tier, overflow or enums.
    #[serde(rename = "v2.2")]
    V22,
    /// `module.yaml` with response or modalities.
    #[serde(rename = "v2.5")]
    V25,
}

impl Format {
    /// Detects the format from the file names in the folder. Names are compared exactly. A folder with
    /// `module.yaml` is at least v2.1; [`Format::from_manifest`] is more specific.
    #[must_use]
    pub fn from_files<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut found = None;
        for name in names {
            let format = match name {
                "module.yaml" => Self::V21,
                "MODULE.md" => Self::V1,
                "module.md" => Self::V0,
                _ => continue,
            };
            found = found.max(Some(format));
        }
        found
    }

    /// Returns the sub-version of a `module.yaml`.
    #[must_use]
    pub fn from_manifest(manifest: &Value) -> Self {
        let has = |keys: &[&str]| keys.iter().any(|key| manifest.get(key).is_some());
        if has(&["response", "modalities"]) {
            Self::V25
        } else if has(&["tier", "overflow", "enums"]) {
            Self::V22
        } else {
            Self::V21
        }
    }

    /// Returns whether answers of this format are always wrapped.
    #[must_use]
    pub fn is_legacy(self) -> bool {
        self <= Self::V21
    }

    /// Returns the name of the format.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::V0 => "v0",
            Self::V1 => "v1",
            Self::V21 => "v2.1",
            Self::V22 => "v2.2",
            Self::V25 => "v2.5",
        }
    }

    /// Returns the deprecation notice of an old format; `None` for current formats.
    #[must_use]
    pub fn deprecation(self) -> Option<&'static str> {
        match self {
            Self::V0 => Some("module format v0 is deprecated; its migration needs a manual review"),
            Self::V1 => Some("module format v1 is deprecated since 2025-12-01; run `cogn migrate`"),
            Self::V21 => Some(
                "module format v2.1 is deprecated from 2026-12-01: add `tier` to `module.yaml`, or run `cogn migrate`",
            ),
            Self::V22 | Self::V25 => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fmt_004_the_newest_file_decides_and_case_matters() {
        assert_eq!(Format::from_files(["module.md", "MODULE.md", "module.yaml"]), Some(Format::V21));
        assert_eq!(Format::from_files(["module.md", "MODULE.md"]), Some(Format::V1));
        assert_eq!(Format::from_files(["module.md"]), Some(Format::V0));
        assert_eq!(Format::from_files(["Module.yaml", "MODULE.MD", "schema.json"]), None);
    }

    #[test]
    fn fmt_005_mig_009_keys_decide_the_sub_version_and_version_does_not() {
        assert_eq!(Format::from_manifest(&json!({ "version": "2.5.0" })), Format::V21);
        assert_eq!(Format::from_manifest(&json!({ "tier": "exec" })), Format::V22);
        assert_eq!(Format::from_manifest(&json!({ "tier": "exec", "response": {} })), Format::V25);
        assert_eq!(Format::from_manifest(&json!({ "modalities": {} })), Format::V25);
    }

    #[test]
    fn gen_005_old_formats_say_so_and_name_themselves() {
        for old in [Format::V0, Format::V1, Format::V21] {
            assert!(old.deprecation().unwrap().contains(old.word()));
        }
        assert_eq!(Format::V25.deprecation(), None);
    }
}
