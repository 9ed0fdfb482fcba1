//! Batched texts: each gets the same results as alone, bit by bit, while others join and leave.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use cognitive_llama::{Ensemble, EnsembleSession, FeedError, TokenSession};

use super::{bits, consistency::models, logits};

/// The number of tokens that each of the sixteen reads first, before it continues token by token; all of them differ.
fn beginning(reader: usize) -> usize {
    3 + reader * 11 % 80
}

#[test]
fn whoever_is_read_beside_a_text_does_not_change_a_bit_of_it() {
    for (model, text) in models() {
        let alone: Vec<_> = (0..16)
            .map(|reader| {
                let mut session = TokenSession::new(Arc::clone(&model), 1);
                let text = &text[reader..];
                let first = bits(session.feed(&text[..beginning(reader)], &|| false).unwrap());
                let mut all = vec![first];
                for token in &text[beginning(reader)..beginning(reader) + 6] {
                    all.push(bits(session.feed(&[*token], &|| false).unwrap()));
                }
                all
            })
            .collect();
        for readers in [1, 2, 3, 5, 8, 9, 16] {
            let ensemble = Arc::new(Ensemble::new(Arc::clone(&model), 2));
            let start = Barrier::new(readers);
            thread::scope(|scope| {
                for (reader, alone) in alone.iter().enumerate().take(readers) {
                    let (text, mut session, start) = (&text[reader..], ensemble.session(), &start);
                    scope.spawn(move || {
                        start.wait();
                        let from = beginning(reader);
                        let mut parts = vec![&text[..from]];
                        parts.extend(text[from..from + 6].chunks(1));
                        for (part, expected) in parts.into_iter().zip(alone) {
                            let found = bits(session.feed(part, &|| false).unwrap());
                            assert!(found == *expected, "reader {reader} of {readers}");
                        }
                    });
                }
            });
        }
    }
}

#[test]
fn what_is_weighed_beside_others_weighs_the_same() {
    let (model, text) = models().swap_remove(0);
    let ensemble = Arc::new(Ensemble::new(Arc::clone(&model), 2));
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for reader in 0..4 {
            let (model, text, start, ensemble) = (&model, &text[reader * 7..150 + reader], &start, &ensemble);
            scope.spawn(move || {
                let alone = TokenSession::new(Arc::clone(model), 1).likelihoods(text, &|| false).unwrap();
                start.wait();
                let found = ensemble.session().likelihoods(text, &|| false).unwrap();
                assert_eq!(bits(&found), bits(&alone), "reader {reader}");
            });
        }
    });
}

/// Answers that are weighed in one batch get the same weights as alone, and the text before them does not change.
#[test]
fn several_endings_of_a_text_are_weighed_in_one_step() {
    for (model, text) in models() {
        let ensemble = Arc::new(Ensemble::new(Arc::clone(&model), 2));
        let mut session = ensemble.session();
        session.feed(&text[..40], &|| false).unwrap();
        let endings = [text[50..53].to_vec(), Vec::new(), text[60..140].to_vec(), text[70..71].to_vec()];
        let found = session.likelihoods_of_each(&endings, &|| false).unwrap();
        for (found, ending) in found.iter().zip(&endings) {
            let mut alone = TokenSession::new(Arc::clone(&model), 1);
            alone.feed(&text[..40], &|| false).unwrap();
            assert_eq!(bits(found), bits(&alone.likelihoods(ending, &|| false).unwrap()));
        }
        assert_eq!(session.tokens(), &text[..40]);
        let expected = bits(&logits(&model, 1, &text[..45]));
        assert_eq!(bits(session.feed(&text[40..45], &|| false).unwrap()), expected);
        assert_eq!(session.likelihoods_of_each(&endings, &|| true), Err(FeedError::Cancelled));
        assert_eq!(session.tokens(), &text[..45]);
    }
}

