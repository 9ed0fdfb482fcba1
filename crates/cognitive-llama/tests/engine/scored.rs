//! Vocabularies with scores: the tokens of text, and the vocabularies that are refused.

use cognitive_llama::{Model, WeightsError};

use super::toy::{Toy, Value, open};

/// The token of the first byte.
const BYTES: u32 = 3;
/// Pieces with falling scores.
const PIECES: [&str; 8] = ["\u{2581}t", "he", "\u{2581}the", "\u{2581}", "t", "h", "e", "th"];
const FIRST_PIECE: u32 = BYTES + 256 + 2;

/// The text and the type of each token.
fn vocabulary() -> Vec<(String, i32)> {
    let mut tokens = vec![("<eos>".to_owned(), 3), ("<end_of_turn>".to_owned(), 3), ("<unk>".to_owned(), 2)];
    tokens.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 6)));
    tokens.extend([("\u{2581}\u{2581}".to_owned(), 4), ("\n".to_owned(), 4)]);
    tokens.extend(PIECES.map(|piece| (piece.to_owned(), 1)));
    tokens
}

fn floats(numbers: impl ExactSizeIterator<Item = f32>) -> Value {
    let mut bytes = [&6_u32.to_le_bytes()[..], &(numbers.len() as u64).to_le_bytes()].concat();
    bytes.extend(numbers.flat_map(f32::to_le_bytes));
    Value::Raw(9, bytes)
}

fn toy(vocabulary: &[(String, i32)]) -> Toy {
    let count = vocabulary.len();
    let texts = vocabulary.iter().map(|(text, _)| text.clone()).collect();
    let kinds = vocabulary.iter().map(|(_, kind)| *kind).collect();
    let scores = (0..u16::try_from(count).unwrap()).map(|token| -f32::from(token));
    let toy = Toy::default()
        .with("tokenizer.ggml.model", Value::Text("llama".to_owned()))
        .with("tokenizer.ggml.tokens", Value::Texts(texts))
        .with("tokenizer.ggml.token_type", Value::Numbers(kinds))
        .with("tokenizer.ggml.scores", floats(scores))
        .with("tokenizer.ggml.add_space_prefix", Value::Raw(7, vec![0]))
        .with("tokenizer.ggml.eos_token_id", Value::U32(0))
        .without("tokenizer.ggml.merges");
    toy.change("token_embd.weight", |tensor| {
        *tensor = super::toy::matrix("token_embd", 8, count, 64);
    })
}

fn model() -> Model {
    open(&toy(&vocabulary()).bytes()).unwrap()
}

/// The token of a piece.
fn piece(text: &str) -> u32 {
    FIRST_PIECE + u32::try_from(PIECES.iter().position(|piece| *piece == text).unwrap()).unwrap()
}

#[test]
fn the_highest_score_is_merged_first() {
    let model = model();
    let encode = |text: &str| model.tokenizer().encode(text);
    assert_eq!(encode(" the"), [piece("\u{2581}the")]);
    // `he` is merged before `th`, so `th` is merged only if its `h` has no better neighbour.
    assert_eq!(encode("the"), [piece("t"), piece("he")]);
    assert_eq!(encode("th"), [piece("th")]);
    assert_eq!(encode("hehe"), [piece("he"), piece("he")]);
    assert_eq!(encode(""), [0; 0]);
}

#[test]
fn what_is_looked_for_comes_first_and_what_has_no_token_becomes_bytes() {
    let model = model();
    let tokenizer = model.tokenizer();
    let (blanks, line) = (BYTES + 256, BYTES + 257);
    assert_eq!(tokenizer.encode("t   the\n"), [piece("t"), blanks, piece("\u{2581}the"), line]);
    let byte = |byte: u8| BYTES + u32::from(byte);
    assert_eq!(tokenizer.encode("é"), [byte(0xc3), byte(0xa9)]);
    assert_eq!(tokenizer.encode_bytes(&[0xff, b'h', b'e', 0xc0]), [byte(0xff), piece("he"), byte(0xc0)]);
    // The character that represents a blank in files is not a blank in a text.
    assert_eq!(tokenizer.encode("\u{2581}t"), [byte(0xe2), byte(0x96), byte(0x81), piece("t")]);
    for text in ["<eos>", "<end_of_turn>", "<unk>", "<0x41>", " the  he\n\n", "\u{2581}"] {
        let tokens = tokenizer.encode(text);
        assert!(tokens.iter().all(|token| !tokenizer.is_control(*token)), "{text}");
        let back: Vec<u8> = tokens.iter().flat_map(|token| tokenizer.bytes(*token).to_vec()).collect();
        assert_eq!(back, text.as_bytes());
    }
}

#[test]
fn a_turn_ends_with_its_own_token_and_not_with_that_of_the_text() {
    assert_eq!(model().tokenizer().end_of_turn(), 1);
    let named = toy(&vocabulary()).with("tokenizer.ggml.eot_token_id", Value::U32(0));
    assert_eq!(open(&named.bytes()).unwrap().tokenizer().end_of_turn(), 0);
    let beyond = toy(&vocabulary()).with("tokenizer.ggml.eot_token_id", Value::U32(9_999));
    assert!(matches!(open(&beyond.bytes()), Err(WeightsError::Damaged(_))));
}

#[test]
fn vocabularies_that_cannot_write_every_text_as_it_is_are_refused() {
    let whole = toy(&vocabulary());
    let refused = |toy: Toy, what: &str| {
        let why = open(&toy.bytes()).unwrap_err().to_string();
        assert!(why.contains(what), "{why}");
    };
    refused(whole.clone().without("tokenizer.ggml.add_space_prefix"), "a blank before every text");
    refused(whole.clone().with("tokenizer.ggml.add_space_prefix", Value::Raw(7, vec![1])), "a blank before");
    refused(whole.clone().without("tokenizer.ggml.scores"), "the scores of the vocabulary are missing");
    refused(whole.clone().with("tokenizer.ggml.scores", floats([0.0; 3].into_iter())), "scores");
    let nowhere = vec![f32::NAN; vocabulary().len()];
    refused(whole.with("tokenizer.ggml.scores", floats(nowhere.into_iter())), "is not a number");
    let mut without = vocabulary();
    without[BYTES as usize + 65] = ("A".to_owned(), 1);
    refused(toy(&without), "no token for the byte 65");
    for name in ["<0x4>", "<0xGG>", "<0x+4>", "A"] {
        without[BYTES as usize + 65] = (name.to_owned(), 6);
        refused(toy(&without), "token 68 has no bytes");
    }
}

#[test]
fn a_file_may_look_for_as_many_tokens_as_it_likes() {
    let mut many = vocabulary();
    many.extend((0..40_000).map(|number| (format!("<{number}>"), 4)));
    let model = open(&toy(&many).bytes()).unwrap();
    let last = u32::try_from(many.len()).unwrap() - 1;
    assert_eq!(model.tokenizer().encode("he<39999> the"), [piece("he"), last, piece("\u{2581}the")]);
}
