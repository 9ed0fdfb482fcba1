//! Gets a package from any source and verifies the announced hash and the required signature. Installs nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cognitive_contract::compose::VersionRange;
use cognitive_library::Folder;
use cognitive_net::registry::{FileFetcher, OciClient};
use cognitive_packages::archive::{self, ArchiveForm, MAX_BYTES};
use cognitive_packages::index::newest;
use cognitive_packages::signature::{TrustedKey, verify};
use cognitive_packages::{OciReference, Package, PackageError, PackageOrigin, PackageSource, git, oci};
use cognitive_setup::{async_runtime, env_vars, wiring};

use indicatif::ProgressBar;

use super::ReachArgs;
use super::package_index::{IndexLookup, PackageIndex, fetcher_for};
use super::registry_login;
use crate::printer::Printer;

/// The maximum size of a repository archive, which is read into memory. It exceeds that of a package, because a
/// repository also contains other files.
const MAX_REPOSITORY: u64 = 256 << 20;
/// The base address of `github:` repositories.
const GITHUB: &str = "https://github.com";

/// A package, its origin, and warnings for the user.
pub(crate) struct ObtainedPackage {
    pub(crate) package: Package,
    pub(crate) origin: PackageOrigin,
    pub(crate) warnings: Vec<String>,
}

/// Gets packages from their sources.
pub(crate) struct Obtainer<'a> {
    /// The connection options.
    pub(crate) reach: &'a ReachArgs,
    /// The accepted signers; if empty, no signature is required.
    pub(crate) keys: Vec<TrustedKey>,
    /// The signers of installed packages by name. They are required of their package if `keys` is empty.
    pub(crate) signers: BTreeMap<String, TrustedKey>,
    /// The folder that relative paths of a lock file refer to.
    pub(crate) root: PathBuf,
}

/// A package whose signature is not checked yet: the archive, its signature, and its exact source.
struct UnverifiedPackage {
    package: Package,
    signature: Option<String>,
    resolved: String,
    warnings: Vec<String>,
}

