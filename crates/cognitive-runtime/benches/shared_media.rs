//! Measures the memory of a large image in a composition: four parts that all get the same image of 10 MB, inline or
//! by address. Prints the peak of memory beyond the start, prints PASS or FAIL, and exits with 1 if a case failed.
//! Each case is a separate process, because a peak never goes down. Linux only: it reads `/proc`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark may panic, and prints"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cognitive_contract::Failure;
use cognitive_contract::media::{
    AcceptedForm, Category, Checksum, FormedMedia, LoadedMedia, MediaFacts, MediaLimits, MediaSource,
    MediaType, WantedMedia,
};
use cognitive_contract::ports::{NullSink, PortFuture};
use cognitive_runtime::{Host, RunRequest, run};
use cognitive_testkit::{FakeProvider, NamedModules, complete, good_answer};
use serde_json::{Value, json};

const PARTS: [&str; 4] = ["a", "b", "c", "d"];
const IMAGE: usize = 10_000_000;
/// The most memory, as a multiple of the image.
const MAX_RATIO: f64 = 3.0;

fn image() -> Vec<u8> {
    (0..IMAGE).map(|index| u8::try_from(index % 251).unwrap()).collect()
}

/// Accepts every image unchanged: the cost of decoding is measured elsewhere.
struct Plain;

impl MediaSource for Plain {
    fn load<'a>(&'a self, _: &'a WantedMedia<'a>) -> PortFuture<'a, Result<LoadedMedia, Failure>> {
        Box::pin(async { Ok(LoadedMedia::new(Bytes::from(image()), Some("image/png".to_owned()))) })
    }

    fn verify<'a>(&'a self, _: Bytes, _: &'a Checksum<'a>) -> PortFuture<'a, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }

    fn examine(&self, bytes: Bytes, claimed: MediaType) -> PortFuture<'_, Result<MediaFacts, Failure>> {
        Box::pin(async move { Ok(MediaFacts::new(claimed, bytes.len() as u64)) })
    }

    fn fit<'a>(
        &'a self,
        _: Bytes,
        _: &'a MediaFacts,
        _: Option<&'a AcceptedForm>,
    ) -> PortFuture<'a, Result<FormedMedia, Failure>> {
        Box::pin(async { Ok(FormedMedia::AsItIs) })
    }
}

/// Answers at its second poll, so that all parts have their media at the same time.
fn slow() -> FakeProvider {
    let answering = FakeProvider::from_future(|call, sink| {
        assert_eq!(call.media.len(), 1);
        let mut looks = 0;
        Box::pin(async move {
            std::future::poll_fn(|_| {
                looks += 1;
                if looks > 1 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            sink.piece(&good_answer(&json!({ "rationale": "r" })).to_string());
            Ok(complete())
        })
    });
    answering.with(|model| model.takes = Some((Category::Image, AcceptedForm::from_types(&[MediaType::Png]))))
}

fn host() -> Host {
    let requires = PARTS.map(|name| json!({ "name": name }));
    let dataflow = json!([{ "from": PARTS, "to": "output", "aggregate": "array" }]);
    let composition = json!({ "pattern": "parallel", "requires": requires, "dataflow": dataflow });
    let schema = json!({ "input": { "type": "object" }, "data": { "type": "object" } });
    let mut manifest = json!({ "tier": "decision", "modalities": { "input": ["image"] } });
    let modules = PARTS
        .iter()
        .fold(NamedModules::default(), |all, name| all.with(name, manifest.clone(), &schema, "Look at it."));
    manifest["composition"] = composition;
    let modules = modules.with("whole", manifest, &schema, "Look at it.");
    let mut host = Host::new(Arc::new(modules), Arc::new(slow()));
    host.take_media(Arc::new(Plain), MediaLimits::default());
    host
}

/// A value of `/proc/self/status` for this process, in bytes.
fn memory(line: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let found = status.lines().find(|each| each.starts_with(line)).unwrap();
    found.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Runs one case in this process, and returns its peak memory beyond the start.
fn measure(case: &str) -> usize {
    let host = host();
    let before = memory("VmRSS:");
    let mut input = json!({ "image": { "type": "url", "url": "https://example.com/a.png" } });
    if case == "inline" {
        input["image"] = json!({ "type": "base64", "media_type": "image/png" });
        // `json!` would copy the text.
        input["image"]["data"] = Value::String(STANDARD.encode(image()));
    }
    let mut sink = NullSink;
    let mut future = std::pin::pin!(run(&host, RunRequest::new("whole", input), &mut sink));
    for _ in 0..100 {
        if let Poll::Ready(envelope) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            assert!(envelope.ok());
            break;
        }
    }
    memory("VmHWM:").saturating_sub(before)
}

fn main() -> ExitCode {
    if !Path::new("/proc/self/status").exists() {
        println!("skipped: only Linux says what a process has");
        return ExitCode::SUCCESS;
    }
    let mut args = std::env::args().skip(1);
    if let (Some("--case"), Some(case)) = (args.next().as_deref(), args.next()) {
        println!("{}", measure(&case));
        return ExitCode::SUCCESS;
    }
    let mut failed = false;
    for case in ["inline", "by address"] {
        // The system allocator keeps blocks of this size once one was freed. Then a peak would include holes between
        // blocks, and not only memory in use.
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--case", case])
            .env("MALLOC_MMAP_THRESHOLD_", "1048576")
            .output()
            .unwrap();
        let peak: usize = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        let ratio = peak as f64 / IMAGE as f64;
        let word = if ratio <= MAX_RATIO { "PASS" } else { "FAIL" };
        println!(
            "{word}: four parts, one image of 10 MB, {case}: peak of {:.1} MB, {ratio:.2} × the image (at most {MAX_RATIO})",
            peak as f64 / 1e6
        );
        failed |= ratio > MAX_RATIO;
    }
    ExitCode::from(u8::from(failed))
}
