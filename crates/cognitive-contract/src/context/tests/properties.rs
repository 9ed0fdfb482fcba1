//! Properties of context of any shape. The seeds are fixed, so a failure is reproducible.

use super::*;

/// A small random number generator (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }

    fn name(&mut self) -> String {
        const NAMES: [&str; 8] = ["a", "b", "apiKey", "TOKEN", "list", "_context", "secret.x", "$INPUT"];
        NAMES[self.roll(NAMES.len())].to_owned()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.roll(if depth == 0 { 4 } else { 6 }) {
            0 => Value::Null,
            1 => json!(self.roll(100)),
            2 => json!("é".repeat([0, 3, 9_999, 10_000, 10_001, 12_000][self.roll(6)])),
            3 => json!("{{x}} @call:y(1) $INPUT"),
            4 => (0..self.roll(4)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(self.members(depth)),
        }
    }

    fn members(&mut self, depth: usize) -> Map<String, Value> {
        (0..self.roll(4)).map(|_| (self.name(), self.value(depth.saturating_sub(1)))).collect()
    }
}

/// Every text in a value with the name of the member that contains it.
fn texts<'a>(name: &'a str, value: &'a Value, found: &mut Vec<(&'a str, &'a str)>) {
    match value {
        Value::String(text) => found.push((name, text)),
        Value::Array(items) => items.iter().for_each(|item| texts("", item, found)),
        Value::Object(members) => members.iter().for_each(|(name, value)| texts(name, value, found)),
        _ => {}
    }
}

#[test]
fn ctx_041_042_044_no_shape_gets_a_secret_or_a_long_text_through() {
    let mut dice = Dice(0x5eed);
    for _ in 0..2_000 {
        let given = dice.members(4);
        let before = given.clone();
        let cleaned = Sanitiser::default().clean(&given);
        assert_eq!(given, before);
        assert_eq!(Sanitiser::default().clean(&cleaned), cleaned, "what is clean stays as it is");
        let whole = Value::Object(cleaned);
        let mut found = Vec::new();
        texts("", &whole, &mut found);
        for (name, text) in found {
            let telling = ["key", "token", "secret"].iter().any(|word| name.to_lowercase().contains(word));
            assert!(!telling || text == "[REDACTED]", "{name}");
            assert!(text.chars().count() <= 10_000);
        }
    }
}

#[test]
fn ctx_001_012_014_what_reaches_the_model_is_declared_and_part_of_what_was_given() {
    let module = accepting(json!([{ "type": "list", "max_turns": 2 }, { "type": "a", "fields": ["b"] }]));
    let spare = Sanitiser::ignoring_names(["apikey", "token", "secret.x"]);
    let mut dice = Dice(0xd1ce);
    for _ in 0..2_000 {
        let given = dice.members(3);
        let input = json!({ "x": 1, "_context": given });
        let Ok(prepared) = prepare(&module, input.clone(), &spare, Enforcement::Full) else {
            unreachable!("nothing here is required or judged")
        };
        assert_eq!(prepared.input(), &json!({ "x": 1 }));
        for (kind, value) in prepared.context() {
            assert!(kind == "list" || kind == "a");
            match value {
                Value::Array(kept) if kind == "list" => {
                    let all = given[kind].as_array().unwrap();
                    assert_eq!(kept.len(), all.len().min(2));
                }
                Value::Object(kept) if kind == "a" => assert!(kept.keys().all(|name| name == "b")),
                _ => {}
            }
        }
        let dropped = given.keys().any(|kind| kind != "list" && kind != "a");
        assert_eq!(!prepared.warnings.is_empty(), dropped);
    }
}

#[test]
fn ctx_030_032_a_key_is_either_whole_or_not_there() {
    let mut dice = Dice(0xcafe);
    let parts =
        ["${module}", "${input_hash}", "${user_id}", "${session_id}", ":", "x", "${", "}", "${other}", "$"];
    for _ in 0..5_000 {
        let pattern: String = (0..dice.roll(6)).map(|_| parts[dice.roll(parts.len())]).collect();
        let user = [None, Some(""), Some("ann")][dice.roll(3)];
        let session = [None, Some(""), Some("s-1")][dice.roll(3)];
        let variables =
            Variables { module: "m", input_hash: &|| "h".to_owned(), user_id: user, session_id: session };
        let Some(made) = key(&pattern, &variables) else { continue };
        let named = |name: &str| pattern.contains(name);
        assert!(!named("${user_id}") || user == Some("ann"), "{pattern}");
        assert_eq!(made.session.as_deref(), session.filter(|_| named("${session_id}")), "{pattern}");
        assert_eq!(made.input_hash.is_some(), named("${input_hash}"), "{pattern}");
        assert!(!made.text.contains("${") && !made.text.is_empty(), "{pattern}");
    }
}
