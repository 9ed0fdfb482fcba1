//! A package index on the web: one file (`…/index.json`, in both formats), or the published API (REG-009), as static
//! files or from a server. All addresses in it are fetched through the guard, so an index cannot redirect to internal
//! addresses.

use cognitive_contract::compose::VersionRange;
use cognitive_net::registry::FileFetcher;
use cognitive_packages::PackageError;
use cognitive_packages::index::{PackageList, RegistryEntry, newest, read};

/// The maximum size of a list. Without it, a hostile index would fill the memory.
const MAX_INDEX: u64 = 64 << 20;

/// An index with its fetcher.
pub(crate) struct PackageIndex {
    base: String,
    fetcher: FileFetcher,
}

/// The entry of an index for a name and a range.
#[derive(Debug)]
pub(crate) enum IndexLookup {
    /// A package with an archive and its address.
    Archive(Box<RegistryEntry>),
    /// A source, in an index of the old format.
    Source(String),
}

impl PackageIndex {
    /// Opens the index at an address that the user named.
    pub(crate) fn at(address: &str) -> Result<Self, PackageError> {
        let base = address.trim_end_matches('/').to_owned();
        let fetcher = fetcher_for(&base)?;
        Ok(Self { base, fetcher })
    }

    /// Returns the newest version that fits.
    pub(crate) async fn find(&self, name: &str, range: &str) -> Result<IndexLookup, PackageError> {
        let wanted = VersionRange::parse(range).unwrap_or_default();
        let list = self.versions(name).await?;
        let version = newest(list.entries.iter().map(|entry| entry.identity.version.as_str()), &wanted);
        if let Some(entry) =
            list.entries.iter().find(|entry| Some(entry.identity.version.as_str()) == version)
        {
            return Ok(IndexLookup::Archive(Box::new(entry.clone())));
        }
        if let Some(old) = list.old.iter().find(|old| wanted.matches(&old.version)) {
            return Ok(IndexLookup::Source(old.source.clone()));
        }
        let known: Vec<&str> = list.entries.iter().map(|entry| entry.identity.version.as_str()).collect();
        let message = match (known.is_empty() && list.old.is_empty(), list.refused.first()) {
            (true, Some(refused)) => format!("no usable entry in the index for `{name}`: {refused}"),
            (true, None) => format!("no such package in the index: `{name}`"),
            (false, _) => format!("no version of `{name}` in the index matches: `{range}`"),
        };
        let hint = if known.is_empty() {
            "`cogn search` lists the packages".to_owned()
        } else {
            format!("Use one of: {}", known.join(", "))
        };
        Err(PackageError::new(message).hint(hint))
    }

    /// Returns all versions of a package.
    pub(crate) async fn versions(&self, name: &str) -> Result<PackageList, PackageError> {
        let mut list = if self.is_one_file() {
            self.list(&self.base).await?
        } else {
            self.fetch_list(&format!("v1/modules/{name}/versions")).await?
        };
        list.entries.retain(|entry| entry.identity.name == name);
        list.old.retain(|old| old.name == name);
        list.refused.retain(|refused| refused.starts_with(&format!("{name}:")));
        Ok(list)
    }

    /// Returns the newest version of each matching package. A server may filter already; a static index is filtered
    /// here.
    pub(crate) async fn search(&self, words: &[String]) -> Result<PackageList, PackageError> {
        let mut list = if self.is_one_file() {
            self.list(&self.base).await?
        } else {
            self.fetch_list("v1/search").await?
        };
        let fits = |text: String| {
            let text = text.to_lowercase();
            words.iter().all(|word| text.contains(&word.to_lowercase()))
        };
        list.entries.retain(|entry| {
            let keywords = entry.metadata.keywords.join(" ");
            fits(format!("{} {} {keywords}", entry.identity.name, entry.metadata.description))
        });
        list.old.retain(|old| fits(format!("{} {} {}", old.name, old.description, old.tags.join(" "))));
        Ok(list)
    }

    /// Returns a file that an entry names: an absolute address, or relative to the index.
    pub(crate) async fn file(&self, address: &str, limit: u64) -> Result<(String, Vec<u8>), PackageError> {
        let url = if address.contains("://") {
            address.to_owned()
        } else {
            let folder = if self.is_one_file() {
                self.base.rsplit_once('/').map_or("", |(folder, _)| folder)
            } else {
                &self.base
            };
            format!("{folder}/{}", address.trim_start_matches("./"))
        };
        let bytes = self.fetcher.get(&url, limit).await?;
        Ok((url, bytes))
    }

    /// Returns the fetcher, which trusts only the server of the index.
    pub(crate) fn fetcher(&self) -> &FileFetcher {
        &self.fetcher
    }

    fn is_one_file(&self) -> bool {
        std::path::Path::new(&self.base).extension().is_some_and(|end| end.eq_ignore_ascii_case("json"))
    }

    /// Tries the static file first; a dynamic server has the same address without `index.json`.
    async fn fetch_list(&self, path: &str) -> Result<PackageList, PackageError> {
        match self.list(&format!("{}/{path}/index.json", self.base)).await {
            Ok(list) => Ok(list),
            Err(first) => self.list(&format!("{}/{path}", self.base)).await.map_err(|_| first),
        }
    }

    async fn list(&self, url: &str) -> Result<PackageList, PackageError> {
        read(&self.fetcher.get(url, MAX_INDEX).await?)
    }
}

/// Returns a fetcher that trusts the origin of one address, because the user typed it.
pub(crate) fn fetcher_for(url: &str) -> Result<FileFetcher, PackageError> {
    let bad = || {
        PackageError::new(format!("invalid URL of an index: `{}`", cognitive_contract::text::cut(url, 120)))
            .hint("Use a URL that begins with `https://`")
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
    let host = rest.split(['/', '?', '#']).next().filter(|host| !host.is_empty()).ok_or_else(bad)?;
    // User name and password in an address belong to the file, not to the origin.
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    FileFetcher::new(&[format!("{scheme}://{host}")]).map_err(|_| bad())
}
