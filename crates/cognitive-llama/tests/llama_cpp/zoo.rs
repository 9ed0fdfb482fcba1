//! Small models of every architecture and block type, with random weights: files that both engines can open.

use super::toy::{Tensor, Toy, Value};

pub const WIDTH: usize = 256;
const HIDDEN: usize = 512;
const QUERIES: usize = 4;
const KEYS: usize = 2;

/// The properties of a model of the zoo.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "what a model may have, each independent of the others")]
pub struct Species {
    pub architecture: &'static str,
    /// The number of the block type of its matrices.
    pub kind: u32,
    pub layers: usize,
    pub head: usize,
    pub bias: bool,
    pub head_norms: bool,
    pub outer_norms: bool,
    pub rope_factors: bool,
    /// True if the logits have a separate matrix.
    pub output: bool,
    pub window: Option<u32>,
    /// The number of tokens in the vocabulary.
    pub tokens: usize,
}

pub const LLAMA: Species = Species {
    architecture: "llama",
    kind: 8,
    layers: 2,
    head: 64,
    bias: false,
    head_norms: false,
    outer_norms: false,
    rope_factors: false,
    output: false,
    window: None,
    // The number of tokens of the toy.
    tokens: 262,
};

/// The 256 bytes in the form of files.
pub fn byte_letters() -> Vec<String> {
    let mut letters = super::toy::vocabulary();
    letters.truncate(256);
    letters
}

/// Creates a model with these properties.
pub fn model(species: Species) -> Toy {
    let name = |name: &str| format!("{}.{name}", species.architecture);
    let number = |n: usize| Value::U32(u32::try_from(n).unwrap());
    let mut toy = Toy::default();
    toy.values.retain(|(name, _)| !name.starts_with("llama."));
    toy.tensors = tensors(species);
    let mut toy = toy
        .with("general.architecture", Value::Text(species.architecture.to_owned()))
        .with(&name("block_count"), number(species.layers))
        .with(&name("context_length"), number(512))
        .with(&name("embedding_length"), number(WIDTH))
        .with(&name("feed_forward_length"), number(HIDDEN))
        .with(&name("attention.head_count"), number(QUERIES))
        .with(&name("attention.head_count_kv"), number(KEYS))
        .with(&name("attention.layer_norm_rms_epsilon"), Value::F32(1e-5))
        .with(&name("rope.freq_base"), Value::F32(50_000.0));
    if species.head * QUERIES != WIDTH {
        toy = toy
            .with(&name("attention.key_length"), number(species.head))
            .with(&name("attention.value_length"), number(species.head));
    }
    if let Some(window) = species.window {
        toy = toy.with(&name("attention.sliding_window"), Value::U32(window));
    }
    toy
}

fn tensors(species: Species) -> Vec<Tensor> {
    let Species { kind, head, .. } = species;
    let (queries, keys) = (QUERIES * head, KEYS * head);
    // The embeddings are exact in both engines, so differences come from the matrices.
    let mut tensors =
        vec![matrix("token_embd.weight", 8, species.tokens, WIDTH), vector("output_norm.weight", WIDTH)];
    if species.output {
        tensors.push(matrix("output.weight", kind, species.tokens, WIDTH));
    }
    if species.rope_factors {
        tensors.push(vector("rope_freqs.weight", head / 2));
    }
    for layer in 0..species.layers {
        let name = |part: &str| format!("blk.{layer}.{part}");
        tensors.push(vector(&name("attn_norm.weight"), WIDTH));
        tensors.push(vector(&name("ffn_norm.weight"), WIDTH));
        for (part, rows, columns) in [
            ("attn_q", queries, WIDTH),
            ("attn_k", keys, WIDTH),
            ("attn_v", keys, WIDTH),
            ("attn_output", WIDTH, queries),
            ("ffn_gate", HIDDEN, WIDTH),
            ("ffn_up", HIDDEN, WIDTH),
            ("ffn_down", WIDTH, HIDDEN),
        ] {
            tensors.push(matrix(&name(&format!("{part}.weight")), kind, rows, columns));
        }
        if species.bias {
            for (part, length) in [("attn_q.bias", queries), ("attn_k.bias", keys), ("attn_v.bias", keys)] {
                tensors.push(vector(&name(part), length));
            }
        }
        if species.head_norms {
            tensors.push(vector(&name("attn_q_norm.weight"), head));
            tensors.push(vector(&name("attn_k_norm.weight"), head));
        }
        if species.outer_norms {
            tensors.push(vector(&name("post_attention_norm.weight"), WIDTH));
            tensors.push(vector(&name("post_ffw_norm.weight"), WIDTH));
        }
    }
    tensors
}

/// A fixed sequence for each name.
struct Sequence(u32);

impl Sequence {
    fn from_name(name: &str) -> Self {
        Self(name.bytes().fold(1, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into())))
    }

    fn next(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0.to_le_bytes()[3]
    }
}

fn tensor(name: &str, lengths: Vec<u64>, kind: u32, bytes: Vec<u8>) -> Tensor {
    Tensor { name: name.to_owned(), lengths, kind, bytes, claimed_offset: None }
}

/// Numbers from 0.5 to 1.5.
fn vector(name: &str, length: usize) -> Tensor {
    let mut random = Sequence::from_name(name);
    let numbers = (0..length).flat_map(|_| (0.5 + f32::from(random.next()) / 256.0).to_le_bytes());
    tensor(name, vec![length as u64], 0, numbers.collect())
}

/// The length of a block in numbers and bytes, and the offsets and values of its halves. The values give weights of
/// ordinary size with a mean of about zero.
fn layout(kind: u32) -> (usize, usize, &'static [(usize, u16)]) {
    match kind {
        2 => (32, 18, &[(0, 0x2000)]),
        3 => (32, 20, &[(0, 0x2000), (2, 0xab80)]),
        6 => (32, 22, &[(0, 0x1c00)]),
        7 => (32, 24, &[(0, 0x1c00), (2, 0xabc0)]),
        8 => (32, 34, &[(0, 0x1000)]),
        11 => (256, 110, &[(108, 0x1400)]),
        12 => (256, 144, &[(0, 0x0c00), (2, 0x1780)]),
        13 => (256, 176, &[(0, 0x0800), (2, 0x17c0)]),
        14 => (256, 210, &[(208, 0x0200)]),
        _ => (1, 2, &[]),
    }
}

fn matrix(name: &str, kind: u32, rows: usize, columns: usize) -> Tensor {
    let (numbers, size, halves) = layout(kind);
    let mut random = Sequence::from_name(name);
    let mut bytes = Vec::new();
    for _ in 0..rows * columns / numbers {
        let mut block: Vec<u8> = (0..size).map(|_| random.next()).collect();
        for (place, half) in halves {
            block[*place..place + 2].copy_from_slice(&half.to_le_bytes());
        }
        // Plain numbers: a random sign and mantissa, and an exponent of ordinary size.
        match kind {
            1 => block[1] = 0x28 | block[1] & 0x83,
            30 => block = vec![block[0], 0x3d | block[1] & 0x80],
            _ => {}
        }
        bytes.extend(block);
    }
    tensor(name, vec![columns as u64, rows as u64], kind, bytes)
}
