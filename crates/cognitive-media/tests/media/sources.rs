//! Sources of bytes: files, uploads, URLs, and their access rules.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use bytes::Bytes;
use cognitive_contract::Failure;
use cognitive_contract::media::{
    Checksum, LoadedMedia, MediaSource as _, MediaType, NewUpload, Reference, UploadStore as _, UrlFetch,
    WantedMedia,
};
use cognitive_contract::ports::PortFuture;
use cognitive_media::{Documents, Media, UploadLimits, Uploads};

use crate::support::code;

struct Web(Mutex<Vec<(String, u64)>>);

impl UrlFetch for Web {
    fn fetch<'a>(&'a self, url: &'a str, largest: u64) -> PortFuture<'a, Result<LoadedMedia, Failure>> {
        self.0.lock().unwrap().push((url.to_owned(), largest));
        Box::pin(async { Ok(LoadedMedia::new(Bytes::from_static(b"web"), Some("image/png".to_owned()))) })
    }
}

#[tokio::test]
async fn media_007_an_address_is_fetched_by_the_one_who_guards_addresses() {
    let web = Arc::new(Web(Mutex::default()));
    let media = Media::new(Documents::Here).with_urls(Arc::<Web>::clone(&web));
    let wanted = WantedMedia::new(Reference::Url("https://a/b"), 77);
    let loaded = media.load(&wanted).await.unwrap();
    assert_eq!((loaded.bytes.as_ref(), loaded.media_type.as_deref()), (&b"web"[..], Some("image/png")));
    assert_eq!(*web.0.lock().unwrap(), [("https://a/b".to_owned(), 77)]);
    assert_eq!(code(Media::new(Documents::Here).load(&wanted).await), "E1012");
}

#[tokio::test]
async fn sec_010_a_caller_from_outside_reads_below_the_roots_only() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.png"), b"bytes").unwrap();
    let wanted = |remote| {
        let mut wanted = WantedMedia::new(Reference::File("a.png"), 100);
        wanted.folder = Some(folder.path());
        wanted.remote = remote;
        wanted
    };
    let closed = Media::new(Documents::Here);
    assert_eq!(closed.load(&wanted(false)).await.unwrap().bytes, "bytes");
    assert_eq!(code(closed.load(&wanted(true)).await), "E4007");
    let open = closed.with_roots(&[folder.path().to_owned()]);
    assert_eq!(open.load(&wanted(true)).await.unwrap().bytes, "bytes");
}

#[tokio::test]
async fn ext_media_an_upload_is_for_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let uploads =
        Uploads::open(folder.path().join("up"), UploadLimits::default(), || SystemTime::UNIX_EPOCH).unwrap();
    let id = uploads.announce("ann", &NewUpload::new("x", MediaType::Png, 3)).unwrap().id;
    let mut sink = uploads.receive("ann", &id).await.unwrap();
    sink.piece(Bytes::from_static(b"abc")).await.unwrap();
    sink.finish().await.unwrap();
    let media = Media::new(Documents::Here).with_uploads(uploads);
    let wanted = |owner| {
        let mut wanted = WantedMedia::new(Reference::Upload(&id), 100);
        wanted.owner = owner;
        wanted
    };
    assert_eq!(media.load(&wanted(Some("ann"))).await.unwrap().bytes, "abc");
    assert_eq!(code(media.load(&wanted(Some("bob"))).await), "E1019");
    assert_eq!(code(media.load(&wanted(None)).await), "E1019");
}

#[tokio::test]
async fn ext_media_a_checksum_is_checked() {
    let media = Media::new(Documents::Here);
    let right = Checksum { algorithm: "crc32", value: "352441c2" };
    assert_eq!(code(media.verify(Bytes::from_static(b"abc"), &right).await), "ok");
    assert_eq!(code(media.verify(Bytes::from_static(b"abd"), &right).await), "E1020");
}
