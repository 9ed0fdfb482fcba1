//! Repetition: runs the same module again until a condition holds. (COMP-005)
//! A manifest cannot declare it; the caller requests it. Always bounded, and runs nothing itself.

use serde_json::{Map, Value, json};

use super::cursor::Slip;
use super::expr::Condition;
use super::mapping::Mapping;
use crate::context::{EMITTED, MEMBER, declares};
use crate::module::Module;

/// The maximum number of rounds that a caller may request. Each round is at least one paid model call.
pub const MAX_ROUNDS: u32 = 100;

/// The type of context that carries the answer of the previous round.
const PREVIOUS: &str = "previous_result";

/// A request to run again until the condition holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    until: Condition,
    rounds: u32,
    feed: Option<Mapping>,
}

/// The decision after a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// The condition does not hold yet.
    Again,
    /// The condition holds.
    Done,
    /// The condition does not hold, and no rounds are left.
    GiveUp,
}

impl Repeat {
    /// Compiles the condition. Limits the rounds to between 1 and [`MAX_ROUNDS`].
    pub fn parse(until: &str, rounds: u32) -> Result<Self, Slip> {
        let until = Condition::parse(until)?;
        Ok(Self { until, rounds: rounds.clamp(1, MAX_ROUNDS), feed: None })
    }

    /// The maximum number of rounds.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Sets the input of the next round: members of its input, each from a path into the envelope.
    #[must_use]
    pub fn with_feed(mut self, feed: Mapping) -> Self {
        self.feed = Some(feed);
        self
    }

    /// Evaluates the envelope of round `finished`, counted from 1.
    #[must_use]
    pub fn evaluate(&self, finished: u32, envelope: &Value) -> Round {
        if self.until.holds(envelope) {
            Round::Done
        } else if finished < self.rounds {
            Round::Again
        } else {
            Round::GiveUp
        }
    }

    /// Builds the input of the next round: the last input, updated from the last answer.
    ///
    /// With a mapping, its members are updated; without one, the members of `data` that the input schema declares. The
    /// emitted context, and the answer itself as `previous_result`, are passed on as context if the module declares
    /// them. Data never becomes context.
    #[must_use]
    pub fn next_input(&self, module: &Module, input: &Value, envelope: &Value) -> Value {
        let mut members = input.as_object().cloned().unwrap_or_default();
        let fed = match &self.feed {
            Some(feed) => feed.apply(envelope),
            None => accepted_members(module, envelope),
        };
        members.extend(fed.into_iter().filter(|(name, _)| name != MEMBER));
        let mut context = match members.shift_remove(MEMBER) {
            Some(Value::Object(context)) => context,
            _ => Map::new(),
        };
        context.extend(previous_result(module, envelope));
        if !context.is_empty() {
            members.insert(MEMBER.to_owned(), Value::Object(context));
        }
        Value::Object(members)
    }
}

fn accepted_members(module: &Module, envelope: &Value) -> Map<String, Value> {
    let taken = module.contract.input().schema().get("properties").and_then(Value::as_object);
    let data = envelope.get("data").and_then(Value::as_object).into_iter().flatten();
    let fits = data.filter(|(name, _)| taken.is_some_and(|taken| taken.contains_key(*name)));
    fits.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn previous_result(module: &Module, envelope: &Value) -> Map<String, Value> {
    let member = |pointer: &str| envelope.pointer(pointer).cloned().unwrap_or(Value::Null);
    let previous = json!({
        "module": module.manifest.name,
        "meta": {
            "confidence": member("/meta/confidence"),
            "risk": member("/meta/risk"),
            "explain": member("/meta/explain"),
        },
        "data": member("/data"),
    });
    let emitted = envelope.get(EMITTED).and_then(Value::as_object).cloned().unwrap_or_default();
    let all = [(PREVIOUS.to_owned(), previous)].into_iter().chain(emitted);
    all.filter(|(kind, _)| declares(module, kind)).collect()
}

#[cfg(test)]
mod tests {
    use cognitive_schema::{Contract, SCHEMA_FILE, SchemaFiles};

    use super::*;
    use crate::{Format, Manifest};

    #[test]
    fn comp_005_a_repetition_ends_by_its_condition_or_by_its_count() {
        let repeat = Repeat::parse("$.meta.confidence > 0.9", 3).unwrap();
        let (unsure, sure) =
            (json!({ "meta": { "confidence": 0.5 } }), json!({ "meta": { "confidence": 0.95 } }));
        assert_eq!(repeat.evaluate(1, &sure), Round::Done);
        assert_eq!(repeat.evaluate(2, &unsure), Round::Again);
        assert_eq!(repeat.evaluate(3, &unsure), Round::GiveUp);
        assert_eq!(repeat.evaluate(3, &sure), Round::Done);
        assert_eq!(Repeat::parse("false", 0).unwrap().evaluate(1, &unsure), Round::GiveUp);
        assert_eq!(Repeat::parse("false", u32::MAX).unwrap().evaluate(MAX_ROUNDS, &unsure), Round::GiveUp);
        assert!(Repeat::parse("until done", 3).is_err());
    }

    fn module(accepts: Value) -> Module {
        let manifest = json!({ "name": "m", "context": { "accepts": accepts } });
        let manifest = Manifest::from_value(&manifest, Format::V22).unwrap();
        let schema = json!({ "input": { "properties": { "code": {}, "hint": {} } }, "data": {} });
        let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)]);
        let contract = Contract::compile(&files, &manifest.layout()).unwrap();
        Module::new(manifest, contract, String::new(), Format::V22)
    }

    fn answer() -> Value {
        json!({
            "ok": true, "meta": { "confidence": 0.4, "risk": "low", "explain": "e", "trace_id": "t" },
            "data": { "code": "new", "shorter": "new!", "rationale": "r", "_context": { "state": "evil" } },
            "_emitted_context": { "state": 2, "other": 3 },
        })
    }

    #[test]
    fn comp_005_the_next_round_gets_what_the_module_takes_or_what_the_caller_maps() {
        let (plain, input) = (module(json!([])), json!({ "code": "old", "hint": "h" }));
        let repeat = Repeat::parse("false", 2).unwrap();
        let next = json!({ "code": "new", "hint": "h" });
        assert_eq!(repeat.next_input(&plain, &input, &answer()), next);
        let feed = Mapping::parse([("code", "$.data.shorter"), ("hint", "$.data.none")]).unwrap();
        let next = json!({ "code": "new!", "hint": "h" });
        assert_eq!(repeat.with_feed(feed).next_input(&plain, &input, &answer()), next);
    }

    // CTX-008, CTX-015, SEC-023: declared context is passed on; data under its name is not.
    #[test]
    fn comp_005_declared_context_goes_from_round_to_round() {
        let module = module(json!([{ "type": "state" }, { "type": "previous_result" }]));
        let feed = Mapping::parse([("_context", "$.data._context")]).unwrap();
        let repeat = Repeat::parse("false", 2).unwrap().with_feed(feed);
        let next = repeat.next_input(&module, &json!({ "_context": { "state": 1 } }), &answer());
        assert_eq!(next["_context"]["state"], 2);
        assert_eq!(next["_context"]["previous_result"]["module"], "m");
        assert_eq!(next["_context"]["previous_result"]["data"]["code"], "new");
        assert!(next["_context"].get("other").is_none() && !next.to_string().contains("trace_id"));
    }
}
