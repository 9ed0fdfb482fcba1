//! A real model beside llama.cpp: Qwen2.5-Coder-0.5B-Instruct in `Q4_K_M`. Skipped where its file is not.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use cognitive_llama::{Model, TokenSession};
use serde_json::{Value, json};

use super::{ask, assert_five, compare, log_sum_exp, python, texts};

/// Loaded once for all tests of a process.
fn qwen() -> Option<(PathBuf, Arc<Model>)> {
    static MODEL: OnceLock<Arc<Model>> = OnceLock::new();
    let path = cognitive_testkit::qwen()?;
    let model = MODEL.get_or_init(|| Arc::new(Model::open(&path).unwrap()));
    Some((path, Arc::clone(model)))
}

/// Texts whose next token is open enough to be worth comparing, and whose fifth and sixth likeliest are not tied.
const PROMPTS: [&str; 4] = [
    "The capital of France is",
    "def fibonacci(n):\n    \"\"\"The n-th number of the sequence.\"\"\"\n    if n < 2:\n        return",
    "{\"ok\":true,\"meta\":{\"confidence\":0.9,\"risk\":\"low\",\"explain\":\"The function adds two numbers",
    "北京是中国的首都，上海是中国",
];

#[test]
fn ten_thousand_texts_become_the_same_tokens() {
    let (Some((path, model)), Some(python)) = (qwen(), python()) else { return };
    let texts = texts::texts();
    let answer = ask(&python, &path, &json!({ "texts": texts }));
    let answers = answer["tokens"].as_array().unwrap();
    assert_eq!(answers.len(), 10_000);
    let tokenizer = model.tokenizer();
    let mut wrong = Vec::new();
    for (text, theirs) in texts.iter().zip(answers) {
        let ours = tokenizer.encode(text);
        if json!(ours) != *theirs {
            wrong.push(format!("{text:?}: {ours:?} {theirs}"));
        }
        assert!(ours.iter().all(|token| !tokenizer.is_control(*token)), "{text:?}");
        let back: Vec<u8> = ours.iter().flat_map(|token| tokenizer.bytes(*token).to_vec()).collect();
        assert_eq!(back, text.as_bytes());
    }
    assert!(wrong.is_empty(), "{} texts differ, such as {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
}

#[test]
fn qwen_computes_what_llama_cpp_does() {
    let (Some((path, model)), Some(python)) = (qwen(), python()) else { return };
    let tokenizer = model.tokenizer();
    assert_eq!((tokenizer.len(), model.context_length()), (151_936, 32_768));
    assert_eq!(tokenizer.control("<|im_end|>"), Some(tokenizer.end_of_turn()));
    let prompts: Vec<Vec<u32>> = PROMPTS.iter().map(|prompt| tokenizer.encode(prompt)).collect();
    let mut text = tokenizer.encode(include_str!("../data/perplexity.txt"));
    text.truncate(200);
    let answer = ask(&python, &path, &json!({ "prompts": prompts, "top": 256, "text": text }));
    for (prompt, theirs) in prompts.iter().zip(answer["prompts"].as_array().unwrap()) {
        let mut session = TokenSession::new(Arc::clone(&model), 2);
        let logits = session.feed(prompt, &|| false).unwrap();
        let (divergence, [theirs, ours]) = compare(theirs, logits);
        eprintln!("divergence {divergence:.5}, {theirs:?} {ours:?}");
        assert!(divergence < 0.01, "{divergence}");
        assert_eq!(ours[0], theirs[0]);
        assert_five(&theirs, &ours, logits);
    }
    assert_perplexity(&model, &text, &answer);
}

fn assert_perplexity(model: &Arc<Model>, text: &[u32], answer: &Value) {
    let mut session = TokenSession::new(Arc::clone(model), 2);
    let likelihoods = session.likelihoods(text, &|| false).unwrap();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let mean = likelihoods.iter().map(|x| f64::from(*x)).sum::<f64>() / likelihoods.len() as f64;
    let (ours, theirs) = ((-mean).exp(), answer["perplexity"].as_f64().unwrap());
    eprintln!("perplexity {ours:.4}, llama.cpp {theirs:.4}");
    assert!((ours / theirs - 1.0).abs() < 0.01, "{ours} {theirs}");
    // The logits of a token are those that its likelihood follows from.
    let mut session = TokenSession::new(Arc::clone(model), 1);
    let logits = session.feed(&text[..20], &|| false).unwrap();
    let likelihood = f64::from(logits[text[20] as usize]) - log_sum_exp(logits);
    assert!((likelihood - f64::from(likelihoods[19])).abs() < 1e-3);
}
