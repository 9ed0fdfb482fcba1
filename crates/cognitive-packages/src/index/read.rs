//! Reads a list of packages: the current form, a map of entries (REG-007), or a list of them. Also reads the old form,
//! which has a source instead of an archive. A bad entry does not hide the others; it is reported by name.

use std::cmp::Ordering;

use cognitive_contract::compose::VersionRange;
use semver::Version;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::RegistryEntry;
use crate::PackageError;
use crate::name::check_name;

/// The content of a list.
#[derive(Debug, Default)]
pub struct PackageList {
    /// Packages with an archive.
    pub entries: Vec<RegistryEntry>,
    /// Packages of the old form.
    pub old: Vec<OldEntry>,
    /// The unusable entries, with reasons.
    pub refused: Vec<String>,
}

/// A package of the old form.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OldEntry {
    /// The name, which is the key in the map.
    #[serde(skip)]
    pub name: String,
    /// The description.
    #[serde(default)]
    pub description: String,
    /// The version.
    #[serde(default)]
    pub version: String,
    /// The source, in the notation of `cogn add`.
    pub source: String,
    /// Search keywords.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The author.
    #[serde(default)]
    pub author: String,
}

/// Reads a list.
pub fn read(bytes: &[u8]) -> Result<PackageList, PackageError> {
    let bad = |reason: &str| PackageError::new(format!("cannot read the index: {reason}"));
    let value: Value = serde_json::from_slice(bytes).map_err(|error| bad(&error.to_string()))?;
    let mut list = PackageList::default();
    match value {
        Value::Array(entries) => entries.into_iter().for_each(|entry| list.take(None, entry)),
        Value::Object(file) if file.contains_key("identity") => list.take(None, Value::Object(file)),
        Value::Object(mut file) => {
            match file
                .shift_remove("modules")
                .or_else(|| file.shift_remove("versions"))
                .or_else(|| file.shift_remove("results"))
            {
                Some(Value::Object(modules)) => list.take_map(modules),
                Some(Value::Array(entries)) => entries.into_iter().for_each(|entry| list.take(None, entry)),
                _ => return Err(bad("it has no `modules`")),
            }
        }
        _ => return Err(bad("it is neither an object nor a list")),
    }
    Ok(list)
}

impl PackageList {
    fn take_map(&mut self, modules: Map<String, Value>) {
        for (name, entry) in modules {
            self.take(Some(name), entry);
        }
    }

    fn take(&mut self, name: Option<String>, entry: Value) {
        let shown = name.clone().unwrap_or_else(|| "an entry".to_owned());
        let taken = if entry.get("identity").is_some() {
            self.take_entry(name.as_deref(), entry)
        } else {
            self.add_old_entry(name, entry)
        };
        if let Err(reason) = taken {
            self.refused.push(format!("{shown}: {reason}"));
        }
    }

    fn take_entry(&mut self, name: Option<&str>, entry: Value) -> Result<(), String> {
        let entry: RegistryEntry = serde_json::from_value(entry).map_err(|error| error.to_string())?;
        entry.check().map_err(|refused| refused.message().to_owned())?;
        if name.is_some_and(|name| name != entry.identity.name) {
            return Err(format!("it has another name inside: `{}`", entry.identity.name));
        }
        self.entries.push(entry);
        Ok(())
    }

    fn add_old_entry(&mut self, name: Option<String>, entry: Value) -> Result<(), String> {
        let name = name.ok_or("it has no name")?;
        check_name(&name).map_err(|refused| refused.message().to_owned())?;
        let old: OldEntry = serde_json::from_value(entry).map_err(|error| error.to_string())?;
        self.old.push(OldEntry { name, ..old });
        Ok(())
    }
}

