//! Compares tokens with llama.cpp: for small vocabularies built here, for that of Llama 3, and for those of real
//! models, if their files are available. Ten thousand texts each.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use cognitive_llama::{Model, Tokenizer};
use serde_json::{Value as Json, json};

use super::toy::{Toy, Value};
use super::zoo::{self, LLAMA, Species};
use super::{ask, python, texts};

/// Compares the tokens of all texts with those of llama.cpp. Each text must be restored exactly, without control
/// tokens.
fn assert_same_tokens(path: &Path, tokenizer: &Tokenizer) {
    let Some(python) = python() else { return };
    let texts = texts::texts();
    let answer = ask(&python, path, &json!({ "texts": texts }));
    let answers = answer["tokens"].as_array().unwrap();
    assert_eq!(answers.len(), 10_000);
    let mut wrong = Vec::new();
    for (text, theirs) in texts.iter().zip(answers) {
        let ours = tokenizer.encode(text);
        // The character that represents a blank in files: llama.cpp turns it into a blank, this engine keeps it.
        if json!(ours) != *theirs && !text.contains('\u{2581}') {
            wrong.push(format!("{text:?}: {ours:?} {theirs}"));
        }
        assert!(ours.iter().all(|token| !tokenizer.is_control(*token)), "{text:?}");
        let back: Vec<u8> = ours.iter().flat_map(|token| tokenizer.bytes(*token).to_vec()).collect();
        assert_eq!(back, text.as_bytes());
    }
    assert!(wrong.is_empty(), "{} texts differ, such as {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
}

/// Like [`assert_same_tokens`], for a random model with this vocabulary.
fn assert_vocabulary(name: &str, vocabulary: &[(&str, Value)], tokens: usize) {
    let path = std::env::temp_dir().join(format!("cogn-vocabulary-{name}-{}.gguf", std::process::id()));
    let add =
        |toy: Toy, (name, value): &(&str, Value)| toy.with(&format!("tokenizer.ggml.{name}"), value.clone());
    let toy = zoo::model(Species { tokens, layers: 1, ..LLAMA });
    std::fs::write(&path, vocabulary.iter().fold(toy, add).bytes()).unwrap();
    let model = Model::open(&path).unwrap();
    assert_eq!(model.tokenizer().len(), tokens);
    assert_same_tokens(&path, model.tokenizer());
    std::fs::remove_file(&path).unwrap();
}

/// Returns merges of the characters of a text, the most frequent neighbours first.
fn grow(text: &str, letters: impl Fn(char) -> Vec<String>, count: usize) -> Vec<(String, String)> {
    let mut parts: Vec<String> = text.chars().flat_map(letters).collect();
    let mut merges = Vec::new();
    for _ in 0..count {
        let mut pairs: HashMap<(&str, &str), usize> = HashMap::new();
        parts.windows(2).for_each(|pair| *pairs.entry((&pair[0], &pair[1])).or_default() += 1);
        let (one, other) = *pairs.iter().max_by_key(|(pair, count)| (**count, **pair)).unwrap().0;
        let (one, other) = (one.to_owned(), other.to_owned());
        let mut joined = Vec::new();
        let mut rest = parts.into_iter().peekable();
        while let Some(part) = rest.next() {
            let next = rest.next_if(|next| part == one && *next == other);
            joined.push(part + next.as_deref().unwrap_or_default());
        }
        parts = joined;
        merges.push((one, other));
    }
    merges
}

fn sample() -> String {
    texts::texts()[..200].join(" ") + include_str!("../data/perplexity.txt")
}

fn texts_of(texts: impl IntoIterator<Item = impl ToString>) -> Value {
    Value::Texts(texts.into_iter().map(|text| text.to_string()).collect())
}

#[test]
fn pairs_in_the_manner_of_llama_3_become_the_same_tokens() {
    let letters = zoo::byte_letters();
    let written = |c: char| c.to_string().bytes().map(|byte| letters[usize::from(byte)].clone()).collect();
    let merges = grow(&sample(), written, 700);
    let mut tokens = letters.clone();
    for (one, other) in &merges {
        let both = format!("{one}{other}");
        if !tokens.contains(&both) {
            tokens.push(both);
        }
    }
    // No merge produces these, but a piece of a text that equals one becomes that token.
    tokens.extend(["supercalifragilistic", "ĠÃ©", "987"].map(str::to_owned));
    let plain = tokens.len();
    tokens.extend(["<|begin_of_text|>", "<|eot_id|>"].map(str::to_owned));
    let count = tokens.len();
    let kinds = (0..count).map(|token| if token < plain { 1 } else { 3 }).collect();
    let vocabulary = [
        ("pre", Value::Text("llama-bpe".to_owned())),
        ("tokens", texts_of(tokens)),
        ("token_type", Value::Numbers(kinds)),
        ("merges", texts_of(merges.iter().map(|(one, other)| format!("{one} {other}")))),
        ("eos_token_id", Value::U32(u32::try_from(count - 1).unwrap())),
    ];
    assert_vocabulary("pairs", &vocabulary, count);
}

#[test]
fn pieces_with_scores_become_the_same_tokens() {
    let written = |c: char| vec![if c == ' ' { "\u{2581}".to_owned() } else { c.to_string() }];
    let merges = grow(&sample(), written, 900);
    // In the order of Gemma: control tokens, user-defined tokens, bytes, pieces by falling scores, and then letters.
    let mut tokens: Vec<(String, i32)> = ["<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>"]
        .map(|name| (name.to_owned(), 3))
        .to_vec();
    tokens.push(("<unk>".to_owned(), 2));
    tokens.extend((1..9).flat_map(|length| ["\n", "\t"].map(|c| (c.repeat(length), 4))));
    tokens.extend((2..9).map(|length| (" ".repeat(length), 4)));
    tokens.extend(["<script>", "</script>", "[multimodal]"].map(|name| (name.to_owned(), 4)));
    tokens.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 6)));
    let first = tokens.len();
    let letters = sample();
    let letters = letters.chars().filter(|c| c.is_alphabetic() || c.is_ascii_graphic()).step_by(3);
    let letters = std::iter::once(' ').chain(letters).flat_map(written);
    for piece in merges.iter().map(|(one, other)| format!("{one}{other}")).chain(letters) {
        if tokens.iter().all(|(text, _)| *text != piece) {
            tokens.push((piece, 1));
        }
    }
    let count = tokens.len();
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let score = |token: usize| if token < first { -1_000.0 } else { -((token - first) as f32) };
    let scores: Vec<u8> = (0..count).flat_map(|token| f32::to_le_bytes(score(token))).collect();
    let list = [&6_u32.to_le_bytes()[..], &(count as u64).to_le_bytes(), &scores].concat();
    let vocabulary = [
        ("model", Value::Text("llama".to_owned())),
        ("pre", Value::Text("default".to_owned())),
        ("tokens", texts_of(tokens.iter().map(|(text, _)| text))),
        ("token_type", Value::Numbers(tokens.iter().map(|(_, kind)| *kind).collect())),
        ("scores", Value::Raw(9, list)),
        ("add_space_prefix", Value::Raw(7, vec![0])),
        ("eos_token_id", Value::U32(1)),
    ];
    assert_vocabulary("scores", &vocabulary, count);
}

