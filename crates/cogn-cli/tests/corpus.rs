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

use cognitive_testkit::SeededRandom;

#[path = "../../../fuzz/src/lib.rs"]
mod fuzzed;

use fuzzed::{contract, files, http, media, reply};

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

const TARGETS: [(&str, Check); 19] = [
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
    ("agent", http::agent),
    ("archive", files::archive),
    ("lock", files::lock),
    ("index", files::index),
    ("import", files::import),
    ("rows", files::rows),
    ("trained", files::trained),
];

#[test]
fn every_seed_passes_its_check() {
    for (target, check) in TARGETS {
        replay(target, check);
    }
}

/// Bytes that mean something in most formats.
const ODD: &[u8] = b"\0\xff\"{}[],:\n-9A%$";

/// Changes some bytes of an input, as a fuzzer without coverage does: flips, inserts, removes, repeats, and joins it with
/// another one.
fn mutated(seeds: &[Vec<u8>], random: &mut SeededRandom) -> Vec<u8> {
    let mut bytes = seeds[random.index(seeds.len())].clone();
    for _ in 0..=random.index(8) {
        let at = random.index(bytes.len() + 1);
        match random.index(6) {
            0 => bytes.insert(at, ODD[random.index(ODD.len())]),
            1 if at < bytes.len() => bytes[at] = u8::try_from(random.next_below(256)).unwrap(),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => bytes.truncate(at),
            4 => {
                let piece = bytes[at..bytes.len().min(at + 1 + random.index(64))].to_vec();
                bytes.splice(at..at, piece.repeat(1 + random.index(4)));
            }
            _ => {
                let other = &seeds[random.index(seeds.len())];
                let from = random.index(other.len() + 1);
                bytes.splice(at.., other[from..].iter().copied());
            }
        }
    }
    bytes
}

// A few inputs near the seeds, always the same. `COGN_FUZZ_RUNS=500000` and `COGN_FUZZ_TARGET=rows` try more of one
// target, for machines without the fuzzer.
#[test]
fn inputs_near_the_seeds_pass_their_checks() {
    let runs = std::env::var("COGN_FUZZ_RUNS").map_or(40, |runs| runs.parse().unwrap());
    let only = std::env::var("COGN_FUZZ_TARGET").ok();
    count_panics();
    // The decoders of media have tests of their own, and each of these would take seconds.
    let are_slow = ["image", "sound", "video", "document", "weights"];
    let wanted = |target: &str| only.as_deref().map_or(!are_slow.contains(&target), |only| only == target);
    for (target, check) in TARGETS.into_iter().filter(|(target, _)| wanted(target)) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
        let mut paths: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
        paths.sort();
        let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
        let mut random = SeededRandom::new(0x5eed + seeds.len() as u64);
        for run in 0..runs {
            let (input, before) = (mutated(&seeds, &mut random), PANICS.load(Ordering::SeqCst));
            let passed = std::panic::catch_unwind(|| check(&input)).is_ok();
            let is_quiet = PANICS.load(Ordering::SeqCst) == before;
            assert!(passed && is_quiet, "{target}, input {run}: {:?}", String::from_utf8_lossy(&input));
        }
    }
}
