//! A package: the files of one loadable module, under its own name and version. Refuses to pack or install a module
//! that cannot be run. (REG-002, REG-003)

use cognitive_contract::Module;
use cognitive_contract::text::hex;
use cognitive_library::{Folder, ModuleLoadError, files_of, load};
use sha2::{Digest as _, Sha256};

use crate::archive::{self, ArchiveForm, Files};
use crate::name::check_name;
use crate::{PackageError, path_fault};

/// The files that every package has.
const REQUIRED: [&str; 3] = ["module.yaml", "prompt.md", "schema.json"];

/// A module in its distributable form.
#[derive(Debug)]
pub struct Package {
    /// The loaded module.
    pub module: Module,
    /// Its files.
    pub files: Files,
    /// The archive.
    pub archive: Vec<u8>,
    /// The hash of the archive, 64 hexadecimal digits.
    pub sha256: String,
    /// The hash of the files, independent of their packing.
    pub tree: String,
}

impl Package {
    /// Packs a folder.
    pub fn from_folder(folder: &Folder) -> Result<Self, PackageError> {
        let files = files_of(folder).map_err(|failure| PackageError::new(failure.message()))?;
        Self::from_files(files)
    }

    /// Packs files from any source.
    pub fn from_files(files: Files) -> Result<Self, PackageError> {
        if let Some((path, fault)) = files.keys().find_map(|path| Some((path, path_fault(path)?))) {
            return Err(PackageError::new(format!("cannot pack a file: {fault}: `{path}`")));
        }
        let module = load_module(&files)?;
        let archive = archive::write(&module.manifest.name, &files)
            .map_err(|error| PackageError::new(format!("cannot pack the module: {error}")))?;
        // This program must be able to read the result.
        archive::read(&archive, &ArchiveForm::Package)?;
        let sha256 = sha256(&archive);
        Ok(Self { module, tree: tree_digest(&files), files, archive, sha256 })
    }

    /// Reads an archive. With `expected`, the hash is compared before anything is unpacked. (SEC-025)
    pub fn from_archive(bytes: Vec<u8>, expected: Option<&str>) -> Result<Self, PackageError> {
        let sha256 = sha256(&bytes);
        if let Some(expected) = expected.map(|text| text.strip_prefix("sha256:").unwrap_or(text))
            && !expected.eq_ignore_ascii_case(&sha256)
        {
            return Err(PackageError::new(format!(
                "the package has the wrong hash: expected `sha256:{expected}`, found: `sha256:{sha256}`"
            ))
            .hint("Do not use it. Contact its publisher, or check that no proxy changes downloads"));
        }
        let unpacked = archive::read(&bytes, &ArchiveForm::Package)?;
        let module = load_module(&unpacked.files)?;
        if unpacked.top != module.manifest.name {
            return Err(PackageError::new(format!(
                "the folder in the package must have the name of the module `{}`, found: `{}`",
                module.manifest.name, unpacked.top
            )));
        }
        let tree = tree_digest(&unpacked.files);
        Ok(Self { module, files: unpacked.files, archive: bytes, sha256, tree })
    }

    /// The name of the module.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.module.manifest.name
    }

    /// The version of the module.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.module.manifest.version
    }

    /// The file name of the archive. (REG-002)
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{}.tar.gz", self.name(), self.version())
    }
}

/// The hash of bytes, as 64 hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The hash of files: the path, length and bytes of each. Different trees never produce the same hash input.
#[must_use]
pub fn tree_digest(files: &Files) -> String {
    let mut hash = Sha256::new();
    for (path, bytes) in files {
        hash.update(format!("{path}\0{}\0", bytes.len()));
        hash.update(bytes);
    }
    hex(&hash.finalize())
}

/// Loads the module from its files.
fn load_module(files: &Files) -> Result<Module, PackageError> {
    if let Some(missing) = REQUIRED.iter().find(|name| !files.contains_key(**name)) {
        return Err(PackageError::new(format!(
            "a package needs `module.yaml`, `prompt.md` and `schema.json`; missing: `{missing}`"
        ))
        .hint("`cogn migrate` converts modules of older formats"));
    }
    let folder = Folder::memory("package", files.clone());
    let module = load(&folder).map_err(|error| {
        let failure = ModuleLoadError::into_failure(error);
        PackageError::new(format!("cannot load the module: {}", failure.message()))
            .hint("`cogn validate FOLDER` lists the errors")
    })?;
    check_name(&module.manifest.name)?;
    if semver::Version::parse(&module.manifest.version).is_err() {
        return Err(PackageError::new(format!(
            "the version is not of the form `1.2.3`: `{}`",
            module.manifest.version
        )));
    }
    Ok(module)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The files of a module that loads.
    pub(crate) fn files(name: &str, version: &str) -> Files {
        let manifest =
            format!("name: {name}\nversion: {version}\nresponsibility: Judge texts.\ntier: decision\n");
        let schema = r#"{"input": {"type": "object"}, "data": {"type": "object", "properties": {"rationale": {"type": "string"}}}}"#;
        [("module.yaml", manifest.as_str()), ("prompt.md", "Judge."), ("schema.json", schema)]
            .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
            .into()
    }

    #[test]
    fn reg_002_what_is_packed_is_the_same_after_unpacking() {
        let packed = Package::from_files(files("m", "1.0.0")).unwrap();
        assert_eq!(packed.file_name(), "m-1.0.0.tar.gz");
        let read = Package::from_archive(packed.archive.clone(), Some(&format!("sha256:{}", packed.sha256)))
            .unwrap();
        assert_eq!((&read.files, &read.tree, read.name()), (&packed.files, &packed.tree, "m"));
        assert_eq!(read.module.digest, packed.module.digest);
    }

    #[test]
    fn reg_003_sec_025_another_hash_is_refused_before_unpacking() {
        let refused = Package::from_archive(b"not even an archive".to_vec(), Some("sha256:00")).unwrap_err();
        assert!(refused.message().starts_with("the package has the wrong hash"), "{refused}");
    }

    #[test]
    fn reg_002_a_missing_file_a_module_that_does_not_load_and_a_wrong_version_are_refused() {
        for name in REQUIRED {
            let mut files = files("m", "1.0.0");
            files.remove(name);
            let refused = Package::from_files(files).unwrap_err();
            assert!(refused.message().ends_with(&format!("missing: `{name}`")), "{refused}");
        }
        let mut broken = files("m", "1.0.0");
        broken.insert("schema.json".to_owned(), b"{".to_vec());
        assert!(Package::from_files(broken).unwrap_err().message().starts_with("cannot load the module: "));
        assert!(Package::from_files(files("m", "one")).is_err());
        assert!(Package::from_files(files("con", "1.0.0")).is_err());
    }

    #[test]
    fn the_folder_has_the_name_of_the_module() {
        let bytes = archive::write("other", &files("m", "1.0.0")).unwrap();
        let refused = Package::from_archive(bytes, None).unwrap_err();
        assert!(refused.message().ends_with("the name of the module `m`, found: `other`"), "{refused}");
    }

    #[test]
    fn the_hash_of_a_tree_knows_where_a_file_ends() {
        let tree = |files: [(&str, &[u8]); 2]| {
            tree_digest(&files.map(|(path, bytes)| (path.to_owned(), bytes.to_vec())).into())
        };
        assert_ne!(tree([("a", b"1"), ("b", b"2")]), tree([("a", b"1b"), ("b", b"")]));
        assert_ne!(tree([("a", b"1"), ("b", b"2")]), tree([("a", b"2"), ("b", b"1")]));
    }
}
