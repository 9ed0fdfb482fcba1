//! Media in compositions: the whole module and all of its parts share one fetch, one inspection and one converted
//! form, and every part sends the same bytes. The source counts its requests; no bytes are really decoded.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

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

/// Returns different bytes on every request, and counts.
#[derive(Default)]
struct CountingSource {
    loads: AtomicUsize,
    looks: AtomicUsize,
    fits: AtomicUsize,
}

impl CountingSource {
    fn counts(&self) -> (usize, usize, usize) {
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        (count(&self.loads), count(&self.looks), count(&self.fits))
    }
}

/// Waits once, so that other requests arrive meanwhile.
async fn later<T>(value: T) -> T {
    let mut waited = false;
    std::future::poll_fn(move |context| {
        if waited {
            return Poll::Ready(());
        }
        waited = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    value
}

impl MediaSource for CountingSource {
    fn load<'a>(&'a self, _: &'a WantedMedia<'a>) -> PortFuture<'a, Result<LoadedMedia, Failure>> {
        let number = self.loads.fetch_add(1, Ordering::Relaxed);
        let bytes = Bytes::from(format!("PNG number {number}"));
        Box::pin(later(Ok(LoadedMedia::new(bytes, Some("image/png".to_owned())))))
    }

    fn verify<'a>(&'a self, _: Bytes, _: &'a Checksum<'a>) -> PortFuture<'a, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }

    fn examine(&self, bytes: Bytes, claimed: MediaType) -> PortFuture<'_, Result<MediaFacts, Failure>> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        Box::pin(later(Ok(MediaFacts::new(claimed, bytes.len() as u64))))
    }

    fn fit<'a>(
        &'a self,
        _: Bytes,
        _: &'a MediaFacts,
        _: Option<&'a AcceptedForm>,
    ) -> PortFuture<'a, Result<FormedMedia, Failure>> {
        self.fits.fetch_add(1, Ordering::Relaxed);
        Box::pin(later(Ok(FormedMedia::AsItIs)))
    }
}

fn model() -> FakeProvider {
    let answering = FakeProvider::from_future(|_, sink| {
        sink.piece(&good_answer(&json!({ "rationale": "r" })).to_string());
        Box::pin(later(Ok(complete())))
    });
    answering.with(|model| model.takes = Some((Category::Image, AcceptedForm::from_types(&[MediaType::Png]))))
}

/// A composition of four parts that all get the same input; `dataflow` handles their results.
struct World {
    host: Host,
    source: Arc<CountingSource>,
    model: Arc<FakeProvider>,
}

fn world(dataflow: &Value, whole_takes_images: bool) -> World {
    let images = json!({ "input": ["image"] });
    let requires = PARTS.map(|name| json!({ "name": name }));
    let composition = json!({ "pattern": "parallel", "requires": requires, "dataflow": dataflow });
    let mut whole = json!({ "composition": composition });
    if whole_takes_images {
        whole["modalities"] = images.clone();
    }
    whole["tier"] = json!("decision");
    let (schema, part) = (
        json!({ "input": { "type": "object" }, "data": { "type": "object" } }),
        json!({ "modalities": images, "tier": "decision" }),
    );
    let modules = NamedModules::default().with("whole", whole, &schema, "Look at it.");
    let modules =
        PARTS.iter().fold(modules, |all, name| all.with(name, part.clone(), &schema, "Look at it."));
    let (source, model) = (Arc::new(CountingSource::default()), Arc::new(model()));
    let mut host = Host::new(Arc::new(modules), model.clone());
    host.take_media(source.clone(), MediaLimits::default());
    World { host, source, model }
}

impl World {
    fn run(&self, input: Value) -> Value {
        let mut sink = NullSink;
        let mut future = std::pin::pin!(run(&self.host, RunRequest::new("whole", input), &mut sink));
        for _ in 0..1_000 {
            if let Poll::Ready(envelope) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return serde_json::to_value(&envelope).unwrap();
            }
        }
        panic!("the run does not end");
    }

    /// The base64 of every sent medium, each once, and the number of sent media.
    fn sent(&self) -> (Vec<Bytes>, usize) {
        let calls = self.model.calls();
        let mut sent: Vec<Bytes> =
            calls.iter().flat_map(|call| call.media.iter().map(|part| part.base64.clone())).collect();
        let count = sent.len();
        sent.dedup();
        (sent, count)
    }
}

