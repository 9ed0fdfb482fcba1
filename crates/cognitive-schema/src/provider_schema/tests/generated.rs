//! Generated schemas: every schema that compiles can be lowered, and every value of the contract can still be answered.
//! The random generator has a fixed seed, so failures are reproducible.

use super::*;

/// A small random number generator (xorshift), sufficient to vary schemas.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn flip(&mut self) -> bool {
        self.roll(2) == 0
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[usize::try_from(self.roll(words.len() as u64)).unwrap()]
    }

    fn some<T>(&mut self, least: u64, most: u64, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..least + self.roll(most - least + 1)).map(|_| make(self)).collect()
    }

    /// Any small value.
    fn value(&mut self, depth: u64) -> Value {
        match self.roll(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.flip()),
            2 => json!(self.roll(15)),
            3 => json!(f64::from(u32::try_from(self.roll(40)).unwrap()) / 4.0 - 2.0),
            4 => json!(self.some(0, 4, |dice| dice.pick(&["a", "b", "c"])).concat()),
            5 => json!(self.some(0, 3, |dice| dice.value(depth - 1))),
            _ => {
                let members =
                    self.some(0, 3, |dice| (dice.pick(&["a", "b", "c"]).to_owned(), dice.value(depth - 1)));
                Value::Object(members.into_iter().collect())
            }
        }
    }

    /// A closed, typed schema, for which lowering must not tighten anything.
    fn closed(&mut self, depth: u64) -> Value {
        match self.roll(if depth == 0 { 8 } else { 13 }) {
            0 => json!({ "type": "boolean" }),
            1 => json!({ "type": "null" }),
            2 => json!({ "type": "string", "minLength": self.roll(3), "maxLength": 2 + self.roll(4) }),
            3 => json!({ "type": ["string", "null"], "pattern": "^[ab]*$" }),
            4 => json!({ "type": "integer", "exclusiveMinimum": self.roll(3), "maximum": 3 + self.roll(6) }),
            5 => json!({ "type": "number", "minimum": 0.5, "exclusiveMaximum": 4, "multipleOf": 0.25 }),
            6 => json!({ "enum": self.some(1, 4, |dice| dice.value(1)) }),
            7 => json!({ "const": self.pick(&["a", "b", "c"]) }),
            8 => json!({ "anyOf": self.some(1, 3, |dice| dice.closed(depth - 1)) }),
            9 => json!({ "oneOf": self.some(1, 3, |dice| dice.closed(depth - 1)) }),
            10 => json!({ "allOf": self.some(1, 2, |dice| dice.closed(depth - 1)) }),
            11 => {
                let least = self.roll(3);
                json!({ "type": "array", "items": self.closed(depth - 1), "minItems": least, "maxItems": least + self.roll(4) })
            }
            _ => self.closed_object(depth),
        }
    }

    fn closed_object(&mut self, depth: u64) -> Value {
        let members =
            self.some(1, 3, |dice| (dice.pick(&["a", "b", "c"]).to_owned(), dice.closed(depth - 1)));
        let members: Map<String, Value> = members.into_iter().collect();
        let required: Vec<String> = members.keys().filter(|_| self.flip()).cloned().collect();
        json!({ "type": "object", "properties": members, "required": required, "additionalProperties": false })
    }

    /// A schema with every keyword of Draft-07, open and closed, with recursive references.
    fn wild(&mut self, depth: u64) -> Value {
        if depth == 0 {
            let reference = self.pick(&["#/data", "#/$defs/a", "#/$defs/b"]);
            return if self.flip() { json!({ "$ref": reference }) } else { self.closed(0) };
        }
        let mut node = Map::new();
        for _ in 0..self.roll(5) {
            let (keyword, value) = self.wild_keyword(depth - 1);
            node.insert(keyword.to_owned(), value);
        }
        if self.roll(12) == 0 { json!(self.flip()) } else { Value::Object(node) }
    }

    fn wild_keyword(&mut self, depth: u64) -> (&'static str, Value) {
        const SCHEMA: [&str; 9] = [
            "items",
            "additionalProperties",
            "not",
            "if",
            "then",
            "else",
            "contains",
            "propertyNames",
            "additionalItems",
        ];
        const LIST: [&str; 4] = ["anyOf", "oneOf", "allOf", "items"];
        const NAMED: [&str; 3] = ["properties", "patternProperties", "dependencies"];
        const COUNT: [&str; 9] = [
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "minimum",
            "maximum",
            "exclusiveMinimum",
        ];
        match self.roll(9) {
            0 | 1 => (self.pick(&SCHEMA), self.wild(depth)),
            2 => (self.pick(&LIST), json!(self.some(1, 3, |dice| dice.wild(depth)))),
            3 | 4 => {
                let named =
                    self.some(0, 3, |dice| (dice.pick(&["a", "b", "c"]).to_owned(), dice.wild(depth)));
                (self.pick(&NAMED), Value::Object(named.into_iter().collect()))
            }
            5 => (self.pick(&COUNT), json!(self.roll(9))),
            6 => {
                let (one, two) = (["string", "object", "array", "null"], ["integer", "number", "boolean"]);
                let names = [self.pick(&one), self.pick(&two)];
                ("type", if self.flip() { json!(names[0]) } else { json!(names) })
            }
            7 => {
                let mut names = self.some(0, 2, |dice| dice.pick(&["a", "b", "c"]));
                names.dedup();
                ("required", json!(names))
            }
            _ => match self.roll(6) {
                0 => ("enum", json!([self.value(1)])),
                1 => ("const", self.value(1)),
                2 => ("pattern", json!(self.pick(&["^a$", "(?=b)", "\\d+", "["]))),
                3 => ("format", json!(self.pick(&["date", "uri", "made-up"]))),
                4 => ("uniqueItems", json!(self.flip())),
                _ => ("multipleOf", json!(0.5)),
            },
        }
    }
}

