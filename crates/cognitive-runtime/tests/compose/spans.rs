//! The spans of runs: one for every part below its caller's span, and one for every model call, with their durations.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cognitive_contract::compose::Repeat;
use cognitive_contract::ports::NullSink;
use cognitive_contract::span::SpanKind;
use cognitive_runtime::{RunRequest, repeat, run, stream};
use serde_json::json;

use crate::board::{Board, text};
use crate::flow;
use crate::world::{Reply, World, says, says_with};

fn drawn(world: &World, request: RunRequest, gates: &[&str]) -> Arc<Board> {
    let (board, host, mut request) = (Arc::new(Board::default()), world.host(), request);
    request.options.spans = Some(board.place());
    world.poll_all(run(&host, request, &mut NullSink), gates);
    board
}

fn request(module: &str) -> RunRequest {
    RunRequest::new(module, json!({}))
}

/// `main` is made of `one` and of `inner`, which calls `leaf`.
fn nested() -> World {
    let mut world = World::new();
    let outer = json!({ "requires": [{ "name": "one" }, { "name": "inner" }],
        "dataflow": [flow("input", "one"), flow("one.output", "inner"), flow("inner.output", "output")] });
    world.module("main", json!({ "composition": outer, "response": { "mode": "streaming" } }), "");
    world.module("one", json!({}), "").reply("one", says("one"));
    world.module("inner", json!({}), "@call:leaf").reply("inner", says("inner"));
    world.module("leaf", json!({}), "").reply("leaf", says("leaf"));
    world
}

const NESTED: [&str; 7] = [
    "run main 0-13 30+6",
    "  run one 1-4 10+2",
    "    chat wanted 2-3 10+2",
    "  run inner 5-12 20+4",
    "    run leaf 6-9 10+2",
    "      chat wanted 7-8 10+2",
    "    chat wanted 10-11 10+2",
];

#[test]
fn a_composition_is_a_tree_of_spans() {
    let mut request = request("main");
    request.options.trace_id = Some("4bf92f35-77b3-4da6-a3ce-929d0e0e4736".to_owned());
    let board = drawn(&nested(), request, &[]);
    assert_eq!(board.tree(), NESTED);
    let spans = board.spans();
    assert!(spans.iter().all(|span| span.trace_id == "4bf92f3577b34da6a3ce929d0e0e4736"));
    let one = spans.iter().find(|span| span.name == "run one").unwrap();
    assert_eq!((text(one, "cogn.module.version").as_deref(), one.kind), (Some("1.2.3"), SpanKind::Internal));
    let chat = spans.iter().find(|span| span.parent.as_ref() == Some(&one.span_id)).unwrap();
    for (name, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "model"),
        ("gen_ai.request.model", "wanted"),
        ("gen_ai.response.model", "m"),
        ("cogn.module", "one"),
    ] {
        assert_eq!(text(chat, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(chat.kind, SpanKind::Client);
}

#[test]
fn a_stream_is_drawn_like_any_run() {
    let (board, host) = (Arc::new(Board::default()), nested().host());
    let mut request = request("main");
    request.options.spans = Some(board.place());
    let mut future = std::pin::pin!(stream(&host, request, |_| {}));
    assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    assert_eq!(board.tree(), NESTED);
}

#[test]
fn a_part_that_fails_says_how_and_the_others_that_they_were_cancelled() {
    let mut world = World::new();
    let requires = json!([{ "name": "never" }, { "name": "gone", "fallback": "other" }, { "name": "slow" },
                          { "name": "bad" }]);
    let dataflow = json!([{ "from": "input", "to": "never", "condition": "$.go == true" }, flow("input", "gone"),
                          flow("input", "slow"), flow("input", "bad"), flow("gone.output", "output")]);
    let composition = json!({ "pattern": "parallel", "requires": requires, "dataflow": dataflow });
    world.module("main", json!({ "composition": composition }), "");
    for name in ["never", "gone", "other", "slow", "bad"] {
        world.module(name, json!({}), "");
    }
    world.reply("gone", Reply::Refuse("E2003")).reply("other", says("other"));
    world.reply("slow", Reply::Gate(Box::new(says("slow"))));
    world.reply("bad", Reply::Gate(Box::new(Reply::Late)));
    // A skipped part took no time and has no span.
    assert_eq!(
        drawn(&world, request("main"), &["bad"]).tree(),
        [
            "run main 0-17 20+4 E2002",
            "  run gone 1-4 10+2 E2003",
            "    chat wanted 2-3 10+2",
            "  run other 5-8 10+2",
            "    chat wanted 6-7 10+2",
            "  run slow 9-16 cancelled",
            "    chat wanted 10-15 cancelled",
            "  run bad 11-14 E2002",
            "    chat wanted 12-13 E2002",
        ]
    );
}

#[test]
fn rounds_are_parts_of_a_repetition() {
    let mut world = World::new();
    let turn = |sure: f64| says_with(sure, "low", json!({ "rationale": "r" }));
    world.module("refine", json!({}), "").reply("refine", Reply::Turns(vec![turn(0.5), turn(0.95)]));
    let (board, host, mut asked) = (Arc::new(Board::default()), world.host(), request("refine"));
    asked.options.spans = Some(board.place());
    let until = Repeat::parse("$.meta.confidence > 0.9", 5).unwrap();
    world.poll_all(repeat(&host, asked, &until, &mut NullSink), &[]);
    assert_eq!(
        board.tree(),
        [
            "repeat refine 0-9 20+4",
            "  run refine 1-4 10+2",
            "    chat wanted 2-3 10+2",
            "  run refine 5-8 10+2",
            "    chat wanted 6-7 10+2",
        ]
    );
}

// An unusable answer has arrived all the same; it is the run that failed.
#[test]
fn every_answer_that_was_asked_for_is_a_span_and_nothing_else_is() {
    let mut world = World::new();
    world
        .module("words", json!({}), "")
        .reply("words", Reply::Turns(vec![Reply::Raw("secret prose"), says("r")]));
    let mut again = request("words");
    again.options.settings.reask = Some(1);
    let asked_twice = ["run words 0-5 10+2", "  chat wanted 1-2", "  chat wanted 3-4 10+2"];
    assert_eq!(drawn(&world, again, &[]).tree(), asked_twice);
    let mut own = World::new();
    own.module("words", json!({}), "").reply("words", Reply::Refuse("SECRET_WORDS"));
    let refused = drawn(&own, request("words"), &[]);
    assert_eq!(refused.tree(), ["run words 0-3 10+2 module_code", "  chat wanted 1-2 10+2"]);
    let nowhere = drawn(&own, request("my secret module"), &[]);
    assert_eq!(nowhere.tree(), ["run 0-1 E4006"]);
    let shown = format!("{:?}{:?}", refused.spans(), nowhere.spans()).to_lowercase();
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn a_run_that_is_dropped_says_that_it_was_cancelled() {
    let mut world = World::new();
    world.module("slow", json!({}), "").reply("slow", Reply::Gate(Box::new(says("slow"))));
    let (board, host, mut asked) = (Arc::new(Board::default()), world.host(), request("slow"));
    asked.options.spans = Some(board.place());
    {
        let mut sink = NullSink;
        let mut future = std::pin::pin!(run(&host, asked, &mut sink));
        assert!(matches!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
    }
    assert_eq!(board.tree(), ["run slow 0-3 cancelled", "  chat wanted 1-2 cancelled"]);
}
