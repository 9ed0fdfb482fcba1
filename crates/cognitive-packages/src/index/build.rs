//! Writes the files of an index from a folder of packages. The result is plain files, so any web server can act as a
//! registry. Their paths are the addresses of the published interface (REG-009) with `index.json` at the end. The same
//! packages and the same time give the same files.

use std::collections::BTreeMap;
use std::path::Path;

use cognitive_contract::compose::VersionRange;
use semver::Version;
use serde::Deserialize;
use serde_json::{Value, json};

use super::entry::{
    Dependencies, Deprecation, Distribution, EntryDependency, EntryMetadata, Identity, Quality,
    RegistryEntry, Timestamps,
};
use super::read::newest;
use crate::archive::{Files, MAX_BYTES};
use crate::name::check_publishable;
use crate::{Package, PackageError};

/// The maximum length of a description. An index is downloaded as a whole.
const MAX_DESCRIPTION: usize = 500;

/// Metadata that the packages do not contain. Read from `registry.json` in the folder.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BuildOptions {
    /// The namespace of the packages.
    pub namespace: String,
    /// The author of the packages.
    pub author: String,
    /// The base address of the served folder. Without it, addresses are relative to the index.
    pub url: Option<String>,
    /// Deprecated packages by name.
    pub deprecated: BTreeMap<String, Deprecation>,
}

/// The files of an index, by their paths.
#[derive(Debug)]
pub struct StaticIndex {
    /// The files to write.
    pub files: Files,
    /// The number of packages.
    pub packages: usize,
    /// The number of versions of all packages.
    pub versions: usize,
}

/// Reads all packages of a folder and builds the files of its index. `now` is the timestamp of the index.
pub fn build(folder: &Path, options: &BuildOptions, now: &str) -> Result<StaticIndex, PackageError> {
    let mut modules: BTreeMap<String, Vec<RegistryEntry>> = BTreeMap::new();
    for name in archives(folder)? {
        let entry = entry_of(folder, &name, options).map_err(|error| {
            let named = PackageError::new(format!("cannot list `{name}`: {}", error.message()));
            error.suggestion().map_or(named.clone(), |hint| named.hint(hint))
        })?;
        let versions = modules.entry(entry.identity.name.clone()).or_default();
        if versions.iter().any(|other| other.identity.version == entry.identity.version) {
            return Err(PackageError::new(format!(
                "two archives have the same version of a package: `{name}`"
            )));
        }
        versions.push(entry);
    }
    if let Some(unknown) = options.deprecated.keys().find(|name| !modules.contains_key(*name)) {
        return Err(PackageError::new(format!("`registry.json` deprecates an unknown package: `{unknown}`")));
    }
    for versions in modules.values_mut() {
        versions.sort_by_cached_key(|entry| std::cmp::Reverse(Version::parse(&entry.identity.version).ok()));
    }
    Ok(files_of(&modules, now))
}

/// The archives of a folder, by name.
fn archives(folder: &Path) -> Result<Vec<String>, PackageError> {
    let failed = PackageError::io("read", folder);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(&failed)? {
        let name = entry.map_err(&failed)?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".tar.gz") && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    if names.is_empty() {
        return Err(PackageError::new(format!("no packages in `{}`", folder.display()))
            .hint("`cogn pack MODULE -o FOLDER` creates one"));
    }
    Ok(names)
}

fn entry_of(folder: &Path, name: &str, options: &BuildOptions) -> Result<RegistryEntry, PackageError> {
    let path = folder.join(name);
    let size = std::fs::metadata(&path).map_err(PackageError::io("read", &path))?.len();
    if size > MAX_BYTES {
        return Err(PackageError::new("it is larger than 50 MiB"));
    }
    let package =
        Package::from_archive(std::fs::read(&path).map_err(PackageError::io("read", &path))?, None)?;
    check_publishable(package.name(), Some(&options.namespace))?;
    let address = |name: &str| match &options.url {
        Some(url) => format!("{}/{name}", url.trim_end_matches('/')),
        None => name.to_owned(),
    };
    let signature = format!("{name}.minisig");
    let manifest = &package.module.manifest;
    let deprecation = options.deprecated.get(package.name());
    Ok(RegistryEntry {
        identity: Identity {
            name: package.name().to_owned(),
            namespace: options.namespace.clone(),
            version: package.version().to_owned(),
            spec_version: "2.2".to_owned(),
        },
        metadata: EntryMetadata {
            description: manifest.responsibility.trim().chars().take(MAX_DESCRIPTION).collect(),
            author: options.author.clone(),
            tier: manifest.tier.word().to_owned(),
            license: None,
            repository: None,
            keywords: Vec::new(),
        },
        dependencies: Dependencies { runtime_min: "2.2.0".to_owned(), modules: dependencies(&package) },
        distribution: Distribution {
            tarball: address(name),
            checksum: format!("sha256:{}", package.sha256),
            size_bytes: Some(size),
            files: package.files.keys().cloned().collect(),
            signature: folder.join(&signature).is_file().then(|| address(&signature)),
            signing_key: None,
        },
        quality: deprecation.map(|deprecation| Quality {
            deprecated: true,
            successor: deprecation.successor.clone(),
            deprecation_reason: Some(deprecation.reason.clone()),
            ..Quality::default()
        }),
        timestamps: deprecation
            .map(|deprecation| Timestamps { deprecated_at: Some(deprecation.at.clone()), created_at: None }),
    })
}

