//! The media port of the runtime: loads bytes, recognises types, converts. Runs CPU work on blocking threads, a few
//! items at a time; a panic there is reported as a broken item.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use cognitive_contract::media::{
    AcceptedForm, Category, Checksum, FormedMedia, LoadedMedia, MediaFacts, MediaSource, MediaType,
    Reference, UrlFetch, WantedMedia,
};
use cognitive_contract::ports::PortFuture;
use cognitive_contract::{ErrorCode, Failure};
use tokio::sync::Semaphore;

use crate::fault::{broken_file, cut_short, no_file, too_many_bytes};
use crate::files::MediaFiles;
use crate::pdf::{self, PdfContent, PdfQuery};
use crate::uploads::Uploads;
use crate::worker::Worker;
use crate::{checksum, image, sniff, sound};

/// The most items that are decoded at a time. Each picture may take about 300 MiB.
const AT_A_TIME: usize = 8;

/// The place where documents are read.
#[derive(Debug, Clone)]
pub enum Documents {
    /// A separate process with limits. Required for documents from untrusted users.
    InWorker(Worker),
    /// This process, which a document can then exhaust. For tests and trusted documents.
    Here,
}

/// Loads and inspects media. Cheap to clone.
#[derive(Clone)]
pub struct Media {
    files: Arc<MediaFiles>,
    uploads: Option<Uploads>,
    urls: Option<Arc<dyn UrlFetch>>,
    documents: Documents,
    places: Arc<Semaphore>,
}

impl std::fmt::Debug for Media {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Media").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Media {
    /// Creates a source of local files, for callers on this machine.
    #[must_use]
    pub fn new(documents: Documents) -> Self {
        let places = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, AT_A_TIME));
        Self {
            files: Arc::default(),
            uploads: None,
            urls: None,
            documents,
            places: Arc::new(Semaphore::new(places)),
        }
    }

    /// Lets remote callers read files below these folders. (SEC-010)
    #[must_use]
    pub fn with_roots(mut self, roots: &[PathBuf]) -> Self {
        self.files = Arc::new(MediaFiles::within_roots(roots));
        self
    }

    /// Adds a store of uploads.
    #[must_use]
    pub fn with_uploads(mut self, uploads: Uploads) -> Self {
        self.uploads = Some(uploads);
        self
    }

    /// Adds a client for URLs.
    #[must_use]
    pub fn with_urls(mut self, urls: Arc<dyn UrlFetch>) -> Self {
        self.urls = Some(urls);
        self
    }

    /// Runs work that takes much memory, as soon as a permit is free.
    async fn compute<T: Send + 'static>(
        &self,
        kind: MediaType,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        // The work owns the permit: it takes memory even after its caller is cancelled.
        let permit = Arc::clone(&self.places).acquire_owned().await;
        look(kind, move || {
            let _permit = permit;
            work()
        })
        .await
    }

    async fn ask(&self, document: Bytes, question: PdfQuery) -> Result<PdfContent, Failure> {
        match &self.documents {
            Documents::InWorker(worker) => {
                let _permit = self.places.acquire().await;
                worker.ask(document, question).await
            }
            Documents::Here => {
                let read = move || pdf::read(&document, question).into_result();
                self.compute(MediaType::Pdf, read).await
            }
        }
    }

    async fn pages(&self, bytes: Bytes) -> Result<MediaFacts, Failure> {
        if !pdf::has_end(&bytes) {
            return Err(cut_short(MediaType::Pdf));
        }
        let mut facts = MediaFacts::new(MediaType::Pdf, u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        match self.ask(bytes, PdfQuery::Pages).await? {
            PdfContent::Pages(pages) => facts.pages = Some(pages),
            _ => return Err(broken_file(MediaType::Pdf, "cannot be read")),
        }
        Ok(facts)
    }

    async fn text(&self, bytes: Bytes) -> Result<FormedMedia, Failure> {
        match self.ask(bytes, PdfQuery::Text).await? {
            PdfContent::Text(text) => Ok(FormedMedia::Text(text)),
            _ => Err(broken_file(MediaType::Pdf, "cannot be read")),
        }
    }
}