/// The state of the last token after each layer depends neither on the split of the text nor on the batch. Reading it
/// does not change later results.
#[test]
fn the_states_of_a_text_depend_on_nothing_but_the_text() {
    for (model, text) in models() {
        let ensemble = Arc::new(Ensemble::new(Arc::clone(&model), 2));
        let states = |text: &[u32], cut: usize| {
            let mut session = ensemble.session();
            session.read(&text[..cut], &|| false).unwrap();
            let states = session.states(&text[cut..], &|| false).unwrap();
            (states.iter().map(|state| bits(state)).collect::<Vec<_>>(), session)
        };
        let (alone, mut session) = states(&text[..150], 0);
        assert_eq!(
            bits(session.feed(&text[150..155], &|| false).unwrap()),
            bits(&logits(&model, 1, &text[..155]))
        );
        assert!(alone.windows(2).all(|layers| layers[0] != layers[1] && layers[0].len() == layers[1].len()));
        assert_ne!(alone, states(&text[1..150], 0).0);
        for cut in [1, 64, 100, 149] {
            assert!(states(&text[..150], cut).0 == alone, "{cut}");
        }
        let start = Barrier::new(6);
        thread::scope(|scope| {
            for reader in 0..6 {
                let (start, states, alone, text, ensemble) = (&start, &states, &alone, &text, &ensemble);
                scope.spawn(move || {
                    start.wait();
                    match reader % 3 {
                        0 => assert!(states(&text[..150], 0).0 == *alone, "reader {reader}"),
                        1 => drop(ensemble.session().feed(&text[reader..90], &|| false).unwrap().len()),
                        _ => drop(ensemble.session().likelihoods(&text[reader..70], &|| false).unwrap()),
                    }
                });
            }
        });
        assert_eq!(ensemble.session().states(&[], &|| false), Ok(Vec::new()));
    }
}

/// Texts with a common prefix share its computation, and never affect each other's later tokens.
#[test]
fn a_shared_beginning_is_nobodys_to_change() {
    for (model, text) in models() {
        let ensemble = Arc::new(Ensemble::new(Arc::clone(&model), 2));
        for shared in [1, 31, 32, 33, 64, 70] {
            let mut first = ensemble.session();
            first.feed(&text[..80], &|| false).unwrap();
            let with_end = |mut session: EnsembleSession, end: &[u32]| {
                assert_eq!(session.tokens(), &text[..shared]);
                bits(session.feed(end, &|| false).unwrap())
            };
            let (one, other) = (first.fork(shared), first.fork(shared));
            let expected = |end: &[u32]| bits(&logits(&model, 1, &[&text[..shared], end].concat()));
            assert_eq!(with_end(one, &text[100..120]), expected(&text[100..120]), "{shared}");
            assert_eq!(with_end(other, &text[130..190]), expected(&text[130..190]), "{shared}");
            // The original text continues as if it had no forks.
            let expected = bits(&logits(&model, 1, &text[..95]));
            assert_eq!(bits(first.feed(&text[80..95], &|| false).unwrap()), expected, "{shared}");
        }
    }
}

/// A cancelled text is unchanged and frees its place, and the others get the same results.
#[test]
fn who_stops_takes_nothing_from_the_others() {
    let (model, text) = models().swap_remove(0);
    let ensemble = Arc::new(Ensemble::new(Arc::clone(&model), 2));
    let (start, stops) = (Barrier::new(4), AtomicBool::new(false));
    let expected = bits(&logits(&model, 1, &text[..60]));
    thread::scope(|scope| {
        for _ in 0..3 {
            let (mut session, text, start, stops, expected) =
                (ensemble.session(), &text, &start, &stops, &expected);
            scope.spawn(move || {
                start.wait();
                for token in &text[..59] {
                    session.feed(&[*token], &|| false).unwrap();
                    stops.store(true, Ordering::Relaxed);
                }
                assert_eq!(bits(session.feed(&text[59..60], &|| false).unwrap()), *expected);
            });
        }
        let mut session = ensemble.session();
        session.feed(&text[..20], &|| false).unwrap();
        start.wait();
        while session.feed(&text[20..180], &|| stops.load(Ordering::Relaxed)) != Err(FeedError::Cancelled) {
            session.truncate(20);
        }
        assert_eq!(session.tokens(), &text[..20]);
        let expected = bits(&logits(&model, 1, &text[..30]));
        assert_eq!(bits(session.feed(&text[20..30], &|| false).unwrap()), expected);
    });
}

#[test]
fn a_text_beside_others_has_the_limits_of_one_alone() {
    let (model, text) = models().swap_remove(0);
    let ensemble = Arc::new(Ensemble::new(Arc::clone(&model), 2));
    let mut session = ensemble.session();
    let long: Vec<u32> = text.iter().copied().cycle().take(model.context_length() + 1).collect();
    assert_eq!(session.feed(&long, &|| panic!("nothing to ask")), Err(FeedError::Full));
    assert_eq!(session.likelihoods(&text[..5], &|| true), Err(FeedError::Cancelled));
    assert!(session.tokens().is_empty());
    let read = session.feed(&text[..5], &|| false).unwrap().to_vec();
    assert_eq!(session.feed(&[], &|| false).unwrap(), read);
}
