//! Damaged, inconsistent and unsupported files: each one causes an error that names the problem, never a panic.

use std::sync::Arc;

use cognitive_llama::{Model, TokenSession, WeightsError};

use super::toy::{Toy, Value, matrix, open};

fn refused(toy: &Toy) -> WeightsError {
    open(&toy.bytes()).unwrap_err()
}

fn assert_damaged(toy: &Toy, what: &str) {
    match refused(toy) {
        WeightsError::Damaged(why) => assert!(why.contains(what), "{why}"),
        other => panic!("{other:?}"),
    }
}

fn assert_unsupported(toy: &Toy, what: &str) {
    match refused(toy) {
        WeightsError::Unsupported(why) => {
            assert!(why.contains(what), "{why}");
            assert!(why.contains("OpenAI-compatible server with `--base-url`"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn the_toy_itself_works() {
    let model = open(&Toy::default().bytes()).unwrap();
    assert_eq!(model.name(), "Toy");
    let tokenizer = model.tokenizer();
    assert_eq!(tokenizer.encode("the the12<|end|>")[..4], [257, 258, u32::from(b'1'), u32::from(b'2')]);
    assert_eq!(tokenizer.encode("12"), [u32::from(b'1'), u32::from(b'2')], "digits stand apart");
    assert!(tokenizer.encode("<|end|>").iter().all(|token| *token < 256));
    assert_eq!((tokenizer.end_of_turn(), tokenizer.control("<|start|>")), (261, Some(260)));
    assert_eq!(tokenizer.encode_bytes(&[0xff, b't', b'h', 0xc0]), [0xff, 256, 0xc0]);
}

#[test]
fn a_file_that_ends_early_is_damaged_wherever_it_ends() {
    let toy = Toy::default();
    let (bytes, header) = (toy.bytes(), toy.header().len());
    let mut ends: Vec<usize> = (0..header).collect();
    let mut end = header;
    for tensor in &toy.tensors {
        ends.extend([end, end + 1, end + tensor.bytes.len() - 1]);
        end = (end + tensor.bytes.len()).next_multiple_of(32);
    }
    ends.push(bytes.len() - 1);
    for end in ends {
        assert!(matches!(open(&bytes[..end]), Err(WeightsError::Damaged(_))), "cut at {end}");
    }
}

#[test]
fn no_changed_byte_of_the_header_brings_the_process_down() {
    let toy = Toy::default();
    let (mut bytes, header) = (toy.bytes(), toy.header().len());
    for at in 0..header {
        for changed in [0x00, 0xff, bytes[at] ^ 1] {
            let original = std::mem::replace(&mut bytes[at], changed);
            if let Ok(model) = open(&bytes) {
                let end = model.tokenizer().end_of_turn();
                TokenSession::new(Arc::new(model), 1).feed(&[end, 7], &|| false).unwrap();
            }
            bytes[at] = original;
        }
    }
}

#[test]
fn weights_of_nonsense_give_nonsense_and_no_panic() {
    for byte in [0x00, 0x7c, 0x7f, 0xff] {
        let mut toy = Toy::default();
        toy.tensors.iter_mut().for_each(|tensor| tensor.bytes.fill(byte));
        let model = Arc::new(open(&toy.bytes()).unwrap());
        for threads in [1, 2] {
            TokenSession::new(Arc::clone(&model), threads).feed(&[1; 40], &|| false).unwrap();
        }
    }
}

#[test]
fn what_is_not_gguf_says_so() {
    for bytes in [&b""[..], b"GGU", b"PK\x03\x04 a zip", b"{\"json\": true}"] {
        assert!(matches!(open(bytes), Err(WeightsError::Damaged(_))));
    }
    let missing = Model::open("no/such/file.gguf".as_ref()).unwrap_err();
    assert!(
        matches!(missing, WeightsError::Unreadable(ref why) if why.contains("`no/such/file.gguf`")),
        "{missing}"
    );
    assert_unsupported(&Toy { version: 2, ..Toy::default() }, "version: 2");
}

#[test]
fn counts_that_lie_are_damage_and_reserve_nothing() {
    for count in [16, 1 << 20, 1 << 40, u64::MAX] {
        assert!(matches!(
            refused(&Toy { claimed_values: Some(count), ..Toy::default() }),
            WeightsError::Damaged(_)
        ));
    }
    for count in [0, 5, 21, 1 << 40, u64::MAX] {
        assert!(matches!(
            refused(&Toy { claimed_tensors: Some(count), ..Toy::default() }),
            WeightsError::Damaged(_)
        ));
    }
    for (kind, count) in [(8_u32, u64::MAX), (8, 1 << 30), (10, u64::MAX / 8 + 1), (99, 1), (9, 1)] {
        let mut list = kind.to_le_bytes().to_vec();
        list.extend(count.to_le_bytes());
        assert!(matches!(refused(&Toy::default().with("x", Value::Raw(9, list))), WeightsError::Damaged(_)));
    }
    assert_damaged(&Toy::default().with("x", Value::Raw(77, vec![])), "unknown kind: 77");
}

#[test]
fn tensors_that_lie_about_their_place_or_shape_are_damage() {
    let name = "blk.0.attn_q.weight";
    for offset in [1 << 20, 1 << 40, u64::MAX, u64::MAX - 31] {
        let toy = Toy::default().change(name, |tensor| tensor.claimed_offset = Some(offset));
        assert_damaged(&toy, "outside the file");
    }
    assert_damaged(&Toy::default().change(name, |tensor| tensor.claimed_offset = Some(32)), "overlap");
    for lengths in [vec![u64::MAX, u64::MAX], vec![1 << 32, 1 << 32], vec![64, 0], vec![0, 64], vec![33, 64]]
    {
        let toy = Toy::default().change(name, |tensor| tensor.lengths = lengths);
        assert!(matches!(refused(&toy), WeightsError::Damaged(_)));
    }
    assert_damaged(
        &Toy::default().change(name, |tensor| tensor.lengths = vec![64, 32]),
        "does not have 64 rows of 64",
    );
    assert_damaged(
        &Toy::default().change(name, |tensor| tensor.name = "token_embd.weight".into()),
        "duplicate",
    );
    assert_unsupported(
        &Toy::default().change(name, |tensor| tensor.lengths = vec![64, 64, 1]),
        "3 dimensions",
    );
}

#[test]
fn settings_that_make_no_sense_are_damage() {
    for name in ["block_count", "context_length", "embedding_length", "attention.head_count"] {
        let name = format!("llama.{name}");
        assert_damaged(&Toy::default().without(&name), &name);
        assert_damaged(&Toy::default().with(&name, Value::U32(0)), &name);
        assert_damaged(&Toy::default().with(&name, Value::U32(u32::MAX)), &name);
    }
    for wrong in [3, 64] {
        assert!(open(&Toy::default().with("llama.attention.head_count", Value::U32(wrong)).bytes()).is_err());
    }
    assert_damaged(
        &Toy::default().with("llama.block_count", Value::U32(3)),
        "`blk.2.attn_norm.weight` is missing",
    );
    for epsilon in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let name = "llama.attention.layer_norm_rms_epsilon";
        assert_damaged(&Toy::default().with(name, Value::F32(epsilon)), name);
    }
    assert_damaged(&Toy::default().with("general.alignment", Value::U32(0)), "alignment");
    assert_damaged(&Toy::default().with("general.alignment", Value::U32(33)), "alignment");
}

#[test]
fn vocabularies_that_make_no_sense_are_damage() {
    let merges =
        |merge: &str| Toy::default().with("tokenizer.ggml.merges", Value::Texts(vec![merge.to_owned()]));
    assert_damaged(&merges("th"), "does not have two parts");
    assert_damaged(&merges("q q"), "unknown token");
    // A merge must not produce a control token from text.
    assert_damaged(&merges("<|star t|>"), "unknown token");
    assert_damaged(&Toy::default().with("tokenizer.ggml.eos_token_id", Value::U32(999)), "ends a turn");
    assert_damaged(&Toy::default().with("tokenizer.ggml.eos_token_id", Value::U32(65)), "ends a turn");
    assert_damaged(
        &Toy::default().with("tokenizer.ggml.token_type", Value::Numbers(vec![1; 9])),
        "incomplete",
    );
    assert_damaged(&Toy::default().without("tokenizer.ggml.tokens"), "tokenizer.ggml.tokens");
}

// Control tokens are not text. User-defined tokens are matched as text, and unused rows are neither.
#[test]
fn tokens_that_are_looked_for_come_before_the_merges_and_unused_ones_never() {
    let mut kinds = vec![1; 262];
    (kinds[258], kinds[259], kinds[261]) = (4, 5, 3);
    kinds[260] = 3;
    let toy = Toy::default()
        .with("tokenizer.ggml.token_type", Value::Numbers(kinds))
        .with("tokenizer.ggml.merges", Value::Texts(vec!["t h".to_owned(), "th e".to_owned()]));
    let model = open(&toy.bytes()).unwrap();
    let tokenizer = model.tokenizer();
    // The text of a user-defined token is literal, not byte by byte.
    assert_eq!(tokenizer.bytes(258), "Ġthe".as_bytes());
    assert_eq!(tokenizer.encode("theĠthe1"), [257, 258, u32::from(b'1')]);
    assert!(tokenizer.is_control(259) && !tokenizer.is_control(258));
    assert_eq!((tokenizer.control("12"), tokenizer.control("Ġthe")), (None, None));
}

#[test]
fn models_of_other_kinds_are_sent_elsewhere() {
    let toy = Toy::default;
    assert_unsupported(&toy().with("general.architecture", text("mamba")), "`mamba`");
    assert_unsupported(&toy().with("tokenizer.ggml.model", text("bert")), "`bert`");
    for rule in ["deepseek-llm", "default"] {
        assert_unsupported(&toy().with("tokenizer.ggml.pre", text(rule)), &format!("`{rule}`"));
    }
    assert_unsupported(
        &toy().with("llama.rope.scaling.type", text("yarn")),
        "unsupported scaling of the rotation: `yarn`",
    );
    assert_unsupported(&toy().with("llama.expert_count", Value::U32(8)), "experts");
    assert_unsupported(&toy().with("llama.attention.head_count", Value::U32(4)), "width: 16 is not");
    for (kind, name) in [(10, "Q2_K"), (20, "IQ4_NL"), (99, "99")] {
        let toy = toy().change("blk.1.ffn_up.weight", |tensor| tensor.kind = kind);
        assert_unsupported(&toy, &format!("tensor `blk.1.ffn_up.weight` has type {name}"));
    }
    let mut extra = toy();
    extra.tensors.push(matrix("blk.0.attn_q_bias", 8, 1, 64));
    assert_unsupported(&extra, "`blk.0.attn_q_bias.weight`");
}

// Copies and downloads truncate the target file first.
#[test]
fn a_file_that_is_shortened_while_it_is_read_is_damaged_and_no_more() {
    let bytes = Toy::default().bytes();
    let path = std::env::temp_dir().join(format!("cogn-shortened-{}.gguf", std::process::id()));
    for left in [0, 3, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes).unwrap();
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len(left as u64).unwrap();
        assert!(matches!(Model::read(file, length), Err(WeightsError::Damaged(_))), "{left}");
    }
    std::fs::remove_file(&path).unwrap();
}