fn dependencies(package: &Package) -> Vec<EntryDependency> {
    let composition = package.module.manifest.composition.as_ref();
    let requires = composition.and_then(|composition| composition.requires.as_deref()).unwrap_or_default();
    let listed = requires.iter().map(|dependency| EntryDependency {
        name: dependency.name.clone(),
        version: dependency.version.clone(),
        optional: dependency.optional,
    });
    listed.collect()
}

fn files_of(modules: &BTreeMap<String, Vec<RegistryEntry>>, now: &str) -> StaticIndex {
    let latest = |versions: &[RegistryEntry]| -> Option<RegistryEntry> {
        let names = || versions.iter().map(|entry| entry.identity.version.as_str());
        let version = newest(names(), &VersionRange::any()).or_else(|| names().next())?;
        versions.iter().find(|entry| entry.identity.version == version).cloned()
    };
    let all: BTreeMap<&String, RegistryEntry> =
        modules.iter().filter_map(|(name, versions)| Some((name, latest(versions)?))).collect();
    let mut files = Files::new();
    let mut put = |path: String, value: &Value| {
        files.insert(path, format!("{value:#}\n").into_bytes());
    };
    let versions = modules.values().map(Vec::len).sum();
    put(
        "index.json".to_owned(),
        &json!({
            "version": "2.0.0", "updated": now, "modules": all, "categories": {}, "featured": [],
            "stats": { "total_modules": modules.len(), "total_versions": versions },
        }),
    );
    let list = json!({ "modules": all.values().collect::<Vec<_>>() });
    put("v1/modules/index.json".to_owned(), &list);
    // A web server ignores the query string, so clients search the list themselves.
    put("v1/search/index.json".to_owned(), &list);
    put("v1/categories/index.json".to_owned(), &json!({ "categories": {} }));
    for (name, versions) in modules {
        put(format!("v1/modules/{name}/index.json"), &json!(all.get(name)));
        put(format!("v1/modules/{name}/versions/index.json"), &json!({ "versions": versions }));
        for entry in versions {
            put(format!("v1/modules/{name}/{}/index.json", entry.identity.version), &json!(entry));
        }
    }
    StaticIndex { files, packages: modules.len(), versions }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::read;
    use crate::package::tests::files;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn folder(packages: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, version) in packages {
            let package = Package::from_files(files(name, version)).unwrap();
            std::fs::write(dir.path().join(package.file_name()), &package.archive).unwrap();
        }
        dir
    }

    #[test]
    fn reg_009_an_index_is_plain_files_that_are_read_again() {
        let dir = folder(&[("m", "1.0.0"), ("m", "1.10.0"), ("m", "2.0.0-beta.1"), ("n", "0.1.0")]);
        std::fs::write(dir.path().join("n-0.1.0.tar.gz.minisig"), "signed").unwrap();
        let options = BuildOptions {
            namespace: "acme".to_owned(),
            author: "Acme".to_owned(),
            ..BuildOptions::default()
        };
        let index = build(dir.path(), &options, NOW).unwrap();
        assert_eq!((index.packages, index.versions), (2, 4));
        let list = |path: &str| read(&index.files[path]).unwrap();
        let names = |path: &str| -> Vec<String> {
            list(path)
                .entries
                .iter()
                .map(|entry| format!("{} {}", entry.identity.name, entry.identity.version))
                .collect()
        };
        assert_eq!(names("index.json"), ["m 1.10.0", "n 0.1.0"]);
        assert_eq!(names("v1/modules/index.json"), ["m 1.10.0", "n 0.1.0"]);
        assert_eq!(names("v1/modules/m/versions/index.json"), ["m 2.0.0-beta.1", "m 1.10.0", "m 1.0.0"]);
        assert_eq!(names("v1/modules/m/1.0.0/index.json"), ["m 1.0.0"]);
        let entry = &list("v1/modules/n/index.json").entries[0];
        assert_eq!(entry.distribution.signature.as_deref(), Some("n-0.1.0.tar.gz.minisig"));
        assert_eq!(index.files, build(dir.path(), &options, NOW).unwrap().files);
    }

    #[test]
    fn reg_005_008_reserved_names_and_unknown_deprecations_are_refused() {
        let dir = folder(&[("m", "1.0.0")]);
        let mut options = BuildOptions { namespace: "official".to_owned(), ..BuildOptions::default() };
        assert!(build(dir.path(), &options, NOW).is_err());
        options.namespace = "acme".to_owned();
        let deprecation = Deprecation { at: NOW.to_owned(), successor: None, reason: "old".to_owned() };
        options.deprecated.insert("m".to_owned(), deprecation.clone());
        let index = build(dir.path(), &options, NOW).unwrap();
        assert!(read(&index.files["index.json"]).unwrap().entries[0].deprecation().is_some());
        options.deprecated.insert("absent".to_owned(), deprecation);
        assert!(build(dir.path(), &options, NOW).is_err());
        assert!(build(folder(&[("core-x", "1.0.0")]).path(), &BuildOptions::default(), NOW).is_err());
    }
}