impl Obtainer<'_> {
    /// Gets a package. `pinned` is set for a source of a lock file: its paths are relative to the folder of that file.
    pub(crate) fn obtain(
        &self,
        source: &PackageSource,
        pinned: bool,
    ) -> Result<ObtainedPackage, PackageError> {
        let runtime = async_runtime::on_this_thread_and_others()?;
        let waiting = progress_spinner(source);
        let fetched = runtime.block_on(self.fetch(source, pinned));
        waiting.finish_and_clear();
        let fetched = fetched?;
        // A package that is not signed at all is refused where it is installed, with its former signer.
        let signer = self.signers.get(fetched.package.name());
        let signer = signer.filter(|_| self.keys.is_empty() && fetched.signature.is_some());
        let keys = signer.map_or(self.keys.as_slice(), std::slice::from_ref);
        let signed_by = verify(&fetched.package.archive, fetched.signature.as_deref(), keys)?;
        let source = match source {
            PackageSource::Path(path) if !pinned => self.relative(path)?,
            other => other.to_string(),
        };
        let resolved = if fetched.resolved.is_empty() { source.clone() } else { fetched.resolved };
        let origin = PackageOrigin { source, resolved, signed_by };
        Ok(ObtainedPackage { package: fetched.package, origin, warnings: fetched.warnings })
    }

    async fn fetch(&self, source: &PackageSource, pinned: bool) -> Result<UnverifiedPackage, PackageError> {
        match source {
            PackageSource::Path(path) if pinned => read_path(&self.root.join(path)),
            PackageSource::Path(path) => read_path(path),
            PackageSource::Web { url, sha256 } => {
                self.fetch_web(&fetcher_for(url)?, url, sha256.as_deref()).await
            }
            PackageSource::GitHub { repository, path, reference } => {
                fetch_github(repository, path, reference.as_deref()).await
            }
            PackageSource::Git { url, path, reference } => {
                let folder = git::fetch(url, path, reference.as_deref())?;
                let pinned = PackageSource::Git {
                    url: url.clone(),
                    path: path.clone(),
                    reference: Some(folder.commit),
                };
                Ok(UnverifiedPackage::without_signature(
                    Package::from_files(folder.files)?,
                    pinned.to_string(),
                ))
            }
            PackageSource::Oci(reference) => self.fetch_oci(self.oci_client(reference)?, reference).await,
            PackageSource::Registry { name, range } => self.fetch_from_index(name, range).await,
            other => Err(PackageError::new(format!("unsupported package source: `{other}`"))),
        }
    }

    /// Returns whether the signature of a package counts.
    fn requires_signature(&self, name: &str) -> bool {
        !self.keys.is_empty() || self.signers.contains_key(name)
    }

    async fn fetch_web(
        &self,
        fetcher: &FileFetcher,
        url: &str,
        sha256: Option<&str>,
    ) -> Result<UnverifiedPackage, PackageError> {
        let bytes = fetcher.get(url, MAX_BYTES).await?;
        let package = Package::from_archive(bytes, sha256)?;
        let beside = format!("{url}.minisig");
        let signature = if !self.keys.is_empty() {
            Some(text(fetcher.get(&beside, 1 << 16).await?)?)
        } else if self.requires_signature(package.name()) {
            fetcher.get(&beside, 1 << 16).await.ok().map(text).transpose()?
        } else {
            None
        };
        let resolved =
            PackageSource::Web { url: url.to_owned(), sha256: Some(package.sha256.clone()) }.to_string();
        Ok(UnverifiedPackage { package, signature, resolved, warnings: Vec::new() })
    }

    async fn fetch_from_index(&self, name: &str, range: &str) -> Result<UnverifiedPackage, PackageError> {
        let address = self.reach.index_address().ok_or_else(|| {
            PackageError::new(format!("no index is configured for the package: `{name}`")).hint(format!(
                "Name one with `--registry URL` or `{}`, or use a source such as `oci://host/repository`",
                env_vars::REGISTRY
            ))
        })?;
        let index = PackageIndex::at(&address)?;
        match index.find(name, range).await? {
            IndexLookup::Archive(entry) => {
                let place = &entry.distribution;
                let (url, bytes) = index.file(&place.tarball, MAX_BYTES).await?;
                let package = Package::from_archive(bytes, Some(&place.checksum))?;
                check_same(name, package.name())?;
                let signature = match (&place.signature, self.requires_signature(name)) {
                    (Some(signature), true) => Some(text(index.file(signature, 1 << 16).await?.1)?),
                    _ => None,
                };
                let resolved = PackageSource::Web { url, sha256: Some(package.sha256.clone()) }.to_string();
                Ok(UnverifiedPackage {
                    package,
                    signature,
                    resolved,
                    warnings: entry.deprecation().into_iter().collect(),
                })
            }
            IndexLookup::Source(source) => {
                let fetched = self.fetch_listed(&index, &PackageSource::parse(&source)?).await?;
                check_same(name, fetched.package.name())?;
                Ok(fetched)
            }
        }
    }

    /// Gets the source that an entry of the old format names. The user typed the address of the index and not this one, so
    /// it must be public and use TLS, or be on the server of the index. `git` connects by itself and cannot be guarded.
    async fn fetch_listed(
        &self,
        index: &PackageIndex,
        source: &PackageSource,
    ) -> Result<UnverifiedPackage, PackageError> {
        match source {
            PackageSource::Web { url, sha256 } => {
                self.fetch_web(index.fetcher(), url, sha256.as_deref()).await
            }
            PackageSource::GitHub { repository, path, reference } => {
                fetch_github(repository, path, reference.as_deref()).await
            }
            PackageSource::Oci(reference) => {
                let client =
                    OciClient::for_indexed_host(&reference.host, registry_login::find(&reference.host)?)?;
                self.fetch_oci(trust_origins(client)?, reference).await
            }
            other => Err(PackageError::new(format!("the index may not name this source: `{other}`"))
                .hint("If you trust the source, add it by its own address")),
        }
    }

    async fn fetch_oci(
        &self,
        client: OciClient,
        reference: &OciReference,
    ) -> Result<UnverifiedPackage, PackageError> {
        let target = match (&reference.tag, &reference.digest) {
            (None, None) => newest_tag(&client, reference).await?,
            _ => reference.target().to_owned(),
        };
        let manifest = client.manifest(&reference.repository, &target).await?;
        let layer = oci::layer_of(&manifest.bytes)?;
        let bytes = client.blob(&reference.repository, &layer.digest, layer.size).await?;
        let package = Package::from_archive(bytes, Some(&layer.digest))?;
        let resolved = PackageSource::Oci(reference.with_digest(&manifest.digest)).to_string();
        Ok(UnverifiedPackage { package, signature: layer.signature, resolved, warnings: Vec::new() })
    }

    /// Returns a client with the login of this host.
    pub(crate) fn oci_client(&self, reference: &OciReference) -> Result<OciClient, PackageError> {
        let login = registry_login::find(&reference.host)?;
        trust_origins(OciClient::new(&reference.host, login, self.reach.plain_http)?)
    }

    /// Returns a path for the lock file: relative if it is inside its folder, so that it is valid on other machines.
    fn relative(&self, path: &Path) -> Result<String, PackageError> {
        let absolute = |path: &Path| path.canonicalize().map_err(PackageError::io("find", path));
        let (path, root) = (absolute(path)?, absolute(&self.root)?);
        let inside = path.strip_prefix(&root).map(|inside| Path::new(".").join(inside));
        Ok(inside.unwrap_or(path).display().to_string())
    }
}

