//! The effects of a cost limit, and its messages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use cognitive_contract::money::Money;
use cognitive_contract::ports::{Destination, Finish, NullSink, Provider, Usage};
use cognitive_ports::prices::PriceTable;
use cognitive_ports::spending::{BudgetShort, CountedSpending, DayBudget, SpendingEntry, SpendingLedger};
use cognitive_runtime::{Host, RunRequest, Spending, run};
use cognitive_testkit::{FakeProvider, NamedModules, SeededRandom, complete, good_answer, poll_now};
use serde_json::{Value, json};

use super::random_modules;

/// A service that answers and reports 100 input tokens and 10 output tokens.
fn service(name: &'static str) -> Arc<FakeProvider> {
    let answering = FakeProvider::new(|_, sink| {
        sink.piece(&good_answer(&json!({ "rationale": "r", "text": "t" })).to_string());
        let mut end = complete();
        end.usage = Some(Usage::new(100, 10).with_cache(40, 0));
        Ok(end)
    });
    let destination = Some(Destination { model: Some("m".to_owned()), address: None });
    Arc::new(answering.with(|service| (service.name, service.destination) = (name, destination)))
}

fn host(provider: &Arc<FakeProvider>) -> Host {
    let module = random_modules::leaf("bound-one", &mut SeededRandom::new(5));
    let modules = BTreeMap::from([("bound-one".to_owned(), module)]);
    let mut host = Host::new(Arc::new(NamedModules(modules)), Arc::clone(provider) as Arc<dyn Provider>);
    let table = json!({ "as_of": "2026-11-17", "models": { "dear/m": { "input": 10, "output": 100, "cache_read": 1 } } });
    host.prices = Arc::new(PriceTable::from_value(table).unwrap());
    host
}

fn go(host: &Host, limit: Option<&str>) -> Value {
    let mut request = RunRequest::new("bound-one", json!({ "text": "x" }));
    request.options.settings.max_cost = limit.map(|limit| Money::parse(limit).unwrap());
    serde_json::to_value(poll_now(run(host, request, &mut NullSink))).unwrap()
}

#[test]
fn what_a_run_cost_is_in_its_usage() {
    let service = service("dear");
    let usage = &go(&host(&service), None)["meta"]["usage"];
    // 60 plain at 10, 40 from the cache at 1, 10 written at 100, per million.
    assert_eq!((&usage["cost"], &usage["currency"]), (&json!(0.00164), &json!("USD")));
    assert_eq!(usage["cache_read_tokens"], 40);
    let call = &service.calls()[0];
    assert_eq!((call.max_output_tokens, call.keeps_limit), (None, false), "nobody pays by a limit");
}

#[test]
fn a_run_that_could_cost_more_does_not_begin_and_says_how_much_it_could() {
    let service = service("dear");
    let (host, dear) = (host(&service), |envelope: &Value| envelope["error"]["details"].clone());
    let refused = go(&host, Some("0.000001"));
    assert_eq!(refused["error"]["code"], "E4101");
    let details = dear(&refused);
    assert_eq!((&details["limit"], &details["limit_from"]), (&json!(0.000_001), &json!("max_cost")));
    assert_eq!(service.calls().len(), 0);
    let ceiling = details["ceiling"].to_string();
    assert_eq!(go(&host, Some(&ceiling))["ok"], true, "the ceiling itself is enough: {ceiling}");
    let call = service.calls()[0].clone();
    assert!(call.keeps_limit && call.max_output_tokens.is_some(), "{:?}", call.max_output_tokens);
    let less = Money::parse(&ceiling).unwrap().minus(Money::from_pico(1)).to_string();
    assert_eq!(go(&host, Some(&less))["error"]["code"], "E4101");
}

