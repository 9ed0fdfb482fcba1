//! For every text and every split: the same objects, the same liberties, the same verdict. Tests the corpus of
//! replies, the seeds of the fuzzer, and texts from generators with a fixed seed. The accepted and refused replies
//! are in `stages/parse/tests.rs`.

#[path = "../../tests/live/made_up.rs"]
#[expect(dead_code, reason = "the tests of streams need the rest")]
mod made_up;

use cognitive_contract::ports::Finish;
use serde_json::{Map, Value};

use self::made_up::Dice;
use super::event::{BrokenValue, JsonEvent, JsonListener, ReplyFinding};
use super::find::{self, Leniency, UnreadableReply};
use super::outline::OutlineReader;
use super::{Draft, ReplyScanner};

const META: &str = r#"{"confidence": 0.95, "risk": "low", "explain": "e"}"#;

/// The replies of `tests/replies`.
fn corpus() -> Vec<String> {
    let files = [
        include_str!("../../tests/replies/forgiven.json"),
        include_str!("../../tests/replies/chosen.json"),
        include_str!("../../tests/replies/refused.json"),
        include_str!("../../tests/replies/contract.json"),
    ];
    let good = format!(r#"{{"ok": true, "meta": {META}, "data": {{"rationale": "r", "answer": "42"}}}}"#);
    let cases = files.iter().flat_map(|file| serde_json::from_str::<Vec<Value>>(file).unwrap());
    let text = |case: Value| {
        let text = case["text"].as_str().unwrap();
        text.replace("$GOOD", &good).replace("$OTHER", &good.replace("42", "7")).replace("$META", META)
    };
    cases.map(text).collect()
}

/// The seeds of the fuzzer; the first byte of each is not part of the reply.
fn seeds() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/reply");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let texts =
        files.iter().filter_map(|file| String::from_utf8(std::fs::read(file).unwrap().split_off(1)).ok());
    texts.collect()
}

/// The building blocks of malformed replies.
const BITS: [&str; 96] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "'",
    "“",
    "”",
    "‘",
    "’",
    "\\",
    "\\\"",
    "\\'",
    "\\u00e9",
    "\\ud83d\\ude00",
    "\\udc00",
    "\\u12",
    "\\d",
    "\\n",
    "/",
    "//",
    "/*",
    "*/",
    "#",
    "# x",
    "##",
    "\n",
    "\r",
    "\t",
    " ",
    "  ",
    "\u{a0}",
    "\u{feff}",
    "\u{b}",
    "\u{c}",
    "\u{1}",
    "-",
    "1",
    "0",
    "1.",
    "1.5",
    "1e5",
    "1e999",
    "-0",
    "01",
    "+",
    "e",
    "123456789012345678901234",
    "true",
    "false",
    "null",
    "True",
    "None",
    "NaN",
    "yes",
    "tru",
    "ok",
    "a",
    "b: ",
    "x: 1",
    "\"ok\": true",
    "\"data\": {}",
    "\"meta\": {\"a\": 1}",
    "\"a\": 1",
    "\"a\": \"b\"",
    "\"a\": ",
    "\"a",
    "a: ",
    "'a': ",
    "{\"a\": 1}",
    "{\"ok\": true, \"data\": {\"n\": 1}}",
    "{\"ok\": true, \"data\": {\"n\": 2}}",
    "{\"ok\": false, \"meta\": {",
    "[1]",
    "[\"",
    "[{",
    "{{",
    "{}",
    "```",
    "```json\n",
    "\n```\n",
    "~~~",
    "\n~~~\n",
    "`",
    "<",
    "<think>",
    "</think>",
    "<THINKING>",
    "</thinking>",
    "<thin",
    "https://a",
    "word",
    "é",
    "😀",
];

