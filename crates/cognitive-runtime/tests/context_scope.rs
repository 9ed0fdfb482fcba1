//! The modules that find stored context: the one whose variables give the emitter's key pattern the same key. (D-22)

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

use std::sync::Arc;
use std::time::SystemTime;

use cognitive_contract::context::{ContextEntry, Key, Owner, Ttl};
use cognitive_contract::ports::{ContextStore, NullSink};
use cognitive_runtime::{Host, RunRequest, run};
use cognitive_testkit::{
    MemoryContext, NamedModules, ScriptedProvider, good_answer, loaded_module, open_schema, poll_now,
};
use serde_json::{Value, json};

/// A module `notes` that emits one type of context, and readers with a store in common.
struct World {
    modules: NamedModules,
    store: Arc<MemoryContext>,
    kind: &'static str,
}

impl World {
    fn new(kind: &'static str, pattern: Option<&str>) -> Self {
        let mut world =
            Self { modules: NamedModules::default(), store: Arc::new(MemoryContext::default()), kind };
        let mut emit = json!({ "type": kind, "ttl": 3_600 });
        if let Some(pattern) = pattern {
            emit["key_pattern"] = json!(pattern);
        }
        world.module("notes", json!({ "emits": [emit], "accepts": [{ "type": kind }] }));
        world.module("chat", json!({ "accepts": [{ "type": kind }] }));
        world.module("strict", json!({ "accepts": [{ "type": kind, "required": true }] }));
        world.module("follower", json!({ "accepts": [{ "type": kind, "from_module": "notes" }] }));
        world
    }

    fn module(&mut self, name: &str, context: Value) {
        let manifest = json!({ "name": name, "version": "1.0.0", "tier": "decision", "context": context });
        self.modules.0.insert(name.to_owned(), loaded_module(&manifest, &open_schema(), "Do it."));
    }

    /// Runs a module in a session, and returns the envelope and what the model read.
    fn go(&self, module: &str, session: &str, emitted: Option<Value>) -> (Value, String) {
        let mut answer = good_answer(&json!({ "rationale": "r" }));
        if let Some(value) = emitted {
            answer["_emitted_context"] = json!({ self.kind: value });
        }
        let model = Arc::new(ScriptedProvider::new([answer]));
        let mut host = Host::new(Arc::new(self.modules.clone()), model.clone());
        host.context = Some(self.store.clone());
        let mut request = RunRequest::new(module, json!({}));
        request.options.user = Some("ann".to_owned());
        request.options.session = Some(session.to_owned());
        let envelope = serde_json::to_value(poll_now(run(&host, request, &mut NullSink))).unwrap();
        (envelope, model.calls().pop().map(|call| call.input).unwrap_or_default())
    }

    fn emit(self) -> Self {
        let (envelope, _) = self.go("notes", "s", Some(json!({ "module": "notes", "said": "hello" })));
        assert_eq!(envelope["ok"], true, "{envelope}");
        self
    }

    fn finds(&self, module: &str, session: &str) -> bool {
        self.go(module, session, None).1.contains("hello")
    }
}

#[test]
fn d_22_a_key_with_the_modules_name_keeps_context_with_the_module() {
    let world = World::new("session_state", Some("${module}:last")).emit();
    assert!(world.finds("notes", "s") && world.finds("notes", "other"), "its pattern names no session");
    assert!(!world.finds("chat", "s") && !world.finds("chat", "other"));
    let (refused, _) = world.go("strict", "s", None);
    assert_eq!(refused["error"]["code"], "E1001", "{refused}");
    assert!(world.finds("follower", "s"), "it names the module that it follows");
}

#[test]
fn d_22_a_literal_key_is_shared_on_purpose() {
    let world = World::new("session_state", Some("team notes")).emit();
    assert!(world.finds("chat", "s") && world.finds("strict", "other"));
}

#[test]
fn d_22_the_default_patterns_share_a_session_and_a_profile() {
    for (kind, in_session, elsewhere) in [
        ("session_state", true, false),
        ("conversation_history", true, false),
        ("user_profile", true, true),
        ("previous_result", false, false),
        ("own_notes", false, false),
    ] {
        let world = World::new(kind, None).emit();
        assert_eq!(
            (world.finds("chat", "s"), world.finds("chat", "other")),
            (in_session, elsewhere),
            "{kind}"
        );
        assert!(world.finds("notes", "s") && world.finds("follower", "s"), "{kind}");
    }
}

#[test]
fn d_22_what_a_person_sets_is_found_everywhere() {
    let world = World::new("own_notes", None);
    let now = SystemTime::now();
    let entry = ContextEntry::new("own_notes", Key::plain("mine"), json!("hello"), Ttl::Forever, now);
    world.store.put(&Owner::user(Some("ann")), &entry, now).unwrap();
    assert!(world.finds("chat", "s") && world.finds("notes", "other"));
}
