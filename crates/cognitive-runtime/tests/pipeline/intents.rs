//! The audit records of a run: the intent before a request leaves, and exactly one end.

use std::pin::pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cognitive_contract::ports::{
    Attempt, AuditLog, AuditRecord, CallSink, DecodeMode, Destination, Event, EventSink, ModelCall, ModelEnd,
    NullSink, PortFuture, Provider, ProviderError, Stage, Usage,
};
use cognitive_runtime::{Host, RunRequest, run};
use serde_json::{Value, json};

use cognitive_testkit::poll_now;

use crate::{folder, good, schema};

/// An audit log whose commits wait for permission, or fail.
#[derive(Default)]
struct Log {
    records: Mutex<Vec<AuditRecord>>,
    waits: AtomicBool,
    fails: AtomicBool,
}

impl AuditLog for Log {
    fn record(&self, record: &AuditRecord) -> Result<(), String> {
        self.records.lock().unwrap().push(record.clone());
        Ok(())
    }

    fn commit(&self, record: AuditRecord) -> PortFuture<'_, Result<(), String>> {
        Box::pin(async move {
            std::future::poll_fn(|_| {
                if self.waits.load(Ordering::Relaxed) { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            if self.fails.load(Ordering::Relaxed) {
                return Err("the disk is full".to_owned());
            }
            self.submit(record)
        })
    }
}

impl Log {
    fn events(&self) -> Vec<&'static str> {
        self.records.lock().unwrap().iter().map(|record| record.event).collect()
    }
}

/// A model that counts its calls; it answers, never ends, or panics.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Answers,
    NeverEnds,
    Falls,
}

struct Model(Way, AtomicUsize);

impl Provider for Model {
    fn name(&self) -> &'static str {
        "stub"
    }

    fn destination(&self) -> Option<Destination> {
        Some(Destination { model: Some("m".to_owned()), address: Some("http://localhost/v1".to_owned()) })
    }

    fn ask<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            self.1.fetch_add(1, Ordering::Relaxed);
            let mut failed = Attempt::new(DecodeMode::Prompt, "overloaded", Duration::ZERO);
            failed.usage = Some(Usage::new(7, 1));
            sink.attempt(failed);
            sink.before_retry().await?;
            match self.0 {
                Way::NeverEnds => std::future::pending().await,
                Way::Falls => panic!("on purpose"),
                Way::Answers => sink.piece(&good().to_string()),
            }
            Ok(ModelEnd::complete("m", DecodeMode::Prompt))
        })
    }
}

fn world(way: Way) -> (Host, Arc<Log>, Arc<Model>) {
    let (model, log) = (Arc::new(Model(way, AtomicUsize::new(0))), Arc::new(Log::default()));
    let module = folder(&json!({ "tier": "decision", "version": "1.2.3" }), &schema());
    let mut host = Host::new(Arc::new(module), Arc::clone(&model) as Arc<dyn Provider>);
    host.audit = Some(Arc::clone(&log) as Arc<dyn AuditLog>);
    (host, log, model)
}

fn request() -> RunRequest {
    let mut request = RunRequest::new("sample", json!({ "q": "?" }));
    request.options.key = Some("ann".to_owned());
    request.options.user = Some("ann".to_owned());
    request
}

// H4: no request leaves before its record is safe, and no retry either. The record names the request and its owner.
#[test]
fn no_request_leaves_before_its_record_is_kept() {
    let (host, log, model) = world(Way::Answers);
    log.waits.store(true, Ordering::Relaxed);
    let mut sink = NullSink;
    let mut future = pin!(run(&host, request(), &mut sink));
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
    assert_eq!((model.1.load(Ordering::Relaxed), log.events().len()), (0, 0), "nobody was asked yet");
    log.waits.store(false, Ordering::Relaxed);
    assert!(future.as_mut().poll(&mut context).is_ready());
    assert_eq!(log.events(), ["call", "call", "run"]);
    let records = log.records.lock().unwrap();
    let [first, second, run] = records.as_slice() else { unreachable!() };
    assert_eq!(first.receipt["attempt"], 1);
    assert_eq!(
        second.receipt,
        json!({ "attempt": 2, "provider": "stub", "model": "m", "address": "http://localhost/v1" })
    );
    for record in [first, second, run] {
        assert_eq!((record.key.as_deref(), record.user.as_deref()), (Some("ann"), Some("ann")));
        assert_eq!((&record.run_id, record.version.as_str()), (&first.run_id, "1.2.3"));
        assert_eq!(record.model, "stub/m");
    }
    assert_eq!(first.run_id.len(), 32);
}