/// A text of such blocks, sometimes with nested objects.
fn scribble(number: u64) -> String {
    let mut dice = Dice::new(number + 77);
    let mut bits = Vec::new();
    for _ in 0..=dice.below(24) {
        let bit = BITS[dice.below(BITS.len())];
        bits.push(match dice.below(12) {
            0 => format!("{{\"{}\": {bit}", BITS[dice.below(BITS.len())]),
            1 => format!(" {{\"ok\": true, \"data\": {{\"t\": \"{bit}\"}}}} "),
            _ => bit.to_owned(),
        });
    }
    bits.concat()
}

/// An answer with one piece replaced by such a block.
fn damaged(number: u64) -> String {
    let mut dice = Dice::new(number + 9_000_000);
    let text = made_up::reply(number);
    let mut place = |text: &str| {
        let at = dice.below(text.len() + 1);
        (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap()
    };
    let (from, to) = (place(&text), place(&text));
    let bit = BITS[usize::try_from(number).unwrap() % BITS.len()];
    let to = if to < from || to > from + 12 { from } else { to };
    format!("{}{bit}{}", &text[..from], &text[to..])
}

/// All test texts: the corpus, the seeds, and the generated texts.
fn texts() -> Vec<String> {
    let mut texts = corpus();
    texts.extend(seeds());
    assert!(texts.len() > 440, "{}", texts.len());
    texts.extend((0..1_000).map(made_up::reply));
    texts.extend((0..5_000).map(scribble));
    texts.extend((0..4_000).map(damaged));
    texts
}

/// The text letter by letter, and split at random places.
fn splits(text: &str, seed: u64) -> Vec<Vec<&str>> {
    let letters: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).collect();
    let cut = |places: &[usize]| {
        let (mut from, mut pieces) = (0, Vec::new());
        for at in places.iter().copied().chain([text.len()]) {
            pieces.push(&text[from..at]);
            from = at;
        }
        pieces
    };
    let mut dice = Dice::new(seed);
    let mut all = vec![cut(&letters)];
    for coarse in [2, 5, 9] {
        let some: Vec<usize> = letters.iter().copied().filter(|_| dice.below(coarse) == 0).collect();
        all.push(cut(&some));
    }
    all
}

fn fits(object: Map<String, Value>) -> bool {
    object.get("ok").is_some_and(Value::is_boolean) && object.get("data").is_some_and(Value::is_object)
}

/// The outline of a text that comes in pieces.
fn outlined(pieces: &[&str]) -> (String, super::outline::ReplyOutline) {
    let (mut reader, mut text) = (OutlineReader::new(), String::new());
    for piece in pieces {
        text.push_str(piece);
        reader.read(&text, find::bounds(&text).1);
    }
    text.truncate(find::bounds(&text).1);
    let outline = reader.finish(&text);
    (text, outline)
}

/// The verdict on a text that comes in pieces, by the grammar alone.
fn verdict(pieces: &[&str], finish: &Finish) -> Result<Draft, UnreadableReply> {
    let (text, outline) = outlined(pieces);
    find::in_text(&text, outline, finish, &fits)
        .map(|draft| find::complete(draft, &text, find::bounds(&text).0))
}

#[test]
fn d_09_every_split_gives_the_same_objects_liberties_and_verdict() {
    for (number, text) in (0..).zip(texts()) {
        if find::bounds(&text).1 == 0 {
            continue;
        }
        let whole = OutlineReader::new().finish(&text[..find::bounds(&text).1]);
        let finish = if number % 3 == 0 { Finish::CutOff } else { Finish::Complete };
        let at_once = verdict(&[&text], &finish);
        for pieces in splits(&text, number) {
            assert_eq!(outlined(&pieces).1, whole, "{pieces:?}");
            assert_eq!(verdict(&pieces, &finish), at_once, "{pieces:?}");
        }
    }
}

/// Strictly valid JSON takes a shorter path, with the same outcome.
#[test]
fn d_01_an_object_that_is_strictly_json_is_read_the_same_by_the_grammar() {
    let mut strict = 0;
    for text in texts() {
        let (start, end) = find::bounds(&text);
        let short = find::find(&text, Leniency::Lenient, &Finish::Complete, &fits);
        if super::strict::parse(&text[start..end]).is_ok() && text[start..].starts_with('{') {
            strict += 1;
            assert_eq!(verdict(&[&text], &Finish::Complete), short, "{text}");
        }
    }
    assert!(strict > 300, "{strict}");
}