/// Lets a client trust the origins that the user's environment names.
fn trust_origins(mut client: OciClient) -> Result<OciClient, PackageError> {
    for origin in wiring::environment(env_vars::REGISTRY_TRUST).iter().flat_map(|list| list.split(',')) {
        client = client.with_trusted_origin(origin.trim()).map_err(|_| {
            PackageError::new(format!("invalid origin in `{}`: `{origin}`", env_vars::REGISTRY_TRUST))
                .hint("Write an origin without a path, such as `https://auth.example.com`")
        })?;
    }
    Ok(client)
}

/// Shows a spinner on a terminal while the network is in use.
fn progress_spinner(source: &PackageSource) -> ProgressBar {
    if !Printer.for_people() || matches!(source, PackageSource::Path(_)) {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_message(format!("fetching {source}"));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

impl UnverifiedPackage {
    fn without_signature(package: Package, resolved: String) -> Self {
        Self { package, signature: None, resolved, warnings: Vec::new() }
    }
}

/// Returns the newest version among the tags; `latest` if no tag is a version.
pub(crate) async fn newest_tag(client: &OciClient, reference: &OciReference) -> Result<String, PackageError> {
    let tags = client.tags(&reference.repository).await?;
    let found = newest(tags.iter().map(String::as_str), &VersionRange::any());
    Ok(found.unwrap_or("latest").to_owned())
}

fn read_path(path: &Path) -> Result<UnverifiedPackage, PackageError> {
    if path.is_dir() {
        return Ok(UnverifiedPackage::without_signature(
            Package::from_folder(&Folder::Disk(path.to_owned()))?,
            String::new(),
        ));
    }
    let package = Package::from_archive(read_archive(path)?, None)?;
    let beside = PathBuf::from(format!("{}.minisig", path.display()));
    let signature = std::fs::read_to_string(beside).ok();
    Ok(UnverifiedPackage { package, signature, resolved: String::new(), warnings: Vec::new() })
}

/// Reads an archive on this machine.
pub(crate) fn read_archive(path: &Path) -> Result<Vec<u8>, PackageError> {
    use std::io::Read as _;

    let failed = PackageError::io("read", path);
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(&failed)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(&failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(PackageError::new(format!("the package is larger than 50 MiB: `{}`", path.display())));
    }
    Ok(bytes)
}

async fn fetch_github(
    repository: &str,
    path: &str,
    reference: Option<&str>,
) -> Result<UnverifiedPackage, PackageError> {
    let base = wiring::environment(env_vars::GITHUB).unwrap_or_else(|| GITHUB.to_owned());
    let url =
        format!("{}/{repository}/archive/{}.tar.gz", base.trim_end_matches('/'), reference.unwrap_or("HEAD"));
    let bytes = fetcher_for(&url)?.get(&url, MAX_REPOSITORY).await?;
    let unpacked = archive::read(&bytes, &ArchiveForm::Repository(path.to_owned()))?;
    let pinned = PackageSource::GitHub {
        repository: repository.to_owned(),
        path: path.to_owned(),
        reference: unpacked.commit.or_else(|| reference.map(str::to_owned)),
    };
    Ok(UnverifiedPackage::without_signature(Package::from_files(unpacked.files)?, pinned.to_string()))
}

fn check_same(wanted: &str, found: &str) -> Result<(), PackageError> {
    if wanted == found {
        return Ok(());
    }
    Err(PackageError::new(format!("the index has another package for `{wanted}`: `{found}`")))
}

fn text(bytes: Vec<u8>) -> Result<String, PackageError> {
    String::from_utf8(bytes).map_err(|_| PackageError::new("the signature of the package is damaged"))
}
