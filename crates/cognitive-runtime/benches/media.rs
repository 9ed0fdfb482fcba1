//! Measures the cost of a 10 MB image between the body of a request and the call of the provider: time and memory.
//! Baseline, in the same run: one base64 decode, one SHA-256 and one copy of the same text. Prints the results, and
//! fails above 1.5 times the baseline or 2.5 times the memory of the image.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark may panic, and prints its figures"
)]

use std::hint::black_box;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cognitive_contract::media::{AcceptedForm, Category, MediaLimits, MediaSource as _, MediaType};
use cognitive_contract::ports::{
    CallSink, DecodeMode, ModelCall, ModelEnd, NullSink, PortFuture, Provider, ProviderError,
};
use cognitive_media::{Documents, Media};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::large_json;
use cognitive_runtime::receipt::canonical_sha256;
use cognitive_runtime::{Host, RunRequest, run};
use cognitive_testkit::{LoadedModule, loaded_module};
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const ROUNDS: usize = 15;

/// A provider that records the time and the number of bytes of its call.
#[derive(Default)]
struct Receiver(Mutex<Option<(Instant, usize)>>);

impl Provider for Receiver {
    fn name(&self) -> &'static str {
        "receiver"
    }

    fn takes(&self, category: Category) -> Option<AcceptedForm> {
        (category == Category::Image)
            .then(|| AcceptedForm::from_types(&[MediaType::Png]).with_longest_side(8192))
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        let length = call.media.iter().map(|part| part.base64.len()).sum();
        *self.0.lock().unwrap() = Some((Instant::now(), length));
        sink.piece(r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": {"rationale": "r"}}"#);
        Box::pin(async { Ok(ModelEnd::complete("m", DecodeMode::Prompt)) })
    }
}

/// An image of noise, which no compressor can shrink.
fn picture() -> Vec<u8> {
    let mut state = 1_u64;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u8::try_from(state >> 56).unwrap()
    };
    let image = RgbImage::from_fn(1_820, 1_820, |_, _| Rgb([noise(), noise(), noise()]));
    let mut file = std::io::Cursor::new(Vec::new());
    DynamicImage::from(image).write_to(&mut file, ImageFormat::Png).unwrap();
    file.into_inner()
}

fn host(receiver: &Arc<Receiver>) -> Host {
    let manifest = json!({ "tier": "decision", "modalities": { "input": ["image"] } });
    let schema = json!({
        "input": { "type": "object", "required": ["images"], "properties": { "images": { "type": "array", "items": {
            "type": "object", "required": ["type"], "properties": { "data": { "type": "string" } } } } } },
        "data": { "type": "object", "required": ["rationale"] },
    });
    let module = loaded_module(&manifest, &schema, "Look at $MEDIA_INPUTS.");
    let mut host = Host::new(Arc::new(LoadedModule(module)), Arc::clone(receiver) as Arc<dyn Provider>);
    host.take_media(Arc::new(Media::new(Documents::Here)), MediaLimits::default());
    host
}

fn body(text: &str) -> Vec<u8> {
    let item = json!({ "type": "base64", "media_type": "image/png", "data": text });
    json!({ "images": [item] }).to_string().into_bytes()
}

/// From the body to the call, as a server does it: the memory of the body is reused for the input.
fn ours(host: &Host, receiver: &Receiver, runtime: &tokio::runtime::Runtime, body: Vec<u8>) -> Duration {
    let started = Instant::now();
    let mut text = String::from_utf8(body).unwrap();
    let input = large_json::parse(&mut text).unwrap();
    let mut request = RunRequest::new("m", Value::Null);
    request.input = RunInput::Json(input);
    let envelope = runtime.block_on(run(host, request, &mut NullSink));
    assert!(envelope.ok(), "{envelope:?}");
    let (called, length) = receiver.0.lock().unwrap().take().unwrap();
    assert!(length > 10_000_000, "{length} bytes reached the provider");
    called.duration_since(started)
}

fn bare(text: &str) -> Duration {
    let started = Instant::now();
    let decoded = STANDARD.decode(text).unwrap();
    let hash = Sha256::digest(text);
    let copy = text.to_owned();
    black_box((decoded, hash, copy));
    started.elapsed()
}

