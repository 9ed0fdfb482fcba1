//! Many runs of one host: they share compiled modules, do not disturb each other and leak no memory.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::sync::Arc;

use cognitive_contract::Envelope;
use cognitive_contract::ports::NullSink;
use cognitive_library::{Library, ModuleCache};
use cognitive_runtime::{Host, Replay, RunRequest, run};
use cognitive_testkit::poll_now;
use serde_json::json;

const REPLY: &str = r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},"data":{"rationale":"One topic.","summary":"Short."}}"#;

fn once(host: &Host, trace_id: &str) -> Envelope {
    let mut request = RunRequest::new("summarizer", json!({ "text": "A long text." }));
    request.options.trace_id = Some(trace_id.to_owned());
    poll_now(run(host, request, &mut NullSink))
}

// S-42: one host is safe for parallel runs, and per-run state is not shared.
#[test]
fn sixty_four_runs_at_once_share_one_compiled_contract() {
    let module_cache = Arc::new(ModuleCache::new(Library::default()));
    let module = module_cache.module("summarizer").unwrap();
    let host = Host::new(Arc::<ModuleCache>::clone(&module_cache), Arc::new(Replay::text(REPLY)));
    std::thread::scope(|scope| {
        for thread in 0..64 {
            let host = &host;
            scope.spawn(move || {
                for round in 0..20 {
                    let trace_id = format!("{thread}-{round}");
                    let envelope = once(host, &trace_id);
                    assert!(envelope.ok());
                    assert_eq!(envelope.meta().extra.get("trace_id").unwrap(), trace_id.as_str());
                }
            });
        }
    });
    assert!(
        Arc::ptr_eq(&module, &module_cache.module("summarizer").unwrap()),
        "compiled once, shared by all"
    );
}

/// The resident memory of this process.
#[cfg(target_os = "linux")]
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn twenty_thousand_runs_leave_nothing_behind() {
    let host = Host::new(Arc::new(ModuleCache::new(Library::default())), Arc::new(Replay::text(REPLY)));
    for _ in 0..1_000 {
        once(&host, "warm-up");
    }
    let before = resident_kib();
    for _ in 0..20_000 {
        once(&host, "t");
    }
    let grown = resident_kib().saturating_sub(before);
    // A leak of a single envelope per run would be ten times this.
    assert!(grown < 4_096, "{grown} KiB more after 20,000 runs");
}
