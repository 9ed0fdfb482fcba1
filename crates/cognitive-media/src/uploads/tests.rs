//! Tests the life of an upload: its owner, its lifetime, its limits, and its state after a restart.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

use cognitive_contract::media::{Checksum, MediaType};

use super::*;

/// A clock that starts at a fixed time.
struct Time(Arc<AtomicU64>);

impl Time {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_900_000_000)))
    }

    fn pass(&self, time: Duration) {
        self.0.fetch_add(time.as_secs(), Ordering::SeqCst);
    }

    fn open(&self, folder: &tempfile::TempDir, limits: UploadLimits) -> Uploads {
        let seconds = Arc::clone(&self.0);
        let clock = move || SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.load(Ordering::SeqCst));
        Uploads::open(folder.path().join("uploads"), limits, clock).unwrap()
    }
}

fn setting() -> (tempfile::TempDir, Time, Uploads) {
    let (folder, time) = (tempfile::tempdir().unwrap(), Time::new());
    let uploads = time.open(&folder, UploadLimits::default());
    (folder, time, uploads)
}

fn upload(bytes: u64) -> NewUpload<'static> {
    NewUpload::new("a.png", MediaType::Png, bytes)
}

fn code<T>(result: Result<T, Failure>) -> &'static str {
    result.map_or_else(|failure| failure.code().number(), |_| "ok")
}