/// The time of each step alone, on the same image.
fn steps(picture: &[u8], body: &[u8], runtime: &tokio::runtime::Runtime) {
    let media = Media::new(Documents::Here);
    let bytes = Bytes::copy_from_slice(picture);
    let form = AcceptedForm::from_types(&[MediaType::Png]).with_longest_side(8192);
    let facts = runtime.block_on(media.examine(bytes.clone(), MediaType::Png)).unwrap();
    let input: Value = serde_json::from_slice(body).unwrap();
    let time = |name: &str, step: &dyn Fn()| {
        let times = (0..ROUNDS).map(|_| {
            let started = Instant::now();
            step();
            started.elapsed()
        });
        println!("    {name:<24} {:.1} ms", median(times.collect()).as_secs_f64() * 1e3);
    };
    time("copy and parse the body", &|| drop(black_box(large_json::parse(&mut owned(body)))));
    time("hash the input", &|| drop(black_box(canonical_sha256(&input))));
    time("examine", &|| drop(runtime.block_on(media.examine(bytes.clone(), MediaType::Png))));
    time("fit", &|| drop(runtime.block_on(media.fit(bytes.clone(), &facts, Some(&form)))));
}

fn owned(body: &[u8]) -> String {
    String::from_utf8(body.to_vec()).unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Kilobytes that `/proc` reports for this process.
fn memory(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap_or(0.0)
}

/// One run in a separate process: its peak memory beyond that before the body.
fn child(file: &str) {
    let receiver = Arc::new(Receiver::default());
    let (host, runtime) = (host(&receiver), runtime());
    // Initializes everything that is created once.
    let small = body(&STANDARD.encode(small_picture()));
    let mut request = RunRequest::new("m", Value::Null);
    request.input = RunInput::Json(serde_json::from_slice(&small).unwrap());
    runtime.block_on(run(&host, request, &mut NullSink));
    let before = memory("VmRSS");
    let body = std::fs::read(file).unwrap();
    // Resets the peak.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    ours(&host, &receiver, &runtime, body);
    println!("{}", memory("VmHWM") - before);
}

fn small_picture() -> Vec<u8> {
    let mut file = std::io::Cursor::new(Vec::new());
    DynamicImage::from(RgbImage::new(8, 8)).write_to(&mut file, ImageFormat::Png).unwrap();
    file.into_inner()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn main() {
    if let Some(file) = std::env::args().skip_while(|argument| argument != "--child").nth(1) {
        return child(&file);
    }
    let picture = picture();
    let text = STANDARD.encode(&picture);
    let receiver = Arc::new(Receiver::default());
    let (host, runtime) = (host(&receiver), runtime());
    let body = body(&text);
    let (mut our_times, mut bare_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        our_times.push(ours(&host, &receiver, &runtime, body.clone()));
        bare_times.push(bare(&text));
    }
    let (ours, bare) = (median(our_times), median(bare_times));
    println!("a picture of {} bytes, {} as base64; median of {ROUNDS}", picture.len(), text.len());
    println!("  decode, hash and copy    {:.1} ms", bare.as_secs_f64() * 1e3);
    println!("  from body to provider    {:.1} ms", ours.as_secs_f64() * 1e3);
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    println!("  ratio {ratio:.2} (at most 1.5)");
    steps(&picture, &body, &runtime);
    if cfg!(target_os = "linux") {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("body.json");
        std::fs::write(&file, &body).unwrap();
        let output =
            Command::new(std::env::current_exe().unwrap()).arg("--child").arg(&file).output().unwrap();
        let peak: f64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        let length = |bytes: usize| f64::from(u32::try_from(bytes).unwrap()) / 1024.0;
        println!(
            "  memory at most {:.1} MB: {:.2} of the picture, {:.2} of its text (at most 2.5)",
            peak / 1024.0,
            peak / length(picture.len()),
            peak / length(text.len())
        );
        assert!(peak / length(picture.len()) <= 2.5, "it takes too much memory");
    }
    assert!(ratio <= 1.5, "it takes too long");
}
