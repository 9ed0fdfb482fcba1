//! The same reply gives the same envelope at any pace (D-08): at once, in deltas of 16 bytes, and with pauses of up
//! to 30 ms between them, on a clock that only this test moves. Ten thousand replies, sync and as a stream.
//! `crates/cogn-cli/benches/pauses.rs` does the same over real connections with real pauses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::ports::{DecodeMode, ModelEnd, NullSink};
use cognitive_contract::stream::{Chunk, assemble};
use cognitive_runtime::{run, stream};
use cognitive_testkit::FakeProvider;
use serde_json::Value;

use super::harness::{corpus_module, host, request};
use super::made_up::{Dice, deltas, reply, settled};

/// The pace of a reply.
#[derive(Clone, Copy)]
enum Pace {
    AtOnce,
    Deltas,
    Pauses,
}

fn paced(text: String, pace: Pace, number: u64) -> FakeProvider {
    FakeProvider::from_future(move |_, sink| {
        let text = text.clone();
        Box::pin(async move {
            sink.decode_mode(DecodeMode::NativeSchema);
            let mut dice = Dice::new(number);
            let pieces = if let Pace::AtOnce = pace { vec![text.as_str()] } else { deltas(&text) };
            for piece in pieces {
                sink.piece(piece);
                if let Pace::Pauses = pace {
                    tokio::time::sleep(Duration::from_millis(dice.below(31) as u64)).await;
                }
            }
            Ok(ModelEnd::complete("m", DecodeMode::NativeSchema))
        })
    })
}

fn check(numbers: std::ops::Range<u64>) -> BTreeMap<String, usize> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let mut outcomes = BTreeMap::new();
    for number in numbers {
        let module = corpus_module(["", "wraps", "exec"][(number % 3) as usize], "delta");
        let mut seen: Option<String> = None;
        for pace in [Pace::AtOnce, Pace::Deltas, Pace::Pauses] {
            let host = host(&module, Arc::new(paced(reply(number), pace, number)));
            let envelope = runtime.block_on(run(&host, request(false), &mut NullSink));
            let mut log: Vec<Chunk> = Vec::new();
            runtime.block_on(stream(&host, request(false), |chunk| log.push(chunk)));
            let log = log.iter().map(|chunk| serde_json::to_value(chunk).unwrap()).collect::<Vec<_>>();
            let sync = settled(serde_json::to_value(&envelope).unwrap());
            let assembled = settled(serde_json::to_value(assemble(log)).unwrap());
            assert_eq!(assembled, sync, "{number}: {}", reply(number));
            let first = seen.get_or_insert_with(|| sync.clone());
            assert_eq!(*first, sync, "{number}: {}", reply(number));
        }
        let value: Value = serde_json::from_str(&seen.unwrap()).unwrap();
        let code = value["error"]["code"].as_str().unwrap_or("ok").to_owned();
        *outcomes.entry(code).or_default() += 1;
    }
    outcomes
}

fn quarter(of: u64) {
    let outcomes = check(of * 2_500..(of + 1) * 2_500);
    // A generator with only one kind of reply would prove nothing.
    assert!(outcomes.get("ok").is_some_and(|passed| *passed > 150), "{outcomes:?}");
    assert!(outcomes.get("E1000").is_some_and(|unread| *unread > 200), "{outcomes:?}");
    assert!(outcomes.get("E3001").is_some_and(|refused| *refused > 200), "{outcomes:?}");
}

#[test]
fn d_08_the_same_reply_gives_the_same_envelope_first_quarter() {
    quarter(0);
}

#[test]
fn d_08_the_same_reply_gives_the_same_envelope_second_quarter() {
    quarter(1);
}

#[test]
fn d_08_the_same_reply_gives_the_same_envelope_third_quarter() {
    quarter(2);
}

#[test]
fn d_08_the_same_reply_gives_the_same_envelope_last_quarter() {
    quarter(3);
}
