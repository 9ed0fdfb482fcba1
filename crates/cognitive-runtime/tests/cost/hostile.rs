//! Random modules against services that cost as much as they can. `COGN_COST_CASES=10000` sets the number of cases.

use std::collections::BTreeMap;
use std::sync::Arc;

use cognitive_contract::money::Money;
use cognitive_contract::ports::{NullSink, Provider};
use cognitive_contract::{Confidence, Envelope, Module};
use cognitive_runtime::cost::ceiling;
use cognitive_runtime::{ClimbRules, Host, Ladder, RunRequest, run};
use cognitive_testkit::{NamedModules, SeededRandom, poll_now};
use serde_json::json;

use super::random_modules;
use super::stub::{Habit, Hostile, prices};

/// One run.
struct Drawn {
    envelope: Envelope,
    ceiling: Money,
    billed: Money,
    calls: u64,
}

/// Runs a random module, with its ceiling as the limit.
fn draw(pool: &BTreeMap<String, Arc<Module>>, habit: Habit, seed: u64) -> Drawn {
    let mut random = SeededRandom::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut modules = BTreeMap::new();
    let name = if random.next_below(3) == 0 { "open-root" } else { "bound-root" };
    let names: Vec<&String> = pool.keys().collect();
    let root = if random.flip() {
        random_modules::leaf(name, &mut random)
    } else {
        let mut parts: Vec<&str> =
            (0..=random.index(3)).map(|_| names[random.index(names.len())].as_str()).collect();
        parts.sort_unstable();
        parts.dedup();
        random_modules::composed(name, &parts, &mut random)
    };
    modules.extend(pool.iter().map(|(name, module)| (name.clone(), Arc::clone(module))));
    modules.insert(name.to_owned(), Arc::clone(&root));
    let kinds = ["cheap", "dear", "known", "thinker"];
    let rungs: Vec<Arc<Hostile>> = (0..=random.next_below(3))
        .map(|rung| Arc::new(Hostile::new(kinds[random.index(4)], habit, seed + rung)))
        .collect();
    let mut host = Host::new(Arc::new(NamedModules(modules)), Arc::clone(&rungs[0]) as Arc<dyn Provider>);
    host.prices = Arc::new(prices());
    if rungs.len() > 1 {
        let rungs = rungs[1..].iter().map(|rung| Arc::clone(rung) as Arc<dyn Provider>).collect();
        let rules = ClimbRules::default().with_confidence(Confidence::new(0.95).unwrap());
        host.models.ladder = Some(Arc::new(Ladder { rungs, rules }));
    }
    let input = json!({ "text": "w ".repeat(random.index(2000)) });
    let mut request = RunRequest::new(name, input.clone());
    request.options.settings.reask = Some(u32::try_from(random.next_below(3)).unwrap());
    request.options.settings.max_calls = Some(10_000);
    if random.next_below(4) == 0 {
        request.options.settings.thinking = Some(u32::try_from(random.next_below(2000)).unwrap());
    }
    let bytes = input.to_string().len() as u64 + 2;
    let ceiling = ceiling(&host, &root, &request.options, bytes).unwrap().cost;
    request.options.settings.max_cost = Some(ceiling);
    let envelope = poll_now(run(&host, request, &mut NullSink));
    let billed = rungs.iter().map(|rung| rung.billed()).sum();
    let calls = rungs.iter().map(|rung| rung.calls()).sum();
    Drawn { envelope, ceiling, billed, calls }
}

/// The cost that the runtime counted; unreported cost is missing.
fn told(envelope: &Envelope) -> Money {
    envelope.meta().usage().and_then(|usage| usage.cost).unwrap_or(Money::ZERO)
}

/// The number of random modules.
fn cases(usual: u64) -> u64 {
    std::env::var("COGN_COST_CASES").ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

// No service bills more than the ceiling, and a limit equal to the ceiling admits every run.
#[test]
fn random_modules_never_cost_more_than_their_ceiling() {
    let pool = random_modules::pool(48, &mut SeededRandom::new(7));
    let (mut calls, mut stopped, mut nearest) = (0, 0, 0);
    let cases = cases(1_000);
    for seed in 0..cases {
        let one = draw(&pool, Habit::Any, seed);
        assert!(one.billed <= one.ceiling, "seed {seed}: {} of {}", one.billed, one.ceiling);
        assert!(told(&one.envelope) <= one.billed, "seed {seed}");
        let code = one.envelope.error().map(|error| error.code().to_owned());
        assert!(one.calls > 0, "seed {seed}: a limit that is the ceiling lets the run begin: {code:?}");
        calls += one.calls;
        stopped += u64::from(code.as_deref() == Some("E4101"));
        nearest = nearest.max(one.billed.pico() * 1000 / one.ceiling.pico());
    }
    println!(
        "{cases} runs, {calls} calls, {stopped} ended by their limit, nearest {nearest} per mille of the ceiling"
    );
    assert!(calls > 2 * cases && nearest > 900, "{calls} calls, {nearest}");
}

// A model that writes up to its limit, in tokens of the usual length, is never stopped: the ceiling is a bound.
#[test]
fn a_run_that_begins_is_not_stopped_by_texts_of_the_usual_length() {
    let pool = random_modules::pool(48, &mut SeededRandom::new(7));
    for habit in [Habit::Long, Habit::Broken] {
        for seed in 0..cases(1_000) / 5 {
            let one = draw(&pool, habit, seed);
            assert!(one.billed <= one.ceiling, "{habit:?} {seed}: {} of {}", one.billed, one.ceiling);
            let code = one.envelope.error().map(|error| error.code().to_owned());
            assert_ne!(code.as_deref(), Some("E4101"), "{habit:?} {seed}: {:?}", one.envelope.error());
        }
    }
}
