//! The store in memory: isolation, expiry, limits. The store on disk has the same tests.

#![cfg(feature = "ports")]
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::time::{Duration, SystemTime};

use cognitive_contract::Enforcement;
use cognitive_contract::context::{
    Caps, ContextBuilder, ContextEntry, ContextFilter, ContextScope, Key, Origin, Owner, Sanitiser, Ttl,
    Variables, check_emission, choose, prepare,
};
use cognitive_contract::ports::ContextStore;
use cognitive_library::load;
use cognitive_testkit::{MemoryContext, module_folder};
use serde_json::{Value, json};

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn entry(key: &str, value: Value, ttl: i64) -> ContextEntry {
    ContextEntry::new("s", Key::plain(key), value, Ttl::parse(ttl).unwrap(), at(0))
}

fn keys(store: &MemoryContext, owner: &Owner, now: u64) -> Vec<String> {
    let entries = store.list(owner, ContextFilter::default(), at(now)).unwrap();
    entries.into_iter().map(|entry| entry.key.text).collect()
}

#[test]
fn nobody_sees_the_context_of_another() {
    let store = MemoryContext::default();
    let owners = [
        Owner::user(Some("ann")),
        Owner::user(Some("bob")),
        Owner::user(None),
        Owner::new(Some("acme"), Some("ann")),
        Owner::new(Some("ann"), None),
    ];
    for (number, owner) in owners.iter().enumerate() {
        store.put(owner, &entry("k", json!(number), -1), at(0)).unwrap();
    }
    for (number, owner) in owners.iter().enumerate() {
        assert_eq!(store.get(owner, "s", "k", at(1)).unwrap().unwrap().value, json!(number));
        assert_eq!(keys(&store, owner, 1), ["k"]);
    }
    assert!(!store.remove(&Owner::user(Some("eve")), "s", "k").unwrap());
    assert!(store.remove(&owners[0], "s", "k").unwrap() && !store.remove(&owners[0], "s", "k").unwrap());
    assert_eq!(keys(&store, &owners[1], 1), ["k"]);
}

// CTX-022: an expired entry is removed from the store; a lifetime of 0 is never stored.
#[test]
fn ctx_022_what_has_expired_is_gone() {
    let store = MemoryContext::default();
    let owner = Owner::default();
    for (key, ttl) in [("hour", 3_600), ("never", -1), ("request", 0), ("minute", 60)] {
        store.put(&owner, &entry(key, json!(1), ttl), at(0)).unwrap();
    }
    assert_eq!(keys(&store, &owner, 59), ["minute", "never", "hour"]);
    assert_eq!(store.get(&owner, "s", "minute", at(60)).unwrap(), None);
    assert_eq!(keys(&store, &owner, 59), ["never", "hour"], "it does not come back with the clock");
    assert_eq!((store.gc(at(3_600)), store.gc(at(3_600))), (Ok(1), Ok(0)));
    assert_eq!(keys(&store, &owner, 400_000_000), ["never"]);
}

#[test]
fn the_oldest_goes_first() {
    let owner = Owner::default();
    let store = MemoryContext::default();
    for number in 0..1_001 {
        store.put(&owner, &entry(&number.to_string(), json!(1), -1), at(0)).unwrap();
    }
    store.put(&owner, &entry("1", json!(2), -1), at(0)).unwrap();
    let kept = keys(&store, &owner, 1);
    assert_eq!(
        (kept.len(), kept[0].as_str(), kept[999].as_str()),
        (1_000, "1", "2"),
        "a new value makes it new"
    );

    let store = MemoryContext::with_caps(Caps { entries: 100, bytes: 10_000 });
    for number in 0..30 {
        store.put(&owner, &entry(&number.to_string(), json!("x".repeat(900)), -1), at(0)).unwrap();
    }
    let kept = keys(&store, &owner, 1);
    assert_eq!((kept.len(), kept[0].as_str()), (10, "29"));
    let error = store.put(&owner, &entry("large", json!("x".repeat(2_000)), -1), at(0)).unwrap_err();
    assert!(error.ends_with("the limit is 1000"), "{error}");
    assert_eq!(keys(&store, &owner, 1), kept, "nothing was pushed out for it");
}

// CTX-008, CTX-016: emitted in one run, passed to the next, and emitted with a change.
#[test]
fn ctx_008_016_state_goes_round() {
    let block = json!({ "accepts": [{ "type": "session_state" }], "emits": [{ "type": "session_state", "ttl": 60 }] });
    let manifest = json!({ "name": "sample", "tier": "decision", "context": block });
    let module = load(&module_folder(&manifest, &json!({ "input": {}, "data": {} }), "p")).unwrap();
    let store = MemoryContext::default();
    let owner = Owner::user(Some("ann"));
    let now = SystemTime::UNIX_EPOCH;
    for turn in 1..=3 {
        let from = ContextScope { session: Some("s"), input_hash: None };
        let filter = ContextFilter { kind: Some("session_state"), from: Some(from) };
        let entries = store.list(&owner, filter, now).unwrap();
        let variables = Variables {
            module: "sample",
            input_hash: &|| "h".to_owned(),
            user_id: None,
            session_id: Some("s"),
        };
        let accept = &module.manifest.context.accepts[0];
        let before = choose(accept, &entries, &variables, now).map(|entry| entry.value.clone());
        let builder =
            before.map_or_else(ContextBuilder::new, |state| ContextBuilder::new().session_state(state));
        let input = builder.into_input(json!({}));
        let prepared = prepare(&module, input, &Sanitiser::default(), Enforcement::Full).unwrap();
        let turns =
            prepared.context().get("session_state").map_or(0, |state| state["turns"].as_u64().unwrap());
        assert_eq!(turns, turn - 1);
        let given = json!({ "session_state": { "turns": turns + 1 } });
        let emission = check_emission(&module, Some(&given), &Origin { variables, now });
        for entry in &emission.entries {
            store.put(&owner, entry, now).unwrap();
        }
    }
    assert_eq!(store.list(&owner, ContextFilter::default(), now).unwrap().len(), 1);
}
