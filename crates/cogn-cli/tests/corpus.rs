//! The seeds and findings of the fuzzer, run again through the same checks. A panic in any thread counts, even a caught
//! one: it is a defect even if users would only see an error code. A binary of its own, because its panic hook sees all threads.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]
#![cfg(feature = "local")]

use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

#[path = "../../../fuzz/src/lib.rs"]
mod fuzzed;

use fuzzed::{contract, http, media, reply};

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Counts panics of this workspace. Panics of third-party decoders are caught and become an error code.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if fuzzed::is_ours(panic) {
                PANICS.fetch_add(1, Ordering::SeqCst);
                report(panic);
            }
        }));
    });
}

type Check = fn(&[u8]);

/// Runs a check on the seeds of a target.
fn replay(target: &str, check: Check) {
    count_panics();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 10, "{}", folder.display());
    for file in files {
        let before = PANICS.load(Ordering::SeqCst);
        check(&std::fs::read(&file).unwrap());
        assert_eq!(PANICS.load(Ordering::SeqCst), before, "{}", file.display());
    }
}

#[test]
fn every_seed_passes_its_check() {
    let targets: [(&str, Check); 12] = [
        ("envelope", contract::envelope),
        ("manifest", contract::manifest),
        ("schema", contract::schema),
        ("expressions", contract::expressions),
        ("weights", contract::weights),
        ("reply", reply::reply),
        ("image", media::image),
        ("sound", media::sound),
        ("video", media::video),
        ("document", media::document),
        ("body", http::body),
        ("websocket", http::websocket),
    ];
    for (target, check) in targets {
        replay(target, check);
    }
}