// The ceiling counts a usual answer. A limit above it pays for longer ones, and a cut answer says so.
#[test]
fn a_limit_with_room_allows_longer_answers() {
    let cut = Arc::new(
        FakeProvider::new(|_, sink| {
            sink.piece(r#"{"ok": true, "data": {"rationale": "it go"#);
            let mut end = complete();
            end.finish = Finish::CutOff;
            end.usage = Some(Usage::new(100, 10));
            Ok(end)
        })
        .with(|service| {
            let destination = Some(Destination { model: Some("m".to_owned()), address: None });
            (service.name, service.destination) = ("dear", destination);
        }),
    );
    let mut host = host(&cut);
    let module = random_modules::leaf("open-one", &mut SeededRandom::new(5));
    host.modules = Arc::new(NamedModules(BTreeMap::from([("bound-one".to_owned(), module)])));
    let ceiling = go(&host, Some("0"))["error"]["details"]["ceiling"].to_string();
    let near = go(&host, Some(&ceiling));
    assert_eq!(near["error"]["code"], "E2003", "{near}");
    assert!(near["error"]["suggestion"].as_str().unwrap().contains("Raise the cost limit"), "{near}");
    // A limit that pays for a hundred more output tokens, and one without end.
    let some = Money::parse(&ceiling).unwrap().plus(Money::parse("0.01").unwrap()).to_string();
    go(&host, Some(&some));
    go(&host, Some("10"));
    let limits: Vec<u64> = cut.calls().iter().filter_map(|call| call.max_output_tokens).collect();
    assert_eq!((limits[1], limits[2]), (limits[0] + 100, 4096), "{limits:?}");
}

#[test]
fn a_model_without_a_price_has_no_cost_and_is_not_asked_under_a_limit() {
    let service = service("unlisted");
    let host = host(&service);
    assert_eq!(go(&host, None)["meta"]["usage"].get("cost"), None);
    let refused = go(&host, Some("1000"));
    assert_eq!((&refused["error"]["code"], service.calls().len()), (&json!("E4101"), 1));
    let hint = refused["error"]["suggestion"].as_str().unwrap();
    assert!(hint.contains("`unlisted/m`") && hint.contains("`prices`"), "{hint}");
}

#[test]
fn models_on_this_machine_cost_nothing() {
    let here = Arc::into_inner(service("here")).unwrap().with(|service| service.stays_here = true);
    let service = Arc::new(here);
    let answer = go(&host(&service), Some("0"));
    assert_eq!((&answer["ok"], &answer["meta"]["usage"]["cost"]), (&json!(true), &json!(0)));
    assert_eq!(service.calls()[0].max_output_tokens, None, "they are held to nothing");
}

/// A ledger that stores every entry in memory.
#[derive(Default)]
struct BooksInMemory {
    entries: Mutex<BTreeMap<String, (String, Money)>>,
    broken: bool,
}

impl SpendingLedger for BooksInMemory {
    fn cover(
        &self,
        entry: &SpendingEntry,
        budget: &DayBudget,
        now: SystemTime,
    ) -> Result<Result<(), BudgetShort>, String> {
        if self.broken {
            return Err("the disk is full".to_owned());
        }
        self.entries.lock().unwrap().remove(&entry.id);
        let room = budget.room(entry.reserved, self.counted_spending(0, &entry.key, now)?);
        if room.is_ok() {
            self.entries.lock().unwrap().insert(entry.id.clone(), (entry.key.clone(), entry.reserved));
        }
        Ok(room)
    }

    fn settle(&self, id: &str, spent: Money) -> Result<(), String> {
        self.entries.lock().unwrap().get_mut(id).unwrap().1 = spent;
        Ok(())
    }

    fn counted_spending(&self, _: u64, key: &str, _: SystemTime) -> Result<(Money, Money), String> {
        let entries = self.entries.lock().unwrap();
        let of =
            |every: bool| entries.values().filter(|(of, _)| every || of == key).map(|(_, held)| *held).sum();
        Ok((of(true), of(false)))
    }
}

fn with_key(host: &Host, key: &str) -> Value {
    let mut request = RunRequest::new("bound-one", json!({ "text": "x" }));
    request.options.key = Some(key.to_owned());
    serde_json::to_value(poll_now(run(host, request, &mut NullSink))).unwrap()
}

#[test]
fn a_budget_of_the_day_is_used_up_by_what_runs_cost_and_not_by_what_they_could_have() {
    let service = service("dear");
    let mut host = host(&service);
    let ceiling = go(&host, Some("0"))["error"]["details"]["ceiling"].to_string();
    let (ceiling, each) = (Money::parse(&ceiling).unwrap(), Money::parse("0.00164").unwrap());
    assert!(ceiling > each.times(3), "{ceiling}");
    let books = Arc::new(BooksInMemory::default());
    let budget = DayBudget { per_day: Some(ceiling.plus(each.times(2))), per_key: Some(ceiling.plus(each)) };
    host.spending = Some(Spending { budget, ledger: Arc::clone(&books) as Arc<dyn SpendingLedger> });
    assert_eq!(with_key(&host, "ann")["ok"], true);
    assert_eq!(with_key(&host, "ann")["ok"], true);
    let short = with_key(&host, "ann");
    assert_eq!(
        (&short["error"]["code"], &short["error"]["details"]["limit_from"]),
        (&json!("E4101"), &json!("per_key"))
    );
    assert_eq!(short["error"]["recoverable"], true, "tomorrow there is room");
    let details = &short["error"]["details"];
    assert_eq!(
        (&details["spent"].to_string(), &details["reserved"].to_string()),
        (&each.times(2).to_string(), &"0".to_owned())
    );
    assert_eq!((details.get("kind"), details.get("retry_after_seconds")), (None, None));
    assert!(short["meta"]["explain"].as_str().unwrap().starts_with("Runtime refused"), "{short}");
    assert_eq!(with_key(&host, "ben")["ok"], true);
    let short = with_key(&host, "ben");
    assert_eq!(short["error"]["details"]["limit_from"], "per_day");
    assert_eq!(books.counted_spending(0, "ann", SystemTime::now()).unwrap(), (each.times(3), each.times(2)));
    assert_eq!(service.calls().len(), 3);
}

// Only the reservations of others stand in the way, so the caller should come back in a moment and not tomorrow.
#[test]
fn a_run_that_only_reservations_keep_out_is_told_to_come_back() {
    struct Reserved(Money);
    impl SpendingLedger for Reserved {
        fn cover(
            &self,
            entry: &SpendingEntry,
            budget: &DayBudget,
            _: SystemTime,
        ) -> Result<Result<(), BudgetShort>, String> {
            let counted = CountedSpending { spent: Money::ZERO, reserved: self.0 };
            Ok(budget.room(entry.reserved, (counted, counted)))
        }

        fn settle(&self, _: &str, _: Money) -> Result<(), String> {
            Ok(())
        }

        fn counted_spending(&self, _: u64, _: &str, _: SystemTime) -> Result<(Money, Money), String> {
            Ok((self.0, self.0))
        }
    }
    let service = service("dear");
    let mut host = host(&service);
    let ceiling = go(&host, Some("0"))["error"]["details"]["ceiling"].to_string();
    let ceiling = Money::parse(&ceiling).unwrap();
    let budget = DayBudget { per_day: None, per_key: Some(ceiling.times(2)) };
    host.spending = Some(Spending { budget, ledger: Arc::new(Reserved(ceiling.times(2))) });
    let refused = &with_key(&host, "ann")["error"];
    assert_eq!((&refused["code"], &refused["recoverable"]), (&json!("E4101"), &json!(true)));
    assert_eq!(refused["details"]["kind"], "reserved");
    assert_eq!(refused["details"]["retry_after_seconds"], 5);
    assert_eq!(refused["details"]["reserved"].to_string(), ceiling.times(2).to_string());
    assert!(refused["message"].as_str().unwrap().contains("are reserved by runs in flight"), "{refused}");
    let budget = DayBudget { per_day: None, per_key: Some(ceiling.minus(Money::from_pico(1))) };
    host.spending = Some(Spending { budget, ledger: Arc::new(Reserved(Money::ZERO)) });
    let refused = &with_key(&host, "ann")["error"];
    assert_eq!((&refused["recoverable"], refused["details"].get("kind")), (&json!(false), None));
    assert!(service.calls().is_empty());
}

#[test]
fn books_that_cannot_be_kept_are_a_reason_not_to_spend() {
    let service = service("dear");
    let mut host = host(&service);
    let ledger = Arc::new(BooksInMemory { broken: true, ..BooksInMemory::default() });
    let budget = DayBudget { per_day: Some(Money::MAX), per_key: None };
    host.spending = Some(Spending { budget, ledger });
    let refused = with_key(&host, "ann");
    assert_eq!((&refused["error"]["code"], service.calls().len()), (&json!("E4101"), 0));
    assert!(refused["error"]["message"].as_str().unwrap().ends_with(": the disk is full"), "{refused}");
}
