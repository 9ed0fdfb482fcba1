//! Context that the modules of a composition share: what each part sees, and what reaches the modules above. (D-28)

use serde_json::{Value, json};

use crate::flow;
use crate::world::{Reply, World, says};

fn shares() -> Value {
    json!({ "accepts": [{ "type": "state" }], "emits": [{ "type": "state" }] })
}

fn emits(value: u64) -> Reply {
    Reply::Emit(json!({ "state": value }))
}

// The middle module declares no context that it emits, and still stands between two that share it.
#[test]
fn d_28_an_update_reaches_the_modules_above_one_that_emits_nothing() {
    let mut world = World::new();
    let requires = json!([{ "name": "middle" }, { "name": "later" }]);
    let main = json!({ "composition": { "requires": requires }, "context": shares() });
    world.module("main", main, "");
    let accepts = json!({ "accepts": [{ "type": "state" }] });
    let inner = json!({ "requires": [{ "name": "leaf" }] });
    world.module("middle", json!({ "composition": inner, "context": accepts }), "");
    world.module("leaf", json!({ "context": shares() }), "");
    world.module("later", json!({ "context": shares() }), "");
    world.reply("leaf", emits(2)).reply("later", says("later")).reply("main", says("main"));
    world.reply("middle", says("middle"));
    let envelope = world.run("main", json!({ "_context": { "state": 1 } }));
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert!(world.inputs("later")[0].contains("\"state\":2"), "{:?}", world.inputs("later"));
    assert!(world.inputs("main")[0].contains("\"state\":2"), "{:?}", world.inputs("main"));
    assert_eq!(envelope["_emitted_context"], json!({ "state": 2 }));
    // By itself, the middle module returns only the types that it declares.
    let alone = world.run("middle", json!({ "_context": { "state": 1 } }));
    assert!(alone.get("_emitted_context").is_none(), "{alone}");
}

// `second` needs `first` alone. Whether `beside` has ended by then changes nothing.
#[test]
fn d_28_a_part_sees_what_feeds_it_and_not_what_ended_in_time() {
    for gates in [["first", "beside", "second"], ["beside", "first", "second"], ["first", "second", "beside"]]
    {
        let mut world = World::new();
        let composition = json!({ "pattern": "parallel",
            "requires": [{ "name": "first" }, { "name": "beside" }, { "name": "second" }],
            "dataflow": [flow("first.output", "second"), flow("second.output", "output")] });
        world.module("main", json!({ "composition": composition, "context": shares() }), "");
        for (name, reply) in [("first", emits(1)), ("beside", emits(2)), ("second", says("second"))] {
            world.module(name, json!({ "context": shares() }), "");
            world.reply(name, Reply::Gate(Box::new(reply)));
        }
        let (_, envelope) = world.run_then_open("main", &gates);
        assert_eq!(envelope["ok"], true, "{envelope}");
        assert!(world.inputs("second")[0].contains("\"state\":1"), "{gates:?}: {:?}", world.inputs("second"));
        // In the order of declaration, `beside` comes after `first`.
        assert_eq!(envelope["_emitted_context"], json!({ "state": 2 }), "{gates:?}");
    }
}

// A call that the prompt does not wait for updates nothing for the calls beside it.
#[test]
fn d_28_an_async_call_is_seen_by_those_that_need_its_result() {
    for gates in [["slow", "fast", "last"], ["fast", "slow", "last"]] {
        let mut world = World::new();
        world.module("main", json!({ "context": shares() }), "@call:slow[async] @call:fast @call:last");
        for (name, reply) in [("slow", emits(1)), ("fast", emits(2)), ("last", says("last"))] {
            world.module(name, json!({ "context": shares() }), "");
            world.reply(name, Reply::Gate(Box::new(reply)));
        }
        world.reply("main", says("main"));
        let (_, envelope) = world.run_then_open("main", &gates);
        assert_eq!(envelope["ok"], true, "{envelope}");
        assert!(!world.inputs("fast")[0].contains("state"), "{gates:?}: {:?}", world.inputs("fast"));
        assert!(world.inputs("last")[0].contains("\"state\":2"), "{gates:?}: {:?}", world.inputs("last"));
        assert!(world.inputs("main")[0].contains("\"state\":2"), "{gates:?}: {:?}", world.inputs("main"));
    }
}
