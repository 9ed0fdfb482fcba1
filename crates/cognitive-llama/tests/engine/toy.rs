//! A toy model and the writer of its file, so that tests need no weights and can damage any part of it.

use cognitive_llama::{Model, WeightsError};

pub const LAYERS: usize = 2;
const WIDTH: usize = 64;
const HIDDEN: usize = 96;
const HEAD: usize = 32;
const MERGES: [&str; 4] = ["t h", "th e", "Ġ the", "1 2"];

/// A value of the header.
#[derive(Clone)]
pub enum Value {
    U32(u32),
    F32(f32),
    Text(String),
    Texts(Vec<String>),
    Numbers(Vec<i32>),
    /// The kind and the raw bytes.
    Raw(u32, Vec<u8>),
}

#[derive(Clone)]
pub struct Tensor {
    pub name: String,
    /// The length of a row first.
    pub lengths: Vec<u64>,
    pub kind: u32,
    pub bytes: Vec<u8>,
    /// The offset in the header, if it is wrong on purpose.
    pub claimed_offset: Option<u64>,
}

/// The contents of the file, which can be changed before it is written.
#[derive(Clone)]
pub struct Toy {
    pub values: Vec<(String, Value)>,
    pub tensors: Vec<Tensor>,
    pub claimed_values: Option<u64>,
    pub claimed_tensors: Option<u64>,
    pub version: u32,
}

pub fn open(bytes: &[u8]) -> Result<Model, WeightsError> {
    Model::from_bytes(bytes)
}

impl Default for Toy {
    fn default() -> Self {
        let text = |text: &str| Value::Text(text.to_owned());
        let values = [
            ("general.architecture", text("llama")),
            ("general.name", text("Toy")),
            ("llama.block_count", Value::U32(2)),
            ("llama.context_length", Value::U32(256)),
            ("llama.embedding_length", Value::U32(64)),
            ("llama.feed_forward_length", Value::U32(96)),
            ("llama.attention.head_count", Value::U32(2)),
            ("llama.attention.head_count_kv", Value::U32(1)),
            ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
            ("tokenizer.ggml.model", text("gpt2")),
            ("tokenizer.ggml.pre", text("smollm")),
            ("tokenizer.ggml.tokens", Value::Texts(vocabulary())),
            ("tokenizer.ggml.token_type", Value::Numbers(kinds())),
            ("tokenizer.ggml.merges", Value::Texts(MERGES.map(str::to_owned).to_vec())),
            ("tokenizer.ggml.eos_token_id", Value::U32(261)),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value)).to_vec();
        Self { values, tensors: tensors(), claimed_values: None, claimed_tensors: None, version: 3 }
    }
}

/// The 256 bytes in their printable form, the merged ones, and two control tokens.
pub fn vocabulary() -> Vec<String> {
    let mut next = 0x100;
    let mut tokens: Vec<String> = (0..=255_u32)
        .map(|byte| match byte {
            0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => char::from_u32(byte).unwrap().to_string(),
            _ => {
                next += 1;
                char::from_u32(next - 1).unwrap().to_string()
            }
        })
        .collect();
    tokens.extend(MERGES.map(|merge| merge.replace(' ', "")));
    tokens.extend(["<|start|>".to_owned(), "<|end|>".to_owned()]);
    tokens
}

fn kinds() -> Vec<i32> {
    let mut kinds = vec![1; vocabulary().len()];
    kinds[260] = 3;
    kinds[261] = 3;
    kinds
}

fn tensors() -> Vec<Tensor> {
    let mut tensors = vec![matrix("token_embd", 8, vocabulary().len(), WIDTH), vector("output_norm")];
    for layer in 0..LAYERS {
        let name = |part: &str| format!("blk.{layer}.{part}");
        tensors.push(vector(&name("attn_norm")));
        tensors.push(vector(&name("ffn_norm")));
        tensors.push(matrix(&name("attn_q"), 3, WIDTH, WIDTH));
        tensors.push(matrix(&name("attn_k"), 3, HEAD, WIDTH));
        tensors.push(matrix(&name("attn_v"), 2, HEAD, WIDTH));
        tensors.push(matrix(&name("attn_output"), 3, WIDTH, WIDTH));
        tensors.push(matrix(&name("ffn_gate"), 3, HIDDEN, WIDTH));
        tensors.push(matrix(&name("ffn_up"), 2, HIDDEN, WIDTH));
        tensors.push(matrix(&name("ffn_down"), 8, WIDTH, HIDDEN));
    }
    tensors
}

