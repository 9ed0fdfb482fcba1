//! Compares the engine with itself: different splits of a text, different threads, and different earlier texts.

use std::cell::Cell;
use std::sync::Arc;

use cognitive_llama::{FeedError, Kernel, Model, TokenSession};

use super::{bits, log_sum_exp, logits, ranking, toy, weights};

/// The toy model, and the weights if they are available.
pub(super) fn models() -> Vec<(Arc<Model>, Vec<u32>)> {
    let toy = Arc::new(toy::open(&toy::Toy::default().bytes()).unwrap());
    let text: Vec<u32> = (0..200_u32).map(|i| i * 37 % 256).collect();
    let mut models = vec![(toy, text)];
    models.extend(weights().map(|model| {
        let text = model.tokenizer().encode(include_str!("../data/perplexity.txt"));
        (model, text[..200].to_vec())
    }));
    models
}

#[test]
fn how_a_text_is_cut_and_who_computes_it_does_not_change_a_bit() {
    for (model, text) in models() {
        let whole = bits(&logits(&model, 1, &text));
        for threads in [2, 3, 7] {
            assert_eq!(bits(&logits(&model, threads, &text)), whole, "{threads} threads");
        }
        for split in [1, 5, 31, 32, 33, 64, 65, 130, 199] {
            let mut session = TokenSession::new(Arc::clone(&model), 2);
            session.feed(&text[..split], &|| false).unwrap();
            assert_eq!(bits(session.feed(&text[split..], &|| false).unwrap()), whole, "split at {split}");
        }
        let mut session = TokenSession::new(Arc::clone(&model), 2);
        for token in &text[..199] {
            session.feed(&[*token], &|| false).unwrap();
        }
        assert_eq!(bits(session.feed(&text[199..], &|| false).unwrap()), whole, "token by token");
        assert_eq!(session.tokens(), text);
    }
}

/// The likelihood of known tokens equals that from their logits, for every number of threads and every block boundary.
#[test]
fn the_likelihood_of_a_text_is_that_of_each_token_after_those_before_it() {
    for (model, text) in models() {
        let text = &text[..80];
        let mut session = TokenSession::new(Arc::clone(&model), 1);
        let mut expected = Vec::new();
        for pair in text.windows(2) {
            let logits = session.feed(&pair[..1], &|| false).unwrap();
            expected.push(f64::from(logits[pair[1] as usize]) - log_sum_exp(logits));
        }
        for threads in [1, 2, 3] {
            let mut session = TokenSession::new(Arc::clone(&model), threads);
            let found = session.likelihoods(text, &|| false).unwrap();
            assert_eq!((found.len(), session.tokens()), (79, text));
            let worst = found
                .iter()
                .zip(&expected)
                .map(|(one, other)| (f64::from(*one) - other).abs())
                .fold(0.0, f64::max);
            assert!(worst < 1e-3, "{threads} threads: {worst}");
            session.truncate(40);
            assert_eq!(bits(&session.likelihoods(&text[40..], &|| false).unwrap()), bits(&found[40..]));
        }
        assert!(session.likelihoods(&[], &|| false).unwrap().is_empty());
        assert_eq!(session.likelihoods(&text[..5], &|| true), Err(FeedError::Cancelled));
    }
}

/// Half-precision weights are rounded to eight bits, so their results are close to those of the same weights in `Q8_0`.
#[test]
fn halves_compute_what_eight_bits_do() {
    let toy = toy::Toy::default();
    let eight = Arc::new(toy::open(&toy.bytes()).unwrap());
    let halves = toy.change("blk.0.ffn_down.weight", |tensor| {
        let scale = 2.0_f32.powi(-9);
        let numbers = tensor.bytes.chunks(34).flat_map(|block| &block[2..]);
        let numbers = numbers.map(|byte| scale * f32::from(byte.cast_signed()));
        // The upper half of a float that needs at most ten bits, with the exponent of a half.
        let half = |number: f32| {
            let (sign, magnitude) =
                (if number < 0.0 { 0x8000 } else { 0 }, number.abs() * 2.0_f32.powi(-112));
            sign | u16::try_from(magnitude.to_bits() >> 13).unwrap()
        };
        tensor.bytes = numbers.flat_map(|number| half(number).to_le_bytes()).collect();
        tensor.kind = 1;
    });
    let halves = Arc::new(toy::open(&halves.bytes()).unwrap());
    let text: Vec<u32> = (0..50_u32).map(|i| i * 37 % 256).collect();
    let (eight, halves) = (logits(&eight, 1, &text), logits(&halves, 1, &text));
    let largest = eight.iter().fold(0.0, |largest: f32, logit| largest.max(logit.abs()));
    let apart = eight.iter().zip(&halves).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
    assert!(apart > 0.0 && apart < largest / 50.0, "{apart} of {largest}");
}