async fn send(uploads: &Uploads, owner: &str, id: &str, pieces: &[&'static [u8]]) -> Result<(), Failure> {
    let mut sink = uploads.receive(owner, id).await?;
    for piece in pieces {
        sink.piece(Bytes::from_static(piece)).await?;
    }
    sink.finish().await
}

#[tokio::test]
async fn ext_media_an_upload_is_announced_received_and_read() {
    let (folder, _, uploads) = setting();
    let announced = uploads.announce("ann", &upload(6)).unwrap();
    assert_eq!(announced.max_size_bytes, 6);
    assert_eq!(code(uploads.load("ann", &announced.id, 100)), "E1019");
    send(&uploads, "ann", &announced.id, &[b"abc", b"", b"def"]).await.unwrap();
    let loaded = uploads.load("ann", &announced.id, 100).unwrap();
    assert_eq!((loaded.bytes.as_ref(), loaded.media_type.as_deref()), (&b"abcdef"[..], Some("image/png")));
    assert_eq!(code(uploads.load("ann", &announced.id, 5)), "E1011");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let place = folder.path().join("uploads");
    assert_eq!(mode(&place), 0o700);
    for entry in fs::read_dir(&place).unwrap().flatten() {
        assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
    }
}

#[tokio::test]
async fn ext_media_to_others_an_upload_does_not_exist() {
    let (_folder, _, uploads) = setting();
    let id = uploads.announce("ann", &upload(1)).unwrap().id;
    assert_eq!(code(uploads.receive("bob", &id).await), "E1019");
    send(&uploads, "ann", &id, &[b"a"]).await.unwrap();
    assert_eq!(code(uploads.load("bob", &id, 9)), "E1019");
    assert_eq!(code(uploads.load("ann", &id, 9)), "ok");
    for unknown in ["", "../../etc/passwd", "0123456789abcdef0123456789abcdef"] {
        assert_eq!(code(uploads.load("ann", unknown, 9)), "E1019", "{unknown}");
    }
}

// MEDIA-019: a stored upload is returned to its owner, in chunks, until it expires.
#[tokio::test]
async fn media_019_what_is_kept_is_given_back_to_its_owner_alone() {
    let (_folder, time, uploads) = setting();
    let long = vec![7_u8; 600 << 10];
    let id = uploads.announce("ann", &upload(600 << 10)).unwrap().id;
    assert_eq!(code(uploads.open("ann", &id).await), "E1019", "not there yet");
    let mut sink = uploads.receive("ann", &id).await.unwrap();
    sink.piece(Bytes::from(long.clone())).await.unwrap();
    sink.finish().await.unwrap();
    assert_eq!(code(uploads.open("bob", &id).await), "E1019");
    assert_eq!(code(uploads.open("ann", "../../etc/passwd").await), "E1019");
    let mut kept = uploads.open("ann", &id).await.unwrap();
    assert_eq!(
        (kept.filename.as_str(), kept.media_type, kept.size_bytes),
        ("a.png", MediaType::Png, 600 << 10)
    );
    let (mut read, mut pieces) = (Vec::new(), 0);
    while let Some(piece) = kept.reader.piece().await.unwrap() {
        read.extend_from_slice(&piece);
        pieces += 1;
    }
    assert!(read == long && pieces == 3, "{} bytes in {pieces} pieces", read.len());
    time.pass(Duration::from_hours(1));
    assert_eq!(code(uploads.open("ann", &id).await), "E1018");
}

#[tokio::test]
async fn ext_media_an_upload_expires_whether_received_or_not() {
    let (folder, time, uploads) = setting();
    let id = uploads.announce("ann", &upload(1)).unwrap().id;
    send(&uploads, "ann", &id, &[b"a"]).await.unwrap();
    let late = uploads.announce("ann", &upload(1)).unwrap().id;
    time.pass(Duration::from_mins(59));
    assert_eq!(code(uploads.load("ann", &id, 9)), "ok");
    time.pass(Duration::from_mins(1));
    assert_eq!(code(uploads.load("ann", &id, 9)), "E1018");
    assert_eq!(code(uploads.receive("ann", &late).await), "E1018");
    uploads.collect();
    assert_eq!(code(uploads.load("ann", &id, 9)), "E1018");
    let files = || fs::read_dir(folder.path().join("uploads")).unwrap().count();
    assert_eq!(files(), 2, "the bytes are gone, that they were there is remembered");
    time.pass(REMEMBERED);
    uploads.collect();
    assert_eq!(code(uploads.load("ann", &id, 9)), "E1019");
    assert_eq!(files(), 0);
}

#[tokio::test]
async fn ext_media_only_the_announced_bytes_are_taken() {
    let (folder, _, uploads) = setting();
    let sum = Checksum { algorithm: "crc32", value: "352441c2" };
    let id = uploads.announce("ann", &upload(3).with_checksum(sum)).unwrap().id;
    assert_eq!(code(send(&uploads, "ann", &id, &[b"abcd"]).await), "E1011");
    assert_eq!(code(send(&uploads, "ann", &id, &[b"abc", b"d"]).await), "E1011");
    assert_eq!(code(send(&uploads, "ann", &id, &[b"ab"]).await), "E1013");
    assert_eq!(code(send(&uploads, "ann", &id, &[b"abd"]).await), "E1020");
    assert_eq!(
        fs::read_dir(folder.path().join("uploads")).unwrap().count(),
        1,
        "nothing is left of attempts"
    );
    assert_eq!(code(uploads.load("ann", &id, 9)), "E1019");
    assert_eq!(code(send(&uploads, "ann", &id, &[b"abc"]).await), "ok");
    assert_eq!(code(send(&uploads, "ann", &id, &[b"abc"]).await), "E1001");
}

#[tokio::test]
async fn ext_media_two_cannot_send_the_same_upload_at_once() {
    let (_folder, _, uploads) = setting();
    let id = uploads.announce("ann", &upload(3)).unwrap().id;
    let first = uploads.receive("ann", &id).await.unwrap();
    assert_eq!(code(uploads.receive("ann", &id).await), "E1001");
    drop(first);
    assert_eq!(code(send(&uploads, "ann", &id, &[b"abc"]).await), "ok");
}

#[tokio::test]
async fn ext_media_each_owner_has_a_quota_and_all_together_too() {
    let (folder, time) = (tempfile::tempdir().unwrap(), Time::new());
    let limits = UploadLimits {
        bytes_per_owner: 10,
        uploads_per_owner: 3,
        bytes_together: 15,
        ..UploadLimits::default()
    };
    let uploads = time.open(&folder, limits);
    assert_eq!(code(uploads.announce("ann", &upload(8))), "ok");
    assert_eq!(code(uploads.announce("ann", &upload(3))), "E4002");
    assert_eq!(code(uploads.announce("ann", &upload(1))), "ok");
    assert_eq!(code(uploads.announce("ann", &upload(1))), "ok");
    assert_eq!(code(uploads.announce("ann", &upload(0))), "E4002");
    assert_eq!(code(uploads.announce("bob", &upload(6))), "E4002");
    assert_eq!(code(uploads.announce("bob", &upload(5))), "ok");
    time.pass(Duration::from_hours(1));
    assert_eq!(code(uploads.announce("ann", &upload(10))), "ok");
    assert_eq!(code(uploads.announce("bob", &upload((20 << 20) + 1))), "E1011");
}

#[tokio::test]
async fn ext_media_a_restart_finds_what_was_complete_and_forgets_what_was_not() {
    let (folder, time, uploads) = setting();
    let whole = uploads.announce("ann", &upload(3)).unwrap().id;
    send(&uploads, "ann", &whole, &[b"abc"]).await.unwrap();
    let half = uploads.announce("ann", &upload(3)).unwrap().id;
    let mut sink = uploads.receive("ann", &half).await.unwrap();
    sink.piece(Bytes::from_static(b"ab")).await.unwrap();
    // The process ends without cleaning up: its locks are released, and its files remain.
    drop(sink);
    fs::write(folder.path().join(format!("uploads/{half}.part")), b"ab").unwrap();
    fs::write(folder.path().join("uploads/ffffffffffffffffffffffffffffffff.json"), b"not ours").unwrap();
    let again = time.open(&folder, UploadLimits::default());
    assert_eq!(again.load("ann", &whole, 9).unwrap().bytes, "abc");
    assert_eq!(code(again.load("bob", &whole, 9)), "E1019");
    assert_eq!(code(again.load("ann", &half, 9)), "E1019");
    assert_eq!(code(send(&again, "ann", &half, &[b"abc"]).await), "ok");
    assert_eq!(fs::read_dir(folder.path().join("uploads")).unwrap().count(), 4);
    time.pass(Duration::from_hours(2));
    let later = time.open(&folder, UploadLimits::default());
    assert_eq!(code(later.load("ann", &whole, 9)), "E1018");
}

// Setting the clock back does not revive an expired upload.
#[tokio::test]
async fn an_upload_that_has_expired_stays_so_when_the_clock_goes_back() {
    let (_folder, time, uploads) = setting();
    let announced = uploads.announce("ann", &upload(3)).unwrap();
    send(&uploads, "ann", &announced.id, &[b"abc"]).await.unwrap();
    time.pass(Duration::from_hours(1));
    assert_eq!(code(uploads.load("ann", &announced.id, 100)), "E1018");
    time.0.fetch_sub(3_000, Ordering::SeqCst);
    assert_eq!(code(uploads.load("ann", &announced.id, 100)), "E1018");
}

// Two servers on one machine share a folder: an upload received by one can be read at the other, by the same owner
// only.
#[tokio::test]
async fn an_upload_is_found_by_another_process_once_it_is_whole() {
    let (folder, time, first) = setting();
    let second = time.open(&folder, UploadLimits::default());
    let announced = first.announce("ann", &upload(3)).unwrap();
    assert_eq!(code(second.load("ann", &announced.id, 100)), "E1019");
    assert_eq!(code(second.receive("ann", &announced.id).await), "ok", "any of them may receive it");
    send(&first, "ann", &announced.id, &[b"abc"]).await.unwrap();
    assert_eq!(code(second.load("bob", &announced.id, 100)), "E1019");
    assert_eq!(second.load("ann", &announced.id, 100).unwrap().bytes.as_ref(), b"abc");
    assert_eq!(code(second.load("ann", "../../etc/passwd", 100)), "E1019");
}

// Several servers share a folder: an upload announced at one is known to all.
#[tokio::test]
async fn servers_that_share_a_folder_share_its_uploads() {
    let (folder, time, one) = setting();
    let other = time.open(&folder, UploadLimits::default());
    let id = one.announce("ann", &upload(6)).unwrap().id;
    assert_eq!(code(other.receive("bob", &id).await), "E1019", "nobody else's");
    // Another server receives it than the one it was announced to, and never two at once.
    let mut sink = other.receive("ann", &id).await.unwrap();
    sink.piece(Bytes::from_static(b"abc")).await.unwrap();
    assert_eq!(code(one.receive("ann", &id).await), "E1001");
    // A server that starts now does not touch it.
    let third = time.open(&folder, UploadLimits::default());
    assert_eq!(code(third.receive("ann", &id).await), "E1001");
    sink.piece(Bytes::from_static(b"def")).await.unwrap();
    sink.finish().await.unwrap();
    for server in [&one, &other, &third] {
        assert_eq!(server.load("ann", &id, 9).unwrap().bytes.as_ref(), b"abcdef");
        assert_eq!(code(server.load("bob", &id, 9)), "E1019");
        assert_eq!(code(server.receive("ann", &id).await), "E1001", "it is there already");
    }
    time.pass(Duration::from_hours(2));
    for server in [&one, &other, &third] {
        server.collect();
        assert_eq!(code(server.load("ann", &id, 9)), "E1018", "expired for all, and removed once");
    }
}

#[tokio::test]
async fn a_part_whose_server_is_gone_goes_and_can_be_sent_again() {
    let (folder, time, one) = setting();
    let id = one.announce("ann", &upload(3)).unwrap().id;
    let part = folder.path().join(format!("uploads/{id}.part"));
    fs::write(&part, "ab").unwrap();
    let other = time.open(&folder, UploadLimits::default());
    assert!(!part.exists(), "nobody holds it");
    fs::write(&part, "ab").unwrap();
    send(&other, "ann", &id, &[b"abc"]).await.unwrap();
    assert_eq!(one.load("ann", &id, 9).unwrap().bytes.as_ref(), b"abc");
}

#[tokio::test]
async fn limits_hold_over_all_servers_that_share_a_folder() {
    let (folder, time) = (tempfile::tempdir().unwrap(), Time::new());
    let limits = UploadLimits { uploads_per_owner: 2, ..UploadLimits::default() };
    let [one, other] = [0; 2].map(|_| time.open(&folder, limits.clone()));
    for server in [&one, &other] {
        server.note_other_servers();
    }
    let first = one.announce("ann", &upload(1)).unwrap().id;
    send(&one, "ann", &first, &[b"a"]).await.unwrap();
    assert_eq!(code(other.announce("ann", &upload(1))), "ok");
    assert_eq!(code(one.announce("ann", &upload(1))), "E4002");
    assert_eq!(
        (code(other.announce("ann", &upload(1))), code(other.announce("bob", &upload(1)))),
        ("E4002", "ok")
    );
    // An upload announced at one server expires at the other, even if only that one still runs.
    drop(one);
    time.pass(Duration::from_hours(2));
    other.collect();
    assert!(!folder.path().join(format!("uploads/{first}.data")).exists());
    assert_eq!(code(other.announce("ann", &upload(1))), "ok");
}
