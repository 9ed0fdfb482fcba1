//! Compares the engine with values that llama.cpp computed; `tests/data/README.md` describes how.

use serde_json::Value;

use cognitive_llama::TokenSession;

use super::{log_sum_exp, logits, ranking, weights};

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn tokens(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|token| token.as_u64().unwrap().try_into().unwrap()).collect()
}

#[test]
fn text_becomes_the_same_tokens_as_in_llama_cpp_and_comes_back() {
    let Some(model) = weights() else { return };
    let tokenizer = model.tokenizer();
    for case in read(include_str!("../data/tokens.json")).as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let ours = tokenizer.encode(text);
        assert_eq!(ours, tokens(&case["tokens"]), "{text:?}");
        assert!(ours.iter().all(|token| !tokenizer.is_control(*token)), "{text:?}");
        let back: Vec<u8> = ours.iter().flat_map(|token| tokenizer.bytes(*token).to_vec()).collect();
        // The vocabulary has no token for a few bytes that rarely occur in text.
        let expected: Vec<u8> =
            text.bytes().filter(|byte| !tokenizer.encode_bytes(&[*byte]).is_empty()).collect();
        assert_eq!(back, expected, "{text:?}");
    }
}

#[test]
fn control_tokens_are_found_by_name_only() {
    let Some(model) = weights() else { return };
    let tokenizer = model.tokenizer();
    assert_eq!(tokenizer.control("<|im_start|>"), Some(1));
    assert_eq!(tokenizer.control("<|im_end|>"), Some(tokenizer.end_of_turn()));
    assert_eq!(tokenizer.control("the"), None);
    assert_eq!(tokenizer.bytes(1), b"<|im_start|>");
    assert_eq!((tokenizer.len(), model.context_length()), (49_152, 8_192));
    assert!(tokenizer.bytes(u32::MAX).is_empty() && !tokenizer.is_control(u32::MAX));
}

#[test]
fn logits_are_those_of_llama_cpp() {
    let Some(model) = weights() else { return };
    for case in read(include_str!("../data/logits.json")).as_array().unwrap() {
        let ours = logits(&model, 2, &tokens(&case["tokens"]));
        let top: Vec<(usize, f64)> = (case["top"].as_array().unwrap().iter())
            .map(|pair| (usize::try_from(pair[0].as_u64().unwrap()).unwrap(), pair[1].as_f64().unwrap()))
            .collect();
        let mut theirs_first: Vec<usize> = top[..5].iter().map(|(token, _)| *token).collect();
        let mut ours_first = ranking(&ours)[..5].to_vec();
        theirs_first.sort_unstable();
        ours_first.sort_unstable();
        let divergence = divergence(&top, case["log_sum_exp"].as_f64().unwrap(), &ours);
        eprintln!("divergence {divergence:.4}");
        assert!(divergence < 0.02, "{divergence}");
        assert_eq!(ours_first, theirs_first);
    }
}

/// The Kullback-Leibler divergence, with all tokens except the 64 likeliest as one group.
fn divergence(top: &[(usize, f64)], their_total: f64, ours: &[f32]) -> f64 {
    let our_total = log_sum_exp(ours);
    let (mut sum, mut their_rest, mut our_rest) = (0.0, 1.0, 1.0);
    for (token, logit) in top {
        let (theirs, ours) = (logit - their_total, f64::from(ours[*token]) - our_total);
        sum += theirs.exp() * (theirs - ours);
        their_rest -= theirs.exp();
        our_rest -= ours.exp();
    }
    sum + their_rest * (their_rest / our_rest).ln()
}

#[test]
fn perplexity_is_that_of_llama_cpp() {
    let Some(model) = weights() else { return };
    let expected = read(include_str!("../data/perplexity.json"));
    let tokens = model.tokenizer().encode(include_str!("../data/perplexity.txt"));
    assert_eq!(tokens.len() as u64, expected["tokens"].as_u64().unwrap());
    let mut session = TokenSession::new(model, 1);
    let mut loss = 0.0;
    for pair in tokens.windows(2) {
        let logits = session.feed(&pair[..1], &|| false).unwrap();
        loss += log_sum_exp(logits) - f64::from(logits[pair[1] as usize]);
    }
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let ours = (loss / (tokens.len() - 1) as f64).exp();
    let theirs = expected["perplexity"].as_f64().unwrap();
    eprintln!("perplexity {ours:.3}, llama.cpp {theirs:.3}");
    assert!((ours / theirs - 1.0).abs() < 0.02, "{ours} {theirs}");
}
