//! The spending of budgets: several runs and processes share a budget, and a process that dies loses nothing.

use std::time::{Duration, SystemTime};

use cognitive_contract::money::Money;
use cognitive_ports::spending::{DayBudget, SpendingEntry, SpendingLedger};
use cognitive_store::Store;

use crate::child::child;
use crate::common::{Home, at, on_every_backend, where_others_find_it};

/// A day that no other test uses.
pub const DAY: u64 = 20_000;

fn cents(amount: u64) -> Money {
    Money::from_pico(amount * 10_000_000_000)
}

fn entry(id: &str, key: &str, reserved: u64, sent: u64, until: SystemTime) -> SpendingEntry {
    SpendingEntry {
        id: id.to_owned(),
        day: DAY,
        key: key.to_owned(),
        reserved: cents(reserved),
        sent: cents(sent),
        until,
    }
}

fn budget(per_day: u64, per_key: Option<u64>) -> DayBudget {
    DayBudget { per_day: Some(cents(per_day)), per_key: per_key.map(cents) }
}

on_every_backend! {
#[test]
fn what_is_reserved_is_taken_until_it_is_settled(home: &Home) {
    let (store, budget) = (home.open(), budget(100, Some(60)));
    let cover =
        |id, key, reserved| store.cover(&entry(id, key, reserved, 0, at(60)), &budget, at(0)).unwrap();
    assert_eq!(cover("a", "ann", 50), Ok(()));
    assert_eq!(cover("b", "ben", 40), Ok(()));
    assert_eq!(cover("a2", "ann", 10), Ok(()), "both budgets are used up to the last cent");
    let short = cover("c", "ben", 1).unwrap_err();
    assert_eq!((short.budget, short.left), ("per_day", Money::ZERO));
    store.settle("a", cents(5)).unwrap();
    assert_eq!(store.counted_spending(DAY, "ann", at(0)).unwrap(), (cents(55), cents(15)));
    let short = cover("d", "ann", 46).unwrap_err();
    assert_eq!((short.budget, short.left), ("per_day", cents(45)));
    assert_eq!(cover("d", "ann", 45).unwrap(), ());
    let short = cover("e", "ann", 1).unwrap_err();
    assert_eq!(short.budget, "per_day");
    assert_eq!(store.counted_spending(DAY + 1, "ann", at(0)).unwrap(), (Money::ZERO, Money::ZERO), "another day");
}
}

on_every_backend! {
#[test]
fn a_run_takes_the_place_of_its_own_entry_and_one_that_died_keeps_what_it_may_have_sent(home: &Home) {
    let (store, budget) = (home.open(), budget(100, None));
    let cover =
        |reserved, sent, now| store.cover(&entry("a", "", reserved, sent, at(60)), &budget, at(now)).unwrap();
    assert_eq!(cover(90, 0, 0), Ok(()));
    assert_eq!(cover(95, 30, 10), Ok(()), "its own reservation is no reason to refuse it");
    assert!(cover(101, 30, 10).is_err());
    assert_eq!(store.counted_spending(DAY, "", at(59)).unwrap().0, cents(95));
    // The run never reported again.
    assert_eq!(store.counted_spending(DAY, "", at(60)).unwrap().0, cents(30));
    store.settle("nobody", cents(5)).unwrap();
    assert_eq!(store.counted_spending(DAY, "", at(60)).unwrap().0, cents(30));
}
}

on_every_backend! {
#[test]
fn days_that_are_long_over_go(home: &Home) {
    let (store, budget) = (home.open(), budget(100, None));
    let on = |day: u64| SpendingEntry { day, ..entry(&day.to_string(), "", 7, 0, at(60)) };
    for day in [DAY, DAY + 31, DAY + 32] {
        store.cover(&on(day), &budget, at(0)).unwrap().unwrap();
    }
    let left = |day| store.counted_spending(day, "", at(0)).unwrap().0;
    assert_eq!([left(DAY), left(DAY + 31), left(DAY + 32)], [Money::ZERO, cents(7), cents(7)]);
}
}

where_others_find_it! {
#[test]
fn processes_that_spend_at_once_never_take_the_same_room(home: &Home) {
    let path = home.path();
    let mut helpers = ["a", "b", "c"].map(|name| child(&format!("spend {name}"), path));
    for helper in &mut helpers {
        assert_eq!(helper.report().as_deref(), Some("ready"));
    }
    helpers.iter_mut().for_each(crate::child::Helper::go);
    let covered: usize = helpers.iter_mut().map(|helper| helper.rest().len()).sum();
    assert_eq!(covered, 100, "each of a hundred cents once");
    let counted = Store::open(path).unwrap().counted_spending(DAY, "", at(0)).unwrap();
    assert_eq!(counted.0, cents(100));
}
}

where_others_find_it! {
#[test]
fn a_process_that_is_killed_has_put_down_what_it_was_told_it_may_spend(home: &Home) {
    let path = home.path();
    let mut helper = child("spend k", path);
    helper.go();
    let mut told = Vec::new();
    while told.len() < 20 {
        told.push(helper.report().unwrap());
    }
    told.extend(helper.kill());
    let told = told.iter().filter(|line| *line != "ready").count() as u64;
    let counted = Store::open(path).unwrap().counted_spending(DAY, "", at(0)).unwrap().0;
    assert!(counted >= cents(told), "{counted} of {told} cents");
}
}

/// Takes one cent at a time until the budget is used up, and reports each.
pub fn spend(name: &str, path: &std::path::Path, mut say: impl FnMut(&str)) {
    let store = Store::open(path).unwrap();
    for number in 0.. {
        let entry = entry(&format!("{name}-{number}"), "", 1, 1, at(0) + Duration::from_hours(1));
        if store.cover(&entry, &budget(100, None), at(0)).unwrap().is_err() {
            break;
        }
        say(&number.to_string());
    }
}