#[test]
fn what_was_forgotten_leaves_no_trace() {
    for (model, text) in models() {
        let fresh = bits(&logits(&model, 1, &text[..90]));
        for kept in [0, 1, 32, 40, 64, 89] {
            let mut session = TokenSession::new(Arc::clone(&model), 2);
            session.feed(&text[..kept], &|| false).unwrap();
            session.feed(&text[100..200], &|| false).unwrap();
            session.truncate(kept);
            assert_eq!(session.tokens(), &text[..kept]);
            assert_eq!(bits(session.feed(&text[kept..90], &|| false).unwrap()), fresh, "kept {kept}");
        }
    }
}

#[test]
fn a_cancelled_session_is_as_it_was_before() {
    for (model, text) in models() {
        for threads in [1, 2] {
            let mut session = TokenSession::new(Arc::clone(&model), threads);
            session.feed(&text[..50], &|| false).unwrap();
            // Checked before each layer: the second check is within the first block.
            let asked = Cell::new(0);
            let cancelled = || {
                asked.set(asked.get() + 1);
                asked.get() > 1
            };
            assert_eq!(session.feed(&text[60..200], &cancelled), Err(FeedError::Cancelled));
            assert_eq!(session.tokens(), &text[..50]);
            let whole = bits(&logits(&model, 1, &text[..55]));
            assert_eq!(bits(session.feed(&text[50..55], &|| false).unwrap()), whole);
        }
    }
}

#[test]
fn cancellation_is_asked_at_least_once_per_64_tokens_and_once_per_layer() {
    let (model, text) = models().swap_remove(0);
    for (count, threads) in [(1, 1), (64, 1), (65, 1), (200, 1), (200, 2)] {
        let asked = Cell::new(0);
        let cancelled = || {
            asked.set(asked.get() + 1);
            false
        };
        TokenSession::new(Arc::clone(&model), threads).feed(&text[..count], &cancelled).unwrap();
        let least = count.div_ceil(64) * toy::LAYERS / threads;
        assert!(asked.get() >= least, "{count} tokens: asked {} times", asked.get());
    }
}

#[test]
fn a_full_context_is_refused_before_anything_is_computed() {
    let (model, text) = models().swap_remove(0);
    let mut session = TokenSession::new(Arc::clone(&model), 2);
    let room = model.context_length();
    let long: Vec<u32> = text.iter().copied().cycle().take(room + 1).collect();
    assert_eq!(session.feed(&long, &|| panic!("nothing to ask")), Err(FeedError::Full));
    session.feed(&long[..room], &|| false).unwrap();
    assert_eq!(session.feed(&[1], &|| false), Err(FeedError::Full));
    session.truncate(room - 1);
    session.feed(&[1], &|| false).unwrap();
}

#[test]
fn tokens_that_do_not_exist_and_no_tokens_at_all_do_no_harm() {
    let (model, _) = models().swap_remove(0);
    let mut session = TokenSession::new(model, 0);
    let read = session.feed(&[u32::MAX, 5], &|| false).unwrap().to_vec();
    assert!(read.iter().all(|x| x.is_finite()));
    assert_eq!(session.feed(&[], &|| false).unwrap(), read);
    session.truncate(usize::MAX);
    assert_eq!(session.tokens(), [u32::MAX, 5]);
}

/// The kernels differ in the order of sums, and in whether a product is rounded before it is added. That sometimes
/// changes the rounding of an activation, so logits differ in the third digit; the probabilities are almost equal.
#[test]
fn the_kernels_agree_on_the_probabilities() {
    let Some(model) = weights() else { return };
    let path = cognitive_testkit::weights().unwrap();
    let text = model.tokenizer().encode(include_str!("../data/perplexity.txt"));
    let reference = logits(&model, 2, &text[..100]);
    let total = log_sum_exp(&reference);
    for kernel in Kernel::available() {
        let model = Arc::new(Model::open(&path).unwrap().with_kernel(kernel));
        let ours = logits(&model, 2, &text[..100]);
        let our_total = log_sum_exp(&ours);
        let divergence: f64 = (reference.iter().zip(&ours))
            .map(|(a, b)| (f64::from(*a) - total, f64::from(*b) - our_total))
            .map(|(a, b)| a.exp() * (a - b))
            .sum();
        let furthest = reference.iter().zip(&ours).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        eprintln!("{}: divergence {divergence:.6}, furthest {furthest:.4}", kernel.name());
        assert!(divergence < 0.005, "{}: {divergence}", kernel.name());
        assert_eq!(ranking(&ours)[0], ranking(&reference)[0], "{}", kernel.name());
    }
}
