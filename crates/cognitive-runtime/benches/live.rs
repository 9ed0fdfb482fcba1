//! Measures the cost of reading a reply while it arrives: 16-byte deltas, scanned, checked by the early stop and
//! converted to chunks. Prints the average per delta for a small and a large reply. Also prints the ratio to a bare
//! parse of the whole, which a reader that starts over at every delta would pay each time. `cargo bench -p
//! cognitive-runtime --bench live`

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark prints and may panic"
)]

use std::hint::black_box;
use std::sync::Arc;

use std::time::{Duration, Instant};

use cognitive_contract::Module;
use cognitive_contract::ports::{
    CallSink, EventSink, ModelCall, ModelEnd, NullSink, PortFuture, Provider, ProviderError,
};
use cognitive_runtime::early_stop::EarlyStop;
use cognitive_runtime::reply::ReplyScanner;
use cognitive_runtime::{Host, RunRequest, run, stream};
use cognitive_testkit::{LoadedModule, complete, loaded_module, poll_now};
use serde_json::{Value, json};

const DELTA: usize = 16;
const TIME: Duration = Duration::from_millis(1_500);

/// Sends the same deltas every time, and keeps nothing of its many calls.
struct Deltas(Vec<String>);

impl Provider for Deltas {
    fn name(&self) -> &'static str {
        "deltas"
    }

    fn ask<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        for piece in &self.0 {
            sink.piece(piece);
        }
        Box::pin(async { Ok(complete()) })
    }
}

fn module() -> Arc<Module> {
    let schema = json!({
        "input": { "type": "object" },
        "data": {
            "type": "object", "required": ["rationale", "changes"], "additionalProperties": false,
            "properties": {
                "rationale": { "type": "string", "minLength": 1, "maxLength": 1_000_000 },
                "changes": { "type": "array", "maxItems": 100_000, "items": {
                    "type": "object", "required": ["type", "description", "risk", "line"],
                    "additionalProperties": false,
                    "properties": {
                        "type": { "enum": ["remove_redundancy", "simplify_logic", "other"] },
                        "description": { "type": "string", "maxLength": 500 },
                        "risk": { "enum": ["none", "low", "medium", "high"] },
                        "line": { "type": "integer", "minimum": 1 },
                    },
                } },
            },
        },
    });
    let manifest =
        json!({ "name": "m", "version": "1.0.0", "tier": "decision", "response": { "mode": "streaming" } });
    loaded_module(&manifest, &schema, "Simplify the code. Answer in the envelope.")
}

fn reply(bytes: usize) -> String {
    let sentence =
        "The branch was folded into one expression, because both arms returned \"the same\" value.";
    let change = |n: usize| json!({ "type": "simplify_logic", "description": format!("{n}: {sentence}"), "risk": "low", "line": n + 1 });
    let changes: Vec<Value> = (0..bytes / 190).map(change).collect();
    let rationale = "Each change keeps the behaviour.\n".repeat(bytes / 150);
    let data = json!({ "rationale": rationale, "changes": changes });
    json!({ "ok": true, "meta": { "confidence": 0.91, "risk": "low", "explain": "Local." }, "data": data })
        .to_string()
}

fn pieces(text: &str) -> Vec<String> {
    text.as_bytes().chunks(DELTA).map(|piece| String::from_utf8(piece.to_vec()).unwrap()).collect()
}

/// The shortest time of many; other load on the machine only adds to it.
fn best(mut work: impl FnMut()) -> Duration {
    let (start, mut best) = (Instant::now(), Duration::MAX);
    while start.elapsed() < TIME {
        let each = Instant::now();
        work();
        best = best.min(each.elapsed());
    }
    best
}

fn measure(module: &Arc<Module>, bytes: usize) {
    let text = reply(bytes);
    let deltas = pieces(&text);
    let count = deltas.len();
    let parse = best(|| drop(black_box(serde_json::from_str::<Value>(black_box(&text)).unwrap())));
    let judged = best(|| {
        let (mut scanner, mut fuse) = (ReplyScanner::new(false), EarlyStop::new(Arc::clone(module), false));
        for piece in &deltas {
            scanner.push(black_box(piece), &mut fuse);
        }
        assert!(fuse.verdict().is_none());
    });
    let host = Host::new(Arc::new(LoadedModule(Arc::clone(module))), Arc::new(Deltas(deltas)));
    let request = |early_stop: bool| {
        let mut request = RunRequest::new("m", json!({}));
        request.options.settings.early_stop = Some(early_stop);
        request
    };
    // The cost of a run without listeners; the rest is the stream.
    let silent = best(|| {
        let sink: &mut dyn EventSink = &mut NullSink;
        assert!(poll_now(run(&host, request(false), sink)).ok());
    });
    let mut sent = 0;
    let streamed = best(|| {
        sent = 0;
        let delivery = poll_now(stream(&host, request(true), |chunk| {
            sent += 1;
            black_box(chunk);
        }));
        assert!(delivery.envelope().ok());
    });
    let per_delta = |time: Duration| time.as_nanos() as f64 / count as f64;
    let added = streamed.saturating_sub(silent);
    println!("{} KB in {count} deltas of {DELTA} bytes, {sent} chunks sent", text.len() / 1_000);
    println!("  scanned and judged               {:8.0} ns per delta", per_delta(judged));
    println!("  scanned, judged, made into chunks {:7.0} ns per delta", per_delta(added));
    println!("  bare serde_json parse, once      {:8.0} ns per delta", per_delta(parse));
    println!(
        "  ratio to that parse: judged {:.2}, with chunks {:.2}",
        ratio(judged, parse),
        ratio(added, parse)
    );
    println!(
        "  a reader that parses anew each time: {:.0} x as much",
        parse.as_secs_f64() / 2.0 * count as f64 / added.as_secs_f64()
    );
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn main() {
    let module = module();
    // Cargo also runs benchmarks as tests, which only have to end.
    let sizes: &[usize] =
        if std::env::args().any(|each| each == "--bench") { &[10_000, 1_000_000] } else { &[1_000] };
    for bytes in sizes {
        measure(&module, *bytes);
    }
}
