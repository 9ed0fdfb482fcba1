//! Records of many runs in one transaction: a process or a database server that is killed in the middle loses no call
//! that was acknowledged, and the settings that decide about durability.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

use cognitive_contract::ports::{AuditLog, AuditRecord};
use cognitive_store::{Background, Filter, Store};
use cognitive_testkit::TestPostgres;
use rusqlite::Connection;
use serde_json::json;

use crate::child::child;
use crate::common::{Home, good, place, server};
use crate::processes::is_sound;
use crate::review::block_on;

/// The runs in flight in the process that is killed.
const IN_FLIGHT: usize = 32;
/// The rounds on one store; later ones would only verify more records.
const ROUNDS_OF_A_STORE: usize = 25;

/// Records calls of many runs at once, for ever, and reports each call that is acknowledged.
pub fn commit_for_ever(name: &str, path: &Path, say: fn(&str)) {
    let store: Arc<dyn AuditLog> = Arc::new(Store::open(path).unwrap());
    let background = Background::new(store, |_| {}).unwrap();
    thread::scope(|scope| {
        for run in 0..IN_FLIGHT {
            let background = &background;
            scope.spawn(move || {
                for number in 0.. {
                    let trace = format!("{name}-{run}-{number}");
                    let mut call = AuditRecord::call(SystemTime::now(), &trace, "m", json!({ "attempt": 1 }));
                    call.key = Some(["ann", "bob"][run % 2].to_owned());
                    if block_on(background.commit(call.clone())).is_err() {
                        return;
                    }
                    say(&trace);
                    let mut end = good(&trace, "m");
                    end.key = call.key;
                    let _ = background.submit(end);
                }
            });
        }
    });
}

/// How a round ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// The process is killed.
    Process,
    /// The database server is stopped at once, as by a power failure, and started again.
    Server,
}

/// Kills a process while it records calls, and looks whether all that it acknowledged are there.
fn kill_once(round: usize, path: &Path, end: End, postgres: Option<&TestPostgres>) {
    let mut helper = child(&format!("commit-for-ever {round}"), path);
    helper.go();
    let mut acknowledged = Vec::new();
    // From the first transactions on.
    while acknowledged.len() < 2 + round % ROUNDS_OF_A_STORE * 8 {
        acknowledged.push(helper.report().unwrap());
    }
    if let (End::Server, Some(postgres)) = (end, postgres) {
        postgres.kill();
    }
    acknowledged.extend(helper.kill());
    if let (End::Server, Some(postgres)) = (end, postgres) {
        postgres.start_again();
    }
    assert!(is_sound(path), "round {round}");
    let store = Store::open(path).unwrap();
    let found = store.verify(&[]).unwrap();
    assert!(found.is_whole(), "round {round}: {found:?}");
    let calls = Filter { event: Some("call".to_owned()), ..Filter::default() };
    let there: HashSet<String> = store.list(&calls).unwrap().into_iter().map(|row| row.trace_id).collect();
    for trace in acknowledged.iter().filter(|trace| *trace != "ready") {
        assert!(there.contains(trace), "round {round}: {trace} was acknowledged");
    }
}

fn kill_on_sqlite(rounds: usize) {
    for first in (0..rounds).step_by(ROUNDS_OF_A_STORE) {
        let (_dir, path) = place();
        for round in first..rounds.min(first + ROUNDS_OF_A_STORE) {
            kill_once(round, &path, End::Process, None);
        }
    }
}

/// Every `every`th round stops the server itself.
fn kill_on_postgres(rounds: usize, every: usize) {
    let Some(postgres) = TestPostgres::durable() else { return };
    for first in (0..rounds).step_by(ROUNDS_OF_A_STORE) {
        let address = postgres.database();
        for round in first..rounds.min(first + ROUNDS_OF_A_STORE) {
            let end = if round % every == every - 1 { End::Server } else { End::Process };
            kill_once(round, Path::new(&address), end, Some(&postgres));
        }
    }
}

#[test]
fn a_kill_during_a_group_commit_loses_no_acknowledged_call() {
    kill_on_sqlite(10);
}

#[test]
fn a_kill_of_a_server_or_its_client_loses_no_acknowledged_call() {
    kill_on_postgres(6, 3);
}

// The same at the scale at which rare moments are met. `benches/README.md` names the command.
#[test]
#[ignore = "takes minutes: 1,000 kills with a file, 200 with PostgreSQL, 50 of them of the server"]
fn thousands_of_kills_lose_no_acknowledged_call() {
    kill_on_sqlite(1_000);
    kill_on_postgres(200, 4);
}

// Speed must not come from weaker durability: a file is synced at checkpoints, a server before each acknowledgement.
#[test]
fn the_settings_of_durability_are_the_published_ones() {
    let (_dir, path) = place();
    let store = Store::open(&path).unwrap();
    store.record(&good("t", "m")).unwrap();
    let raw = Connection::open(&path).unwrap();
    let mode: String = raw.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    let (Some(home), Some(server)) = (Home::on_postgres(), server()) else { return };
    let store = home.open();
    let name = TestPostgres::name_of(home.path().to_str().unwrap());
    let notes = "SET search_path = cogn; CREATE TABLE seen (setting TEXT);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO cogn.seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;
        CREATE TRIGGER note BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION note()";
    server.sql(name, notes);
    store.record(&good("t", "m")).unwrap();
    store.record_all(&[good("u", "m"), good("v", "m")]).into_iter().for_each(Result::unwrap);
    assert_eq!(server.sql(name, "SELECT DISTINCT setting FROM cogn.seen"), "on");
}
