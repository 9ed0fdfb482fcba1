//! Properties: a printer with every forgiven syntax error writes random answers. The same answers are also run
//! cleanly, in pieces, and twice.

use std::fmt::Write as _;

use cognitive_contract::ports::Finish;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::harness::{How, answer, answer_in_pieces, module};

/// Any JSON value; its texts contain difficult characters.
fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~]{0,12}",
        "\\PC{0,8}",
        prop::sample::select(vec![
            "```json\n{}\n```",
            "<think>x</think>",
            "</think>",
            "{",
            "}",
            "// x",
            "/* x",
            "# x",
            "it's \"so\"",
            "“so”",
            "\\",
            "\\\"",
            "a\r\nb\tc",
            "NaN",
            "{\"ok\": true, \"data\": {}}",
            "",
            "\u{feff}",
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|number| json!(number)),
        any::<u64>().prop_map(|number| json!(number)),
        (-1e9..1e9).prop_map(|number: f64| json!(number)),
        text.prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec(("[a-z_]{1,6}|\\PC{0,5}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A valid answer with anything in `data.more`.
fn reply() -> impl Strategy<Value = Value> {
    (value(), 0..=100_u32, "\\PC{0,40}").prop_map(|(more, percent, explain)| {
        json!({
            "ok": true,
            "meta": { "confidence": f64::from(percent) / 100.0, "risk": "low", "explain": explain },
            "data": { "rationale": "r", "answer": "42", "more": more },
        })
    })
}

/// Writes JSON with errors; `choices` decides where. Counts the errors.
struct Printer<'a> {
    choices: &'a [u8],
    next: usize,
    slips: usize,
    out: String,
}

impl Printer<'_> {
    fn chance(&mut self, of: u8) -> bool {
        self.next += 1;
        let choice = self.choices.get(self.next % self.choices.len().max(1)).copied().unwrap_or(1);
        let hit = choice % of == 0;
        self.slips += usize::from(hit);
        hit
    }

    fn trivia(&mut self) {
        if self.chance(23) {
            self.out.push_str("/* { \" ' */");
        } else if self.chance(29) {
            self.out.push_str(" // it's }\n");
        } else if self.chance(31) {
            self.out.push_str("\n# \"x\"\r\n");
        }
    }

    fn value(&mut self, value: &Value) {
        self.trivia();
        match value {
            Value::Null if self.chance(2) => self.out.push_str("None"),
            Value::Bool(true) if self.chance(2) => self.out.push_str("True"),
            Value::Bool(false) if self.chance(2) => self.out.push_str("False"),
            Value::String(text) => self.string(text, true),
            Value::Array(items) => self.list(items),
            Value::Object(members) => self.object(members),
            plain => self.out.push_str(&plain.to_string()),
        }
        self.trivia();
    }

    fn list(&mut self, items: &[Value]) {
        self.out.push('[');
        for (index, item) in items.iter().enumerate() {
            self.out.push_str(if index == 0 { "" } else { ", " });
            self.value(item);
        }
        self.close(items.is_empty(), ']');
    }

    fn object(&mut self, members: &Map<String, Value>) {
        self.out.push('{');
        let mut first = true;
        for (name, value) in members {
            let bare = name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !first {
                self.out.push_str(", ");
            }
            first = false;
            if bare && self.chance(3) {
                self.out.push_str(name);
            } else {
                self.string(name, false);
            }
            self.out.push_str(": ");
            self.value(value);
        }
        self.close(members.is_empty(), '}');
    }

    fn close(&mut self, empty: bool, bracket: char) {
        if !empty && self.chance(3) {
            self.out.push(',');
        }
        self.out.push(bracket);
    }

    fn string(&mut self, text: &str, value: bool) {
        let (open, close) = match () {
            () if self.chance(5) => ('\'', '\''),
            () if self.chance(7) => ('“', '”'),
            () if self.chance(11) => ('‘', '’'),
            () => ('"', '"'),
        };
        let has_break = text.contains(['\n', '\r', '\t']);
        let raw = value && has_break && self.chance(2);
        self.out.push(open);
        for c in text.chars() {
            match c {
                '\\' => self.out.push_str("\\\\"),
                '\n' | '\r' | '\t' if raw => self.out.push(c),
                '\'' if open == '\'' => self.out.push_str("\\'"),
                '"' if open != '"' => self.out.push('"'),
                c if c == open || c == close || c.is_control() || is_curly(c) => self.escape(c),
                c => self.out.push(c),
            }
        }
        self.out.push(close);
    }

    fn escape(&mut self, c: char) {
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            write!(self.out, "\\u{unit:04x}").unwrap();
        }
    }
}

fn is_curly(c: char) -> bool {
    ('\u{2018}'..='\u{201f}').contains(&c)
}

/// The envelope without the members that differ from run to run.
fn settled(mut value: Value) -> Value {
    for member in ["trace_id", "latency_ms", "processing_time_ms", "model"] {
        value["meta"].as_object_mut().unwrap().shift_remove(member);
    }
    value
}

