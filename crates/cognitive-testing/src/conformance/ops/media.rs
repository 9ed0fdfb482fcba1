//! Operations on media: whole items through the pipeline, and addresses through the guard of the fetcher.
//! Only the network is fake: an address returns the page that the case defines, or fails.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use cognitive_contract::media::{LoadedMedia, MediaLimits, MediaSource, UrlFetch};
use cognitive_contract::ports::{ModuleSource, NullSink, PortFuture};
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_library::{Folder, ModuleLoadError, load};
use cognitive_media::{Documents, Media};
use cognitive_net::fetch::{self, Policy};
use cognitive_runtime::{Host, Replay, RunRequest, run};
use serde_json::{Map, Value, json};

use super::{Arguments, Outcome, VectorStop, broken_vector, files, runs};

/// The pages at the addresses of a case.
#[derive(Debug, Default)]
pub(super) struct Web {
    pages: BTreeMap<String, WebPage>,
    fetches: AtomicUsize,
}

#[derive(Debug)]
struct WebPage {
    status: u64,
    content_type: Option<String>,
    bytes: Bytes,
}

impl Web {
    /// Reads the `http` argument of a case; without it, every address fails.
    pub(super) fn from_arguments(given: Arguments<'_>) -> Result<Self, VectorStop> {
        let mut web = Self::default();
        let pages = given.get("http").map(|_| given.object("http")).transpose()?;
        for (url, page) in pages.into_iter().flatten() {
            let page = given.nested_arguments(page)?;
            let status =
                page.value("status")?.as_u64().ok_or_else(|| broken_vector("`status` is not a number"))?;
            let content_type = page.get("content_type").and_then(Value::as_str).map(str::to_owned);
            let bytes = Bytes::from(files::bytes(page.text("base64")?)?);
            web.pages.insert(url.clone(), WebPage { status, content_type, bytes });
        }
        Ok(web)
    }

    /// The number of fetches, including failed ones.
    pub(super) fn fetches(&self) -> usize {
        self.fetches.load(Ordering::Relaxed)
    }
}

impl UrlFetch for Web {
    fn fetch<'a>(&'a self, url: &'a str, largest: u64) -> PortFuture<'a, Result<LoadedMedia, Failure>> {
        self.fetches.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let failed = |reason: &str| {
                Failure::new(ErrorCode::MediaFetchFailed, "the address does not exist")
                    .with_detail("reason", json!(reason))
            };
            let page = self.pages.get(url).ok_or_else(|| failed("dns"))?;
            if !(200..300).contains(&page.status) {
                return Err(failed("http_status"));
            }
            if page.bytes.len() as u64 > largest {
                return Err(Failure::new(
                    ErrorCode::MediaTooLarge,
                    "the content of the address is too large",
                ));
            }
            Ok(LoadedMedia::new(page.bytes.clone(), page.content_type.clone()))
        })
    }
}

/// The media source of a run, with this web. Documents are parsed in this process, because a vector is
/// trusted.
pub(super) fn source(web: &Arc<Web>) -> Arc<dyn MediaSource> {
    Arc::new(Media::new(Documents::Here).with_urls(Arc::clone(web) as Arc<dyn UrlFetch>))
}

/// A module in a folder on disk, so that items can name files in it.
struct ModuleOnDisk {
    folder: Folder,
    place: PathBuf,
}

impl ModuleSource for ModuleOnDisk {
    fn module(&self, _: &str) -> Result<Arc<Module>, Failure> {
        let mut module = load(&self.folder).map_err(ModuleLoadError::into_failure)?;
        module.folder = Some(self.place.clone());
        Ok(Arc::new(module))
    }
}

/// Judges one item by running a module that accepts it.
pub(super) fn check_media(given: Arguments<'_>) -> Outcome {
    let web = Arc::new(Web::from_arguments(given)?);
    let place =
        tempfile::tempdir().map_err(|error| broken_vector(format!("no folder for files: {error}")))?;
    if given.get("files").is_some() {
        write(place.path(), given.object("files")?)?;
    }
    let manifest = json!({ "tier": "decision", "modalities": given.value("modalities")? });
    let schema = json!({ "input": { "type": "object" }, "data": { "type": "object" } });
    let folder = files::folder(
        [
            ("module.yaml", manifest.to_string()),
            ("schema.json", schema.to_string()),
            ("prompt.md", "Look.".to_owned()),
        ]
        .into_iter()
        .map(|(path, text)| (path.to_owned(), text.into_bytes()))
        .collect(),
    );
    let answer = json!({
        "ok": true, "meta": { "confidence": 1, "risk": "none", "explain": "seen" },
        "data": { "rationale": "There is an item." },
    });
    let modules = ModuleOnDisk { folder, place: place.path().to_owned() };
    let mut host = Host::new(Arc::new(modules), Arc::new(Replay::text(answer.to_string())));
    host.take_media(source(&web), limits(given)?);
    let request = RunRequest::new("sample", json!({ "item": given.value("item")? }));
    let envelope = runs::wait(run(&host, request, &mut NullSink))?;
    Ok(match envelope.error() {
        Some(error) => json!({ "accepted": false, "code": error.code() }),
        None => json!({ "accepted": true }),
    })
}

fn write(place: &Path, given: &Map<String, Value>) -> Result<(), VectorStop> {
    for (path, bytes) in files::files(given)? {
        let inside = cognitive_library::folder::safe_relative(&path);
        let file = inside
            .map(|inside| place.join(inside))
            .ok_or_else(|| broken_vector(format!("no place: `{path}`")))?;
        let made = file.parent().map_or(Ok(()), fs::create_dir_all);
        let written = made.and_then(|()| fs::write(&file, bytes));
        written.map_err(|error| broken_vector(format!("cannot write `{path}`: {error}")))?;
    }
    Ok(())
}

fn limits(given: Arguments<'_>) -> Result<MediaLimits, VectorStop> {
    let mut limits = MediaLimits::default();
    let given = given.child("limits")?;
    if let Some(megabytes) = given.get("max_media_size_mb") {
        let megabytes =
            megabytes.as_u64().ok_or_else(|| broken_vector("`max_media_size_mb` is not a whole number"))?;
        limits.largest = megabytes << 20;
    }
    Ok(limits)
}

/// Judges an address. `http` is allowed, so that only the address is judged and not its scheme.
pub(super) fn check_url(given: Arguments<'_>) -> Outcome {
    let names = given.get("dns").map(|_| given.object("dns")).transpose()?;
    let resolve = |host: &str| -> Vec<IpAddr> {
        let addresses = names.and_then(|names| names.get(host)).and_then(Value::as_array);
        addresses.into_iter().flatten().filter_map(|address| address.as_str()?.parse().ok()).collect()
    };
    let verdict = fetch::check_url(given.text("url")?, resolve, &Policy::default().with_http());
    // An unresolvable name is not a blocked one.
    let blocked = verdict.err().is_some_and(|refusal| refusal.reason().is_block());
    Ok(json!({ "blocked": blocked }))
}