fn compiled(data: Value, defs: Value) -> Option<TestModule> {
    let files =
        SchemaFiles::from([(SCHEMA_FILE.to_owned(), json!({ "input": {}, "data": data, "$defs": defs }))]);
    compile(rules(&json!({})), &files).ok()
}

#[test]
fn d_05_whatever_compiles_can_be_lowered() {
    let mut dice = Dice(0x5EED);
    let mut lowered = 0;
    for _ in 0..500 {
        let (data, defs) = (dice.wild(3), json!({ "a": dice.wild(2), "b": dice.wild(2) }));
        let Some(module) = compiled(data, defs) else { continue };
        for target in SchemaTarget::ALL {
            check(&lower(&module, target));
        }
        lowered += 1;
    }
    assert!(lowered > 200, "{lowered}");
}

#[test]
fn d_05_lowering_forbids_nothing_that_the_contract_accepts() {
    let mut dice = Dice(0xFACE);
    let mut accepted = 0;
    for _ in 0..300 {
        let module = with_member(dice.closed(3));
        let values = dice.some(40, 40, |dice| dice.value(2));
        let answers: Vec<Value> =
            values.iter().map(|value| json!({ "rationale": "r", "x": value })).collect();
        for target in
            [SchemaTarget::OpenAi, SchemaTarget::Anthropic, SchemaTarget::Gemini, SchemaTarget::Ollama]
        {
            let lowered = lower(&module, target);
            check(&lowered);
            let schema = data_of(&lowered);
            let judge = validator(&schema);
            for data in answers.iter().filter(|data| module.contract.data().accepts(data)) {
                let answer = with_nulls(&schema, &schema, data);
                assert!(judge.is_valid(&answer), "{target:?} {answer}\n{schema:#}\n{:#?}", lowered.losses);
                accepted += 1;
            }
        }
    }
    assert!(accepted > 1_000, "{accepted}");
}

#[test]
fn d_05_a_grammar_that_only_tightens_produces_only_what_the_contract_accepts() {
    let mut dice = Dice(0xBEEF);
    let mut produced = 0;
    for _ in 0..300 {
        let module = with_member(dice.closed(3));
        let lowered = lower(&module, SchemaTarget::Grammar);
        check(&lowered);
        let judge = validator(&data_of(&lowered));
        let is_whole = lowered.gaps().next().is_none();
        for value in dice.some(40, 40, |dice| dice.value(2)) {
            let data = json!({ "rationale": "r", "x": value });
            if is_whole && judge.is_valid(&data) {
                assert!(module.contract.data().accepts(&data), "{data}\n{:#}", data_of(&lowered));
                produced += 1;
            }
        }
    }
    assert!(produced > 200, "{produced}");
}

#[test]
fn d_05_a_schema_that_doubles_at_every_step_stays_small() {
    let mut defs = json!({ "d20": { "type": "string" } });
    for step in 0..20 {
        let next = json!({ "$ref": format!("#/$defs/d{}", step + 1) });
        defs[format!("d{step}")] = json!({ "type": "object", "properties": { "a": next, "b": next } });
    }
    let module = compiled(json!({ "$ref": "#/$defs/d0" }), defs).unwrap();
    for target in [SchemaTarget::OpenAi, SchemaTarget::Grammar] {
        let lowered = lower(&module, target);
        check(&lowered);
        let mut nodes = 0;
        every_schema(&lowered.schema, &mut |_| nodes += 1);
        assert!(nodes < 60_000, "{target:?} {nodes}");
        let is_said = |loss: &&Loss| loss.what.contains("more than 10000 parts");
        assert_eq!(
            lowered.losses.iter().filter(is_said).count(),
            1,
            "once, not for each part beyond the bound"
        );
    }
}

#[test]
fn d_05_a_long_chain_of_references_ends() {
    let mut defs = json!({ "d500": { "type": "string" } });
    for step in 0..500 {
        let next = json!({ "$ref": format!("#/$defs/d{}", step + 1) });
        defs[format!("d{step}")] = json!({ "type": "object", "properties": { "a": next } });
    }
    let module = compiled(json!({ "$ref": "#/$defs/d0" }), defs).unwrap();
    for target in SchemaTarget::ALL {
        check(&lower(&module, target));
    }
}

#[test]
fn d_05_a_choice_of_many_branches_with_many_members_stays_small() {
    let branches: Vec<Value> = (0..300).map(|index| json!({ "required": [format!("m{index}")] })).collect();
    let members: Map<String, Value> =
        (0..300).map(|index| (format!("m{index}"), json!({ "type": "string" }))).collect();
    let module =
        compiled(json!({ "type": "object", "properties": members, "anyOf": branches }), json!({})).unwrap();
    for target in SchemaTarget::ALL {
        let lowered = lower(&module, target);
        check(&lowered);
        assert!(lowered.losses.iter().any(|loss| loss.what.contains("too many branches")));
    }
}
