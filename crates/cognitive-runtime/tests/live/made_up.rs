//! Replies from a generator with a fixed seed: answers that keep the contract or break it, with syntax errors, prose,
//! thinking, corrections, odd numbers and missing ends, in any combination. Judges none of them.

use serde_json::Value;

/// A generator that gives the same numbers on every machine.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit.max(1)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of.get(self.below(of.len())).copied().unwrap_or_default()
    }
}

const RATIONALES: [&str; 8] = [
    r#""it says so""#,
    r#""the text is short""#,
    r#""because it is so""#,
    r#""a \"b\" é 😀 \u00e9 {not} an object""#,
    r#""two\nlines and a long, long reason that takes several deltas to come""#,
    r#""""#,
    "5",
    "'single'",
];
const ANSWERS: [&str; 8] =
    [r#""42""#, r#""42""#, r#""42""#, r#""7""#, "42", "null", r#""forty two""#, "True"];
const COUNTS: [&str; 6] = ["3", "-1", "1.5", "123456789012345678901234", "1e999", r#""3""#];
const METAS: [&str; 6] = [
    r#"{"confidence": 0.95, "risk": "low", "explain": "e"}"#,
    r#"{"confidence": 0.92, "risk": "none", "explain": "so"}"#,
    r#"{"confidence": 0.95, "risk": "low", "explain": "e"}"#,
    r#"{"confidence": 0.3141592653589793238, "risk": "HIGH", "explain": "e"}"#,
    r#"{"confidence": "high", "risk": "low", "explain": "e"}"#,
    "{}",
];

fn data(dice: &mut Dice) -> String {
    let (rationale, answer) = (dice.one(&RATIONALES), dice.one(&ANSWERS));
    let mut members = vec![format!("\"rationale\": {rationale}"), format!("\"answer\": {answer}")];
    if dice.below(3) == 0 {
        members.push(format!("\"count\": {}", dice.one(&COUNTS)));
    }
    if dice.below(4) == 0 {
        members.push(format!("\"severity\": \"{}\"", dice.one(&["minor", "MAJOR ", "huge"])));
    }
    if dice.below(4) == 0 {
        members.push(r#""items": ["a", {"b": [1, 2]}, "c"]"#.to_owned());
    }
    if dice.below(6) == 0 {
        members.push(format!("\"answer\": {}", dice.one(&ANSWERS)));
    }
    let cut = dice.below(members.len());
    members.rotate_left(cut);
    format!("{{{}}}", members.join(", "))
}

fn answer(dice: &mut Dice) -> String {
    let data = data(dice);
    match dice.below(8) {
        0 => data,
        1 => format!(r#"{{"ok": true, "data": {data}}}, "meta": {{"confidence": 0.2}}}}"#),
        2 => r#"{"ok": false, "meta": {"confidence": 0, "risk": "high", "explain": "no"}, "error": {"code": "E5001", "message": "no"}}"#.to_owned(),
        3 => format!(r#"{{"data": {data}, "meta": {}, "ok": true}}"#, dice.one(&METAS)),
        4 => format!("{{ok: true, meta: {}, data: {data},}}", dice.one(&METAS)),
        _ => format!(r#"{{"ok": true, "meta": {}, "data": {data}}}"#, dice.one(&METAS)),
    }
}

/// The reply with this number.
pub fn reply(number: u64) -> String {
    let mut dice = Dice::new(number + 1);
    let first = answer(&mut dice);
    let text = match dice.below(10) {
        0 => format!("Sure, here it is:\n```json\n{first}\n```\nAnything else?"),
        1 => format!("<think>maybe {}</think>{first}", answer(&mut dice)),
        2 => format!("{first}\nCorrected:\n{}", answer(&mut dice)),
        3 => format!("For example {} but\n{first} it is.", answer(&mut dice)),
        4 => format!("Here: [{first}]"),
        5 => format!("{}</think>\n{first}", answer(&mut dice)),
        _ => first,
    };
    // One in six breaks off somewhere.
    let end = if dice.below(6) == 0 { dice.below(text.len()) } else { text.len() };
    let end = (end..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default().to_owned()
}

/// The reply in deltas of about 16 bytes.
pub fn deltas(text: &str) -> Vec<&str> {
    let (mut rest, mut pieces) = (text, Vec::new());
    while !rest.is_empty() {
        let end = (16..rest.len()).find(|end| rest.is_char_boundary(*end)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// An envelope as text, without ids and times.
pub fn settled(mut value: Value) -> String {
    for member in ["trace_id", "latency_ms", "processing_time_ms"] {
        value["meta"].as_object_mut().unwrap().shift_remove(member);
    }
    for member in ["streaming", "session_id"] {
        value.as_object_mut().unwrap().shift_remove(member);
    }
    value.to_string()
}