/// Records every event that a listener of a stream receives.
#[derive(Default)]
struct Heard(Vec<String>, String);

impl JsonListener for Heard {
    fn event(&mut self, event: JsonEvent<'_>, at: usize) {
        match event {
            JsonEvent::Text(piece) => self.1.push_str(piece),
            _ => {
                let text = std::mem::take(&mut self.1);
                self.0.push(format!("{text:?} {event:?} {at}"));
            }
        }
    }
}

#[test]
fn every_split_tells_the_same_events() {
    for (number, text) in (0..).zip(texts()) {
        let heard = |pieces: &[&str]| {
            let (mut scanner, mut heard) = (ReplyScanner::new(number % 7 == 0), Heard::default());
            for piece in pieces {
                scanner.push(piece, &mut heard);
            }
            (heard.0, heard.1)
        };
        let at_once = heard(&[&text]);
        for pieces in splits(&text, number) {
            assert_eq!(heard(&pieces), at_once, "{pieces:?}");
        }
    }
}

/// Returns the text after the broken value at the start of `text`.
fn left<'t>(text: &'t str, before: &str) -> &'t str {
    #[derive(Default)]
    struct Breaks(Vec<BrokenValue>, Option<usize>);
    impl JsonListener for Breaks {
        fn event(&mut self, _: JsonEvent<'_>, _: usize) {}

        fn finding(&mut self, finding: ReplyFinding<'_>) {
            match finding {
                ReplyFinding::Broken(broken) => self.0.push(broken),
                ReplyFinding::Prose(at) if self.0.len() == 1 => {
                    self.1.get_or_insert(at);
                }
                _ => {}
            }
        }
    }
    let whole = format!("{before}{text}");
    let mut breaks = Breaks::default();
    super::grammar::ReplyGrammar::new(false).finish(&whole, &mut breaks);
    assert_eq!(breaks.0.len(), 1, "{whole}");
    &text[breaks.1.map_or(text.len(), |at| at - before.len())..]
}

#[test]
fn braces_in_strings_do_not_count_and_lists_do_not_matter() {
    assert_eq!(left(r#"{"a": NaN, "b": "}\"}", "c": {"d": 1}} x"#, ""), "x");
    assert_eq!(left(r#"{"a": [1, 2} x"#, ""), "x");
    assert_eq!(left(r#"{"a": {"b": 1} oops, "c": {"d": 1}} x"#, ""), "x");
    assert_eq!(left(r#"{"a": {"b": {}} "c": {"d": 1}} x"#, ""), "x");
    assert_eq!(left(r#"[{"a": NaN}, {"b": 1}] x"#, ""), "x");
    assert_eq!(left(r#"{"a": "\d}", "b": 1} x"#, ""), "x", "the broken string is skipped as a string");
}

#[test]
fn what_never_closes_reaches_to_the_end_or_to_the_fence() {
    assert_eq!(left(r#"{"a": {"b": ... } x {"c": 1}"#, ""), "");
    let deep = format!("{}1{} x", "{\"a\":".repeat(150), "}".repeat(150));
    assert_eq!(left(&deep, ""), "x");
    assert_eq!(left("{\"a\": {\"b\": ...\n```\nx", "```\n"), "x");
}

#[test]
fn thinking_ends_with_its_own_tag_or_with_the_last_one() {
    for (text, prose) in [
        ("<think>a<think>b</think>c</think>d", Some(33)),
        ("<think>not <think> again</think>d", Some(32)),
        ("<think>a", None),
        ("a</think>b</THINK>c", Some(18)),
    ] {
        let outline = OutlineReader::new().finish(text);
        assert_eq!((outline.prose, outline.thinking), (prose, Some(0)), "{text}");
    }
}