impl MediaSource for Media {
    fn load<'a>(&'a self, wanted: &'a WantedMedia<'a>) -> PortFuture<'a, Result<LoadedMedia, Failure>> {
        Box::pin(async move {
            match wanted.reference {
                Reference::Url(url) => match &self.urls {
                    Some(urls) => urls.fetch(url, wanted.largest).await,
                    None => Err(no_file("no_network", "URLs are not fetched here")),
                },
                Reference::File(path) => {
                    let (files, path) = (Arc::clone(&self.files), path.to_owned());
                    let folder = wanted.folder.map(PathBuf::from);
                    let (remote, largest) = (wanted.remote, wanted.largest);
                    let read = move || files.read(&path, folder.as_deref(), remote, largest);
                    Ok(LoadedMedia::new(blocking(read).await?, None))
                }
                Reference::Upload(id) => {
                    let (Some(uploads), Some(owner)) = (self.uploads.clone(), wanted.owner) else {
                        return Err(Failure::new(ErrorCode::UploadNotFound, "unknown upload id"));
                    };
                    let (owner, id, largest) = (owner.to_owned(), id.to_owned(), wanted.largest);
                    blocking(move || uploads.load(&owner, &id, largest)).await
                }
            }
        })
    }

    fn verify<'a>(&'a self, bytes: Bytes, checksum: &'a Checksum<'a>) -> PortFuture<'a, Result<(), Failure>> {
        let (algorithm, value) = (checksum.algorithm.to_owned(), checksum.value.to_owned());
        Box::pin(blocking(move || {
            checksum::verify(&bytes, Checksum { algorithm: &algorithm, value: &value })
        }))
    }

    fn examine(&self, bytes: Bytes, claimed: MediaType) -> PortFuture<'_, Result<MediaFacts, Failure>> {
        Box::pin(async move {
            sniff::check(&bytes, claimed)?;
            match claimed.category() {
                Category::Document => self.pages(bytes).await,
                Category::Image => look(claimed, move || image::examine(&bytes, claimed)).await,
                Category::Audio | Category::Video => {
                    look(claimed, move || sound::examine(&bytes, claimed)).await
                }
            }
        })
    }

    fn fit<'a>(
        &'a self,
        bytes: Bytes,
        facts: &'a MediaFacts,
        form: Option<&'a AcceptedForm>,
    ) -> PortFuture<'a, Result<FormedMedia, Failure>> {
        Box::pin(async move {
            let kind = facts.media_type;
            let Some(form) = form else {
                return match kind {
                    MediaType::Pdf => self.text(bytes).await,
                    _ => Err(unsuitable(kind)),
                };
            };
            if kind.category() == Category::Image {
                let form = form.clone();
                return self.compute(kind, move || image::fit(&bytes, kind, &form)).await;
            }
            if !form.types.contains(&kind) {
                return if kind == MediaType::Pdf { self.text(bytes).await } else { Err(unsuitable(kind)) };
            }
            match form.largest.filter(|largest| facts.bytes > *largest) {
                Some(largest) => Err(too_many_bytes(largest)),
                None => Ok(FormedMedia::AsItIs),
            }
        })
    }
}

/// Refuses audio and video that the model does not accept: this crate does not convert them. (E4011)
fn unsuitable(kind: MediaType) -> Failure {
    Failure::new(ErrorCode::MultimodalNotSupported, format!("the model does not accept {kind}"))
}

/// Runs work on a blocking thread. (E1013 for a panic)
async fn look<T: Send + 'static>(
    kind: MediaType,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(broken_file(kind, "cannot be decoded")))
}

/// Runs work that waits for the disk or reads many bytes, but takes little memory, so it needs no permit.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let failed = |_| Failure::new(ErrorCode::InternalError, "reading was interrupted");
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}