#[test]
fn texts_become_the_tokens_of_llama_3() {
    let Some(module) = cognitive_testkit::llama3_vocabulary() else { return };
    let script = "const { default: known } = await import(process.argv[1]);
        console.log(JSON.stringify([known.vocabById, [...known.merges.keys()]]))";
    let node = Command::new("node").args(["--input-type=module", "-e", script]).arg(module).output().unwrap();
    let known: Json = serde_json::from_slice(&node.stdout).unwrap();
    let texts =
        |list: &Json| list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect();
    let (tokens, merges): (Vec<String>, Vec<String>) = (texts(&known[0]), texts(&known[1]));
    let (count, end) = (tokens.len(), tokens.iter().position(|token| token == "<|eot_id|>").unwrap());
    assert_eq!(count, 128_256);
    let vocabulary = [
        ("pre", Value::Text("llama-bpe".to_owned())),
        ("tokens", Value::Texts(tokens)),
        ("token_type", Value::Numbers((0..count).map(|token| if token < 128_000 { 1 } else { 3 }).collect())),
        ("merges", Value::Texts(merges)),
        ("eos_token_id", Value::U32(u32::try_from(end).unwrap())),
    ];
    assert_vocabulary("llama-3", &vocabulary, count);
}

#[test]
fn texts_become_the_tokens_of_qwen() {
    let Some(path) = cognitive_testkit::qwen() else { return };
    assert_same_tokens(&path, Model::open(&path).unwrap().tokenizer());
}

#[test]
fn texts_become_the_tokens_of_gemma() {
    let Some(path) = cognitive_testkit::gemma() else { return };
    let model = Model::open(&path).unwrap();
    assert_eq!(model.tokenizer().control("<end_of_turn>"), Some(model.tokenizer().end_of_turn()));
    assert_same_tokens(&path, model.tokenizer());
}