/// The newest matching version. Stable versions come before pre-releases. (REG-006, COMP-020)
#[must_use]
pub fn newest<'a>(versions: impl Iterator<Item = &'a str>, range: &VersionRange) -> Option<&'a str> {
    let parsed = versions
        .filter(|version| range.matches(version))
        .filter_map(|text| Some((Version::parse(text).ok()?, text)));
    let order = |one: &(Version, &str), other: &(Version, &str)| -> Ordering {
        let stable = |version: &Version| version.pre.is_empty();
        stable(&one.0).cmp(&stable(&other.0)).then(one.0.cmp(&other.0))
    };
    parsed.max_by(order).map(|(_, text)| text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(name: &str, version: &str) -> Value {
        json!({
            "identity": { "name": name, "namespace": "acme", "version": version, "spec_version": "2.2" },
            "metadata": { "description": "Judges.", "author": "A", "tier": "decision", "description_zh": "x", "keywords": ["k"] },
            "dependencies": { "runtime_min": "2.2.0", "modules": [{ "name": "other", "version": ">=1.0.0" }] },
            "distribution": { "tarball": "https://example.com/m.tar.gz", "checksum": format!("sha256:{}", "a".repeat(64)) },
            "quality": { "conformance_level": 4, "successor": null, "badges": [] },
        })
    }

    #[test]
    fn reg_007_both_forms_are_read() {
        let v2 = json!({ "version": "2", "updated": "2026-01-01T00:00:00Z", "modules": { "m": entry("m", "1.0.0") }, "categories": {} });
        let list = read(v2.to_string().as_bytes()).unwrap();
        assert_eq!(list.entries[0].identity.name, "m");
        assert_eq!(list.entries[0].dependencies.modules[0].name, "other");
        let v1 = json!({ "modules": { "m": { "description": "Judges.", "version": "1.0.0", "source": "github:o/r/m",
            "tags": ["a"], "author": "A" } } });
        let list = read(v1.to_string().as_bytes()).unwrap();
        assert_eq!((list.old[0].name.as_str(), list.old[0].source.as_str()), ("m", "github:o/r/m"));
        assert_eq!(
            read(json!([entry("m", "1.0.0"), entry("m", "1.1.0")]).to_string().as_bytes())
                .unwrap()
                .entries
                .len(),
            2
        );
    }

    #[test]
    fn reg_001_011_012_one_bad_entry_is_named_and_the_others_stay() {
        let with = |name: &str, pointer: &str, value: Value| {
            let mut entry = entry(name, "1.0.0");
            *entry.pointer_mut(pointer).unwrap() = value;
            entry
        };
        let modules = json!({
            "good": entry("good", "1.0.0"),
            "hash": with("hash", "/distribution/checksum", json!("sha256:3f4e…")),
            "level": with("level", "/quality/conformance_level", json!(5)),
            "version": with("version", "/identity/version", json!("one")),
            "name": entry("other-name", "1.0.0"),
            "../x": entry("../x", "1.0.0"),
            "empty": {},
        });
        let list = read(json!({ "modules": modules }).to_string().as_bytes()).unwrap();
        assert_eq!(list.entries.len(), 1, "{:?}", list.refused);
        assert_eq!(list.refused.len(), 6, "{:?}", list.refused);
        for text in ["", "7", "{}", "<html>"] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn reg_008_a_deprecated_entry_says_so() {
        let mut value = entry("m", "1.0.0");
        value["quality"] =
            json!({ "deprecated": true, "successor": "n", "deprecation_reason": "n is better" });
        value["timestamps"] = json!({ "deprecated_at": "2026-01-01T00:00:00Z" });
        let list = read(json!([value]).to_string().as_bytes()).unwrap();
        let warning = list.entries[0].deprecation().unwrap();
        assert_eq!(warning, "`m` is deprecated since 2026-01-01T00:00:00Z: n is better; use `n`");
        assert_eq!(
            read(json!([entry("m", "1.0.0")]).to_string().as_bytes()).unwrap().entries[0].deprecation(),
            None
        );
    }

    #[test]
    fn reg_006_latest_is_the_newest_stable_version() {
        let versions = ["1.0.0", "1.10.0", "1.9.0", "2.0.0-beta.1", "junk"];
        let of = |range: &str| newest(versions.into_iter(), &VersionRange::parse(range).unwrap());
        assert_eq!(of("latest"), Some("1.10.0"));
        assert_eq!(of("~1.9.0"), Some("1.9.0"));
        assert_eq!(of("2.0.0-beta.1"), Some("2.0.0-beta.1"));
        assert_eq!(of(">=3.0.0"), None);
    }
}
