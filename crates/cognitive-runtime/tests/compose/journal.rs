//! Runs with a journal: a recorded part is not run again, and counts like one that runs now.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cognitive_contract::ports::{NullSink, PartAnswer, PartJournal, PartQuestion, PortFuture};
use cognitive_runtime::{RunRequest, run};
use serde_json::{Value, json};

use crate::world::{Reply, World, says};

/// The answers of parts in order, and a flag that is set once an answer was recalled.
#[derive(Default)]
struct Remembered(Mutex<Vec<(PartQuestion, PartAnswer, bool)>>);

impl PartJournal for Remembered {
    fn recall<'a>(&'a self, question: &'a PartQuestion) -> PortFuture<'a, Option<PartAnswer>> {
        let mut entries = self.0.lock().unwrap();
        let found = entries.iter_mut().find(|(asked, _, given)| asked == question && !given);
        let answer = found.map(|(_, answer, given)| {
            *given = true;
            answer.clone()
        });
        Box::pin(std::future::ready(answer))
    }

    fn record<'a>(&'a self, question: &'a PartQuestion, answer: &'a PartAnswer) -> PortFuture<'a, ()> {
        self.0.lock().unwrap().push((question.clone(), answer.clone(), true));
        Box::pin(std::future::ready(()))
    }
}

impl Remembered {
    /// The journal as another process opens it.
    fn reopen(&self) {
        self.0.lock().unwrap().iter_mut().for_each(|(.., given)| *given = false);
    }

    fn paths(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(question, ..)| question.path.clone()).collect()
    }
}

fn world() -> World {
    let mut world = World::new();
    let requires = ["a", "b", "c"].map(|name| json!({ "name": name }));
    let steps = json!([
        { "from": "input", "to": "a" },
        { "from": "a.output", "to": "b" },
        { "from": "b.output", "to": "c" },
        { "from": ["a.output", "b.output", "c.output"], "to": "output", "aggregate": "array" },
    ]);
    world.module("whole", json!({ "composition": { "requires": requires, "dataflow": steps } }), "");
    for name in ["a", "b", "c"] {
        world.module(name, json!({}), "").reply(name, says(name));
    }
    world
}

fn answer(world: &World, journal: &Arc<Remembered>, max_calls: u64) -> Value {
    let mut host = world.host();
    host.journal = Some(Arc::clone(journal) as Arc<dyn PartJournal>);
    let mut request = RunRequest::new("whole", json!({ "q": 1 }));
    request.options.settings.max_calls = Some(max_calls);
    let (_, envelope) = world.poll_all(run(&host, request, &mut NullSink), &[]);
    serde_json::to_value(&envelope).unwrap()
}

fn without_times(mut envelope: Value) -> Value {
    let meta = envelope["meta"].as_object_mut().unwrap();
    for measured in ["trace_id", "latency_ms", "processing_time_ms"] {
        meta.shift_remove(measured);
    }
    for part in envelope["data"]["results"].as_array_mut().unwrap() {
        if let Some(meta) = part.get_mut("meta").and_then(Value::as_object_mut) {
            meta.shift_remove("trace_id");
        }
    }
    envelope
}

#[test]
fn a_run_that_is_made_again_asks_nobody_who_answered() {
    let (world, journal) = (world(), Arc::new(Remembered::default()));
    let first = answer(&world, &journal, 64);
    assert_eq!(journal.paths(), ["whole/a", "whole/b", "whole/c"]);
    journal.reopen();
    let second = answer(&world, &journal, 64);
    assert_eq!(world.called(), ["a", "b", "c"], "nobody is asked twice");
    assert_eq!(second["meta"]["usage"], first["meta"]["usage"], "what was paid before is in the sum");
    assert_eq!(without_times(second), without_times(first));
}

#[test]
fn a_run_that_died_goes_on_where_it_was() {
    let (mut world, journal) = (world(), Arc::new(Remembered::default()));
    world.reply("b", Reply::Gate(Box::new(says("b"))));
    {
        let mut host = world.host();
        host.journal = Some(Arc::clone(&journal) as Arc<dyn PartJournal>);
        let (request, mut sink) = (RunRequest::new("whole", json!({ "q": 1 })), NullSink);
        let mut died = pin!(run(&host, request, &mut sink));
        assert!(matches!(died.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
    }
    assert_eq!((world.called(), journal.paths()), (vec!["a".into(), "b".into()], vec!["whole/a".to_owned()]));
    world.reply("b", says("b"));
    journal.reopen();
    assert_eq!(answer(&world, &journal, 64)["ok"], true);
    assert_eq!(world.called(), ["a", "b", "b", "c"], "only what was under way is asked again");
}

#[test]
fn calls_of_a_part_that_is_remembered_count_against_the_limit() {
    let (mut world, journal) = (world(), Arc::new(Remembered::default()));
    world.reply("a", Reply::Turns(vec![Reply::Raw("no JSON"), says("a")]));
    let mut host = world.host();
    host.journal = Some(Arc::clone(&journal) as Arc<dyn PartJournal>);
    let mut request = RunRequest::new("whole", json!({ "q": 1 }));
    (request.options.settings.reask, request.options.settings.max_calls) = (Some(1), Some(3));
    for _ in 0..2 {
        journal.reopen();
        let (_, envelope) = world.poll_all(run(&host, request.clone(), &mut NullSink), &[]);
        assert_eq!(envelope.error().map(|error| error.code().to_owned()), Some("E4100".to_owned()));
    }
    assert_eq!(world.called(), ["a", "a", "b"], "two for `a`, one for `b`, and none left for `c`");
}

#[test]
fn another_input_is_another_question() {
    let (world, journal) = (world(), Arc::new(Remembered::default()));
    answer(&world, &journal, 64);
    journal.reopen();
    let mut host = world.host();
    host.journal = Some(Arc::clone(&journal) as Arc<dyn PartJournal>);
    world.poll_all(run(&host, RunRequest::new("whole", json!({ "q": 2 })), &mut NullSink), &[]);
    // `a` answers the same, so the later questions are the same.
    assert_eq!(world.called(), ["a", "b", "c", "a"]);
}
