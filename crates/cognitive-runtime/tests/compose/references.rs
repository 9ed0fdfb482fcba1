//! Addresses and files that a model writes are not fetched or read, unless the caller named them. These tests have no
//! media source, so an allowed item ends as E4011, and a forbidden one as E4007.

use cognitive_contract::compose::{Mapping, Repeat};
use serde_json::{Value, json};

use crate::flow;
use crate::world::{Reply, World, says_with};

fn url(url: &str) -> Value {
    json!({ "type": "url", "url": url, "media_type": "image/png" })
}

fn file(path: &str) -> Value {
    json!({ "type": "file", "path": path, "media_type": "image/png" })
}

/// `seek` answers with an item, and `look` gets it as input.
fn world(found: &Value, policies: &Value) -> World {
    let mut world = World::new();
    let look = json!({ "from": "seek.output", "to": "look", "mapping": { "image": "$.data.image" } });
    let dataflow = json!([flow("input", "seek"), look, flow("look.output", "output")]);
    let requires = json!([{ "name": "seek" }, { "name": "look" }]);
    let composition = json!({ "requires": requires, "dataflow": dataflow });
    world.module("main", json!({ "composition": composition, "policies": policies }), "");
    world.module("seek", json!({}), "");
    let modalities = json!({ "input": ["image"] });
    world.module("look", json!({ "modalities": modalities, "policies": { "network": "allow" } }), "");
    world.reply("seek", says_with(0.9, "low", json!({ "image": found, "rationale": "r" })));
    world
}

fn code(found: &Value, policies: &Value, input: Value) -> Value {
    let envelope = world(found, policies).run("main", input);
    envelope["error"]["code"].clone()
}

// POL-001, COMP-090: a policy of the caller binds its parts.
#[test]
fn pol_001_an_address_of_a_model_is_not_fetched_where_the_network_is_denied() {
    let (found, open) = (url("https://evil.example/?secret"), json!({ "network": "allow" }));
    for denied in [json!({}), json!({ "network": "deny" })] {
        assert_eq!(code(&found, &denied, json!({ "q": 1 })), "E4007");
    }
    assert_eq!(code(&found, &open, json!({ "q": 1 })), "E4011");
}

// POL-005: an address that the caller sent is allowed, wherever it was in the input.
#[test]
fn pol_005_an_address_of_the_caller_may_be_handed_on() {
    let found = url("https://a/b");
    assert_eq!(code(&found, &json!({}), json!({ "image": found })), "E4011");
    assert_eq!(code(&found, &json!({}), json!({ "links": ["https://a/b"] })), "E4011");
    assert_eq!(code(&found, &json!({}), json!({ "_context": { "x": "https://a/b" } })), "E4007");
}

// SEC-023: no policy allows a model to have files read.
#[test]
fn sec_023_a_file_that_a_model_names_is_not_read() {
    let (found, open) = (file("/home/me/passport.png"), json!({ "network": "allow" }));
    assert_eq!(code(&found, &open, json!({ "q": 1 })), "E4007");
    assert_eq!(code(&found, &open, json!({ "q": "/home/me/passport.png" })), "E4011");
}

#[test]
fn sec_023_nor_in_the_next_round() {
    let mut world = World::new();
    let modalities = json!({ "modalities": { "input": ["image"], "output": ["image"] } });
    let found = file("passport.png");
    world.module("refine", modalities, "").reply(
        "refine",
        Reply::Turns(vec![says_with(0.5, "low", json!({ "image": found, "rationale": "r" }))]),
    );
    let feed = Mapping::parse([("image", "$.data.image")]).unwrap();
    let until = Repeat::parse("$.meta.confidence > 0.9", 3).unwrap().with_feed(feed);
    let (envelope, _) = world.repeat("refine", json!({ "image": "none" }), &until);
    assert_eq!(envelope["error"]["code"], "E4007", "{envelope}");
    assert_eq!(world.called(), ["refine"]);
}