// H4, S-18: a dropped run records its end and its cost so far; so does one that panics.
#[test]
fn a_run_that_nobody_waits_for_leaves_its_end() {
    let (host, log, _) = world(Way::NeverEnds);
    let mut sink = NullSink;
    let mut future = Box::pin(run(&host, request(), &mut sink));
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(log.events(), ["call", "call"]);
    drop(future);
    assert_eq!(log.events(), ["call", "call", "run"]);
    let records = log.records.lock().unwrap();
    let end = records.last().unwrap();
    assert_eq!(
        (end.ok, end.code.as_deref(), &end.receipt["end"]),
        (false, Some("E2010"), &json!("cancelled"))
    );
    assert_eq!(end.usage, Some(Usage::new(7, 1)));
    assert_eq!((&end.run_id, end.model.as_str()), (&records[0].run_id, "stub/m"));
    drop(records);
    let (host, log, _) = world(Way::Falls);
    std::panic::set_hook(Box::new(|_| {}));
    let envelope = poll_now(run(&host, request(), &mut NullSink));
    let _ = std::panic::take_hook();
    assert_eq!((envelope.ok(), log.events()), (false, vec!["call", "call", "run"]));
}

// The end of a run that has to be recorded is stored before its answer leaves; otherwise the process could die in between.
#[test]
fn a_required_record_of_the_end_is_kept_before_the_answer() {
    for is_required in [false, true] {
        let (mut host, log, _) = world(Way::Answers);
        host.audit_required = is_required;
        let log_at_end = Arc::clone(&log);
        // The last event before the record: from now on commits wait.
        let mut sink = AtCheck(move || log_at_end.waits.store(true, Ordering::Relaxed));
        let mut future = pin!(run(&host, request(), &mut sink));
        let mut context = Context::from_waker(Waker::noop());
        let is_done = future.as_mut().poll(&mut context).is_ready();
        assert_eq!(is_done, !is_required);
        if is_required {
            assert_eq!(log.events(), ["call", "call"]);
            log.waits.store(false, Ordering::Relaxed);
            assert!(future.as_mut().poll(&mut context).is_ready());
        }
        assert_eq!(log.events(), ["call", "call", "run"]);
    }
}

/// Acts when the reply of the model is checked.
struct AtCheck<F>(F);

impl<F: FnMut() + Send> EventSink for AtCheck<F> {
    fn event(&mut self, event: Event<'_>) {
        if matches!(event, Event::Stage(Stage::Check)) {
            (self.0)();
        }
    }
}

// H4: an intent that cannot be recorded is a warning. If the operator requires records, it ends the run before
// anything leaves.
#[test]
fn an_intent_that_cannot_be_kept_warns_or_ends_the_run() {
    let (mut host, log, model) = world(Way::Answers);
    log.fails.store(true, Ordering::Relaxed);
    let value = |host: &Host| -> Value {
        serde_json::to_value(poll_now(run(host, request(), &mut NullSink))).unwrap()
    };
    let warned = value(&host);
    assert_eq!((&warned["ok"], model.1.load(Ordering::Relaxed)), (&json!(true), 1));
    assert_eq!(warned["meta"]["warnings"][0]["code"], "AUDIT");
    host.audit_required = true;
    let failed = value(&host);
    assert_eq!((&failed["error"]["code"], model.1.load(Ordering::Relaxed)), (&json!("E4000"), 1));
    assert_eq!(failed["error"]["details"]["kind"], "audit");
}