/// Pieces of a text, cut at the given places.
fn pieces(text: &str, cuts: &[usize]) -> Vec<String> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.retain(|cut| text.is_char_boundary(*cut));
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| text[pair[0]..pair[1]].to_owned()).collect()
}

/// Texts that look like replies: fragments in any order.
fn wild() -> impl Strategy<Value = String> {
    let fragment = prop_oneof![
        prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            "\"",
            "'",
            "“",
            "”",
            ",",
            ":",
            "\\",
            "\n",
            "```",
            "```json\n",
            "<think>",
            "</think>",
            "//",
            "/*",
            "*/",
            "#",
            "ok",
            "\"ok\": true",
            "\"data\": {\"rationale\": \"r\", \"answer\": \"42\"}",
            "\"meta\"",
            "null",
            "None",
            "NaN",
            "-1",
            "1e5",
            "For example ",
            "Final answer: ",
            "\u{feff}",
            "é",
            "😀",
            "\\u00e9",
            "\\ud800",
            "\t",
            " ",
        ])
        .prop_map(str::to_owned),
        Just(super::good()),
        Just(super::other()),
        "\\PC{0,6}",
    ];
    prop::collection::vec(fragment, 0..14).prop_map(|fragments| fragments.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pipe_006_gen_002_a_valid_reply_is_never_changed(reply in reply(), pretty: bool) {
        let text = if pretty { format!("{reply:#}") } else { reply.to_string() };
        for name in ["", "exec"] {
            let value = answer(&module(name), &text, Finish::Complete, How::default());
            if name == "exec" && value["ok"] != true {
                prop_assert_eq!(&value["error"]["code"], "E2001", "the gate alone may refuse it");
                continue;
            }
            prop_assert_eq!(&value["data"], &reply["data"]);
            prop_assert_eq!(value["data"].to_string(), reply["data"].to_string());
            prop_assert_eq!(&value["meta"]["explain"], &reply["meta"]["explain"]);
            let warnings = value["meta"]["warnings"].as_array().cloned().unwrap_or_default();
            prop_assert!(warnings.iter().all(|warning| warning["code"] != "REPAIRED"), "{:?}", warnings);
        }
    }

    #[test]
    fn d_01_the_forgiving_reader_reads_json_as_the_strict_one_does(reply in reply(), pretty: bool) {
        let text = if pretty { format!("{reply:#}") } else { reply.to_string() };
        let how = How { receipt: true, ..How::default() };
        let value = answer(&module(""), &format!("Sure!\n{text}\n"), Finish::Complete, how);
        prop_assert_eq!(value["data"].to_string(), reply["data"].to_string());
        let liberties = value["meta"]["provenance"]["liberties"].as_array().unwrap();
        prop_assert_eq!(liberties.len(), 1);
        prop_assert_eq!(&liberties[0]["rule"], "prose");
    }

    #[test]
    fn d_01_every_slip_is_forgiven_and_reported(reply in reply(), choices in prop::collection::vec(any::<u8>(), 8..64)) {
        let mut printer = Printer { choices: &choices, next: 0, slips: 0, out: String::new() };
        printer.object(reply.as_object().unwrap());
        let how = How { receipt: true, ..How::default() };
        let value = answer(&module(""), &printer.out, Finish::Complete, how);
        prop_assert_eq!(&value["data"], &reply["data"], "{}", printer.out);
        let liberties = value["meta"]["provenance"]["liberties"].as_array().unwrap();
        prop_assert_eq!(liberties.len(), printer.slips, "{}", printer.out);
    }

    #[test]
    fn repair_001_what_was_accepted_is_accepted_again_unchanged(text in wild()) {
        for name in ["", "wraps"] {
            let once = answer(&module(name), &text, Finish::Complete, How::default());
            if once["ok"] == true {
                let twice = answer(&module(name), &once.to_string(), Finish::Complete, How::default());
                let mut once = settled(once);
                once["meta"].as_object_mut().unwrap().shift_remove("warnings");
                prop_assert_eq!(settled(twice), once);
            }
        }
    }

    #[test]
    fn pipe_011_d_01_any_text_ends_in_an_envelope_with_a_known_code(text in wild()) {
        for name in ["", "exec", "wraps"] {
            let value = answer(&module(name), &text, Finish::Complete, How::default());
            if value["ok"] == true {
                continue;
            }
            let code = value["error"]["code"].as_str().unwrap();
            prop_assert!(["E1000", "E2001", "E3001", "E3003"].contains(&code), "{} {}", code, text);
            let blank = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').is_empty();
            prop_assert_eq!(value.get("partial_data").is_some(), !blank);
        }
    }

    #[test]
    fn gen_002_a_stream_in_any_pieces_gives_the_same_envelope(
        text in prop_oneof![wild(), reply().prop_map(|reply| reply.to_string())],
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let module = module("");
        let whole = answer_in_pieces(&module, vec![text.clone()]);
        let streamed = answer_in_pieces(&module, pieces(&text, &cuts));
        prop_assert_eq!(settled(streamed), settled(whole));
    }
}
