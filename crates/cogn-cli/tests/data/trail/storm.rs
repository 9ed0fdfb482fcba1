//! A thousand runs, through servers and as processes; a third of them are disconnected, killed or cut off.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::fixture::{Act, Home, Server, Service, ask, signal};

/// The runs per server, the number of servers, and the number of runs in separate processes.
const RUNS: usize = 80;
const SERVERS: usize = 12;
const PROCESSES: usize = 40;
/// The number of concurrent clients.
const CLIENTS: usize = 16;

/// Returns pseudorandom numbers that are the same in every run.
fn chance(seed: usize) -> u64 {
    let mut state = (seed as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// Returns the fate of a run: two thirds are answered.
fn fate(number: usize) -> Act {
    match chance(number) % 6 {
        0 => Act::Hold,
        1 => Act::Cut,
        _ => Act::Answer,
    }
}

/// Returns the number of a run as the trace id that its client sends.
fn trace(number: usize) -> String {
    format!("{:032x}", 0xabc_0000 + number)
}

/// Sends one run to a server. If the service holds it, the client disconnects once it was requested.
fn client(address: &str, number: usize, service: &Service) {
    let text = format!("run-{number}");
    let header = format!("traceparent: 00-{}-00000000000000a1-01\r\n", trace(number));
    let streams = if number.is_multiple_of(4) { "accept: application/x-ndjson\r\n" } else { "" };
    let Ok(mut stream) = ask(address, &(header + streams), &json!({ "text": format!("<{text}>") })) else {
        return;
    };
    if fate(number) == Act::Hold {
        if service.was_asked(&text) {
            drop(stream);
            service.was_left(&text);
        }
        return;
    }
    let _ = stream.read_to_end(&mut Vec::new());
}

/// Runs one server with many clients. Every third server is killed at a random request; the others are stopped when all
/// clients have finished.
fn round(home: &Home, service: &Service, round: usize) -> bool {
    let server = Server::start(home, service, &["--grace", "0"]);
    let (first, address, mut server) = (round * RUNS, server.address.clone(), Some(server));
    let (next, before) = (AtomicUsize::new(0), service.asked().values().sum::<usize>());
    let is_killed = round % 3 == 2;
    service.over(false);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= RUNS {
                        break;
                    }
                    client(&address, first + number, service);
                }
            });
        }
        if is_killed {
            let moment = 10 + usize::try_from(chance(round)).unwrap_or(0) % (RUNS - 20);
            service.were_asked(before + moment);
            drop(server.take());
            service.over(true);
        }
    });
    if let Some(server) = server {
        server.stop();
    }
    is_killed
}

/// Runs a process. If the service holds its call, it gets a signal.
fn process(home: &Home, number: usize, service: &Service) {
    let text = format!("run-{number}");
    let child = home.run(service, &format!("<{text}>"), &text);
    if fate(number) == Act::Hold {
        assert!(service.was_asked(&text));
        let name = match number % 4 {
            0 => "TERM",
            1 => "HUP",
            2 => "INT",
            _ => "KILL",
        };
        signal(&child, name);
    }
    child.wait_with_output().unwrap();
}

/// Groups the records by run: the number in the trace id, or the user.
fn by_run(records: &[Value]) -> BTreeMap<usize, Vec<&Value>> {
    let mut found: BTreeMap<usize, Vec<&Value>> = BTreeMap::new();
    for record in records {
        let user = record["user"].as_str().and_then(|user| user.strip_prefix("run-")?.parse().ok());
        let trace = || usize::from_str_radix(record["trace_id"].as_str()?, 16).ok()?.checked_sub(0xabc_0000);
        let Some(number) = user.or_else(trace) else { panic!("{record}") };
        found.entry(number).or_default().push(record);
    }
    found
}

// Every call that the service received has its record, even if a client disconnected, was killed or was cut off.
// The other runs have an end record, and the chain is intact.
#[test]
fn a_thousand_runs_and_no_call_without_its_record() {
    let home = Home::new("");
    let service = Service::start(|text| fate(text.strip_prefix("run-").unwrap().parse().unwrap()));
    let mut killed = BTreeSet::new();
    for number in 0..SERVERS {
        if round(&home, &service, number) {
            killed.extend(number * RUNS..(number + 1) * RUNS);
        }
    }
    service.over(false);
    let first = SERVERS * RUNS;
    for number in first..first + PROCESSES {
        process(&home, number, &service);
        if fate(number) == Act::Hold && number % 4 == 3 {
            killed.insert(number);
        }
    }
    let (asked, records) = (service.asked(), home.records());
    let by_run = by_run(&records);
    let is = |event: &'static str| move |record: &&&Value| record["event"] == event;
    for (text, count) in &asked {
        let number: usize = text.strip_prefix("run-").unwrap().parse().unwrap();
        let of_run = by_run.get(&number).cloned().unwrap_or_default();
        let calls = of_run.iter().filter(is("call")).count();
        assert!(calls >= *count, "{text} was asked {count} times, {calls} are recorded");
        let ends = of_run.iter().filter(is("run")).count();
        assert!(ends == 1 || (ends == 0 && killed.contains(&number)), "{text} has {ends} ends: {of_run:?}");
        for call in of_run.iter().filter(is("call")) {
            assert_eq!(call["outcome"], if ends == 1 { "asked" } else { "unfinished" }, "{text}");
            assert_eq!(call["receipt"]["address"], format!("{}/chat/completions", service.url));
            assert_eq!(
                (&call["model"], &call["receipt"]["attempt"].is_u64()),
                (&json!("openai/stub"), &true)
            );
        }
        if fate(number) == Act::Hold && ends == 1 {
            let end = of_run.iter().find(is("run")).unwrap();
            assert_eq!(
                (&end["code"], &end["receipt"]["end"]),
                (&json!("E2010"), &json!("cancelled")),
                "{end}"
            );
        }
    }
    let cut = asked.keys().filter(|text| fate(text[4..].parse().unwrap()) != Act::Answer).count();
    assert!(asked.len() >= 800 && cut >= 230, "{} were asked, {cut} of them cut", asked.len());
    let (is_whole, found) = home.verified();
    assert!(is_whole, "{found}");
    assert_eq!(found["records"], records.len());
    let unfinished = records.iter().filter(|record| record["outcome"] == "unfinished").count();
    assert!(unfinished > 0, "a server was killed while it asked");
    let stats: Value = serde_json::from_slice(&home.cogn(&["audit", "stats", "--json"]).stdout).unwrap();
    assert!(stats["total"]["unfinished"].as_u64().unwrap() > 0, "{stats}");
    let listed = String::from_utf8(home.cogn(&["audit", "list", "--limit", "5000"]).stdout).unwrap();
    assert!(listed.contains(" unfinished "), "{listed}");
}