/// The parts give the answer.
fn to_output() -> Value {
    json!([{ "from": PARTS, "to": "output", "aggregate": "array" }])
}

fn address() -> Value {
    json!({ "image": { "type": "url", "url": "https://example.com/a.png" } })
}

#[test]
fn four_parts_and_their_whole_share_one_fetch_and_one_look() {
    for whole_takes_images in [true, false] {
        let world = world(&to_output(), whole_takes_images);
        let envelope = world.run(address());
        assert_eq!(envelope["ok"], true, "{envelope}");
        assert_eq!(world.source.counts(), (1, 1, 1), "the whole takes images: {whole_takes_images}");
        let (sent, count) = world.sent();
        assert_eq!((sent.len(), count), (1, 4), "every part sends what was checked");
    }
}

#[test]
fn a_whole_that_asks_its_own_model_sends_the_same_bytes() {
    let world = world(&json!([]), true);
    let envelope = world.run(address());
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_eq!(world.source.counts(), (1, 1, 1));
    let (sent, count) = world.sent();
    assert_eq!((sent.len(), count), (1, 5));
}

// The same text in every call is the same memory.
#[test]
fn an_inline_item_is_looked_into_once_and_never_copied_for_a_part() {
    let image = json!({ "type": "base64", "media_type": "image/png", "data": "UE5HIGlubGluZQ==" });
    // Directly, and as one member of a mapped input.
    let mapped = json!([
        { "from": "input", "to": PARTS, "mapping": { "picture": "$.image" } },
        { "from": PARTS, "to": "output", "aggregate": "array" },
    ]);
    for dataflow in [to_output(), mapped] {
        let world = world(&dataflow, true);
        let envelope = world.run(json!({ "image": image, "note": "n" }));
        assert_eq!(envelope["ok"], true, "{envelope}");
        assert_eq!(world.source.counts(), (0, 1, 1), "{dataflow}");
        let (sent, count) = world.sent();
        assert_eq!((sent.as_slice(), count), ([Bytes::from_static(b"UE5HIGlubGluZQ==")].as_slice(), 4));
        let calls = world.model.calls();
        let first = calls[0].media[0].base64.as_ptr();
        assert!(calls.iter().all(|call| call.media[0].base64.as_ptr() == first), "{dataflow}");
    }
}

// Two texts are two items, even with the same length.
#[test]
fn other_bytes_are_another_item() {
    let image = |data: &str| json!({ "type": "base64", "media_type": "image/png", "data": data });
    let dataflow = json!([
        { "from": "input", "to": ["a", "b"], "mapping": { "picture": "$.first" } },
        { "from": "input", "to": ["c", "d"], "mapping": { "picture": "$.second" } },
        { "from": PARTS, "to": "output", "aggregate": "array" },
    ]);
    let world = world(&dataflow, false);
    let envelope = world.run(json!({ "first": image("UE5HIDE="), "second": image("UE5HIDI=") }));
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_eq!(world.source.counts(), (0, 2, 2));
    let calls = world.model.calls();
    let sent: BTreeMap<&str, &[u8]> =
        calls.iter().map(|call| (call.module.as_str(), &call.media[0].base64[..])).collect();
    assert_eq!((sent["a"], sent["b"]), (&b"UE5HIDE="[..], &b"UE5HIDE="[..]));
    assert_eq!((sent["c"], sent["d"]), (&b"UE5HIDI="[..], &b"UE5HIDI="[..]));
}

// A new run has fetched nothing yet.
#[test]
fn the_next_run_fetches_again() {
    let world = world(&to_output(), true);
    world.run(address());
    world.run(address());
    assert_eq!(world.source.counts(), (2, 2, 2));
    assert_eq!(world.sent().0.len(), 2);
}