fn vector(name: &str) -> Tensor {
    let bytes = (0..WIDTH).flat_map(|_| 1.0_f32.to_le_bytes()).collect();
    let name = format!("{name}.weight");
    Tensor { name, lengths: vec![WIDTH as u64], kind: 0, bytes, claimed_offset: None }
}

/// A matrix with small scales, and other bytes from a fixed sequence.
pub fn matrix(name: &str, kind: u32, rows: usize, columns: usize) -> Tensor {
    let size = match kind {
        2 => 18,
        3 => 20,
        _ => 34,
    };
    let mut seed = name.bytes().fold(1_u32, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let mut bytes = Vec::new();
    for _ in 0..rows * columns / 32 {
        bytes.extend(if kind == 8 { 0x1800_u16 } else { 0x2800 }.to_le_bytes());
        if kind == 3 {
            bytes.extend(0xb000_u16.to_le_bytes());
        }
        bytes.resize_with(bytes.len() - bytes.len() % size + size, || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed.to_le_bytes()[3]
        });
    }
    let name = format!("{name}.weight");
    Tensor { name, lengths: vec![columns as u64, rows as u64], kind, bytes, claimed_offset: None }
}

impl Toy {
    /// Replaces a value, or adds it.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.values.retain(|(existing, _)| existing != name);
        self.values.push((name.to_owned(), value));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.values.retain(|(existing, _)| existing != name);
        self
    }

    /// Changes a tensor.
    pub fn change(mut self, name: &str, change: impl FnOnce(&mut Tensor)) -> Self {
        change(self.tensors.iter_mut().find(|tensor| tensor.name == name).unwrap());
        self
    }

    /// Returns the file up to the first tensor.
    pub fn header(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend(self.claimed_tensors.unwrap_or(self.tensors.len() as u64).to_le_bytes());
        out.extend(self.claimed_values.unwrap_or(self.values.len() as u64).to_le_bytes());
        for (name, value) in &self.values {
            put_text(&mut out, name);
            put_value(&mut out, value);
        }
        let mut offset = 0_u64;
        for tensor in &self.tensors {
            put_text(&mut out, &tensor.name);
            out.extend(u32::try_from(tensor.lengths.len()).unwrap().to_le_bytes());
            tensor.lengths.iter().for_each(|length| out.extend(length.to_le_bytes()));
            out.extend(tensor.kind.to_le_bytes());
            out.extend(tensor.claimed_offset.unwrap_or(offset).to_le_bytes());
            offset += (tensor.bytes.len() as u64).next_multiple_of(32);
        }
        out.resize(out.len().next_multiple_of(32), 0);
        out
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = self.header();
        for tensor in &self.tensors {
            out.resize(out.len().next_multiple_of(32), 0);
            out.extend(&tensor.bytes);
        }
        out
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    let kind = |out: &mut Vec<u8>, kind: u32| out.extend(kind.to_le_bytes());
    match value {
        Value::U32(n) => {
            kind(out, 4);
            out.extend(n.to_le_bytes());
        }
        Value::F32(x) => {
            kind(out, 6);
            out.extend(x.to_le_bytes());
        }
        Value::Text(text) => {
            kind(out, 8);
            put_text(out, text);
        }
        Value::Texts(texts) => {
            kind(out, 9);
            kind(out, 8);
            out.extend((texts.len() as u64).to_le_bytes());
            for text in texts {
                put_text(out, text);
            }
        }
        Value::Numbers(numbers) => {
            kind(out, 9);
            kind(out, 5);
            out.extend((numbers.len() as u64).to_le_bytes());
            for number in numbers {
                out.extend(number.to_le_bytes());
            }
        }
        Value::Raw(number, bytes) => {
            kind(out, *number);
            out.extend(bytes);
        }
    }
}
