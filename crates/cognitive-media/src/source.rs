//! The port of the runtime, put together: where bytes come from, what they are, how they fit.
//! Whatever computes runs on threads that may block, a few at a time, and a panic there is a broken item.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use cognitive_contract::media::{
    AcceptedForm, Category, Checksum, Fitted, LoadedMedia, MediaFacts, MediaSource, MediaType, Reference,
    UrlFetch, WantedMedia,
};
use cognitive_contract::ports::PortFuture;
use cognitive_contract::{ErrorCode, Failure};
use tokio::sync::Semaphore;

use crate::fault::{broken, cut_short, no_file, too_many_bytes};
use crate::files::MediaFiles;
use crate::pdf::{self, PdfContent, PdfQuery};
use crate::uploads::Uploads;
use crate::worker::Worker;
use crate::{checksum, image, sniff, sound};

/// How many items are decoded at a time, at most. Each may take 200 MiB.
const AT_A_TIME: usize = 8;

/// Who reads documents.
#[derive(Debug, Clone)]
pub enum Documents {
    /// A process of its own, with limits. For everybody who takes documents from strangers.
    InWorker(Worker),
    /// This process, which a document then can fill. For tests and for one's own documents.
    Here,
}

/// Gets media and looks into them. Cheap to clone.
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
    /// Media from files, for callers on this machine.
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

    /// Files below these folders are open to callers from outside. (SEC-010)
    #[must_use]
    pub fn with_roots(mut self, roots: &[PathBuf]) -> Self {
        self.files = Arc::new(MediaFiles::below(roots));
        self
    }

    /// Uploads can be referred to.
    #[must_use]
    pub fn with_uploads(mut self, uploads: Uploads) -> Self {
        self.uploads = Some(uploads);
        self
    }

    /// Addresses are fetched.
    #[must_use]
    pub fn with_urls(mut self, urls: Arc<dyn UrlFetch>) -> Self {
        self.urls = Some(urls);
        self
    }

    /// Does what takes memory, as soon as there is a place for it.
    async fn compute<T: Send + 'static>(
        &self,
        kind: MediaType,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        // The permit goes along: work whose caller has gone still takes its memory.
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
            _ => return Err(broken(MediaType::Pdf, "cannot be read")),
        }
        Ok(facts)
    }

    async fn text(&self, bytes: Bytes) -> Result<Fitted, Failure> {
        match self.ask(bytes, PdfQuery::Text).await? {
            PdfContent::Text(text) => Ok(Fitted::Text(text)),
            _ => Err(broken(MediaType::Pdf, "cannot be read")),
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
                        return Err(Failure::new(ErrorCode::UploadNotFound, "no upload has this id"));
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
    ) -> PortFuture<'a, Result<Fitted, Failure>> {
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
                None => Ok(Fitted::AsItIs),
            }
        })
    }
}

/// Sound and film are passed on as they are or not at all: nothing here converts them. (E4011)
fn unsuitable(kind: MediaType) -> Failure {
    Failure::new(ErrorCode::MultimodalNotSupported, format!("the model does not take {kind}"))
}

/// Does what takes time, where that is allowed. (E1013 for a panic)
async fn look<T: Send + 'static>(
    kind: MediaType,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(broken(kind, "cannot be decoded")))
}

/// Work that waits for the disk or reads over many bytes, but takes no memory of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let failed = |_| Failure::new(ErrorCode::InternalError, "reading was interrupted");
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}
