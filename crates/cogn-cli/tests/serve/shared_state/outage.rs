//! PostgreSQL is killed or hangs under running servers and recovers: each port behaves as documented, and acknowledged
//! data is still there.

use cognitive_testkit::{TestPostgres, wait_until};
use serde_json::{Value, json};

use super::service::{Home, Server, Service, answer};

/// Three servers on one database, each with another need of it.
struct World {
    postgres: TestPostgres,
    service: Service,
    home: Home,
    _others: [Home; 2],
    /// Runs need not be recorded; each is queued for review.
    lenient: Server,
    /// Runs must be recorded.
    strict: Server,
    /// Runs under a budget.
    frugal: Server,
}

impl World {
    fn start() -> Option<Self> {
        let postgres = TestPostgres::durable()?;
        let (address, service) = (postgres.database(), Service::start());
        let rules = "review: {rules: [{when: 'confidence > 0'}]}";
        let prices = "prices: {as_of: '2026-01-01', models: {openai/stub: {input: 1, output: 1}}}";
        let home = Home::new(&format!("audit: {{path: '{address}'}}\n{rules}\n")).with_memory();
        let others = [
            format!("audit: {{path: '{address}', required: true}}\n"),
            format!("audit: {{path: '{address}'}}\nbudget: {{per_day: 1000}}\n{prices}\n"),
        ]
        .map(|config| Home::new(&config));
        let [lenient, strict, frugal] =
            [&home, &others[0], &others[1]].map(|home| Server::start(home, &service, &["--rate", "0"]));
        Some(Self { postgres, service, home, _others: others, lenient, strict, frugal })
    }

    /// Creates acknowledged data: a record, a decision, a cached answer.
    fn before(&self) -> String {
        let (status, recorded) = run(&self.strict, "talk", "strict-before");
        assert_eq!(status, 200, "{recorded}");
        assert_eq!(run(&self.frugal, "talk", "frugal-before").0, 200);
        let (status, kept) = run(&self.lenient, "memo", "kept");
        assert!(status == 200 && kept.contains("review 1"), "{kept}");
        let decided = self.home.cogn(&["review", "approve", "1", "--by", "ann"]);
        assert!(decided.status.success(), "{}", String::from_utf8_lossy(&decided.stderr));
        recorded
    }

    /// Checks the behaviour of each server while the database is down.
    fn meanwhile(&self) {
        let (status, said) = run(&self.lenient, "memo", "lenient-meanwhile");
        assert_eq!((status, self.service.times("lenient-meanwhile")), (200, 1), "{said}");
        for left_out in ["stored context cannot be read", "the answer is not cached", "could not be queued"] {
            assert!(said.contains(left_out), "{left_out}: {said}");
        }
        self.lenient.wait_for("was not recorded");
        let (status, said) = run(&self.strict, "talk", "strict-meanwhile");
        assert!(status >= 400 && said.contains("record"), "{said}");
        let (status, said) = run(&self.frugal, "talk", "frugal-meanwhile");
        assert!(status >= 400 && said.contains("E4101") && said.contains("no model was called"), "{said}");
        for refused in ["strict-meanwhile", "frugal-meanwhile"] {
            assert_eq!(self.service.times(refused), 0, "{refused}");
        }
        let decided = self.home.cogn(&["review", "reject", "1"]);
        let said = String::from_utf8_lossy(&decided.stderr).into_owned();
        assert!(!decided.status.success() && said.contains("postgres://"), "{said}");
        let mut serve =
            self.home.command(&["serve", "--port", "0", "--keys", "keys", "--provider", "openai"]);
        let started = serve.args(["--model", "stub", "--base-url", &self.service.url]).output().unwrap();
        let said = String::from_utf8_lossy(&started.stderr).into_owned();
        assert!(!started.status.success() && said.contains("runs cannot be recorded"), "{said}");
    }

    /// Checks that everything acknowledged before the outage exists after recovery.
    fn after(self, recorded: &str) {
        for (server, name) in [(&self.strict, "strict-after"), (&self.frugal, "frugal-after")] {
            until_taken(server, name);
        }
        // This server answers during an outage, too; its warnings end when it uses the database again.
        wait_until("a run without a warning", || {
            !run(&self.lenient, "memo", "lenient-after").1.contains("cannot be read")
        });
        let (status, kept) = run(&self.lenient, "memo", "kept");
        assert!(status == 200 && kept.contains("CACHED"), "{kept}");
        assert_eq!(self.service.times("kept"), 1, "the answer was kept, and no model was asked again");
        let decided = self.home.cogn(&["review", "list", "--decided", "--json"]);
        assert!(String::from_utf8_lossy(&decided.stdout).contains("\"ann\""), "{decided:?}");
        for server in [self.lenient, self.strict, self.frugal] {
            server.stop();
        }
        let verified = self.home.verified();
        assert_eq!(verified["breaches"], json!([]), "{verified}");
        let records = self.home.records();
        let is_there = |record: &Value| {
            record["event"] == "call"
                && record["trace_id"].as_str().is_some_and(|trace| recorded.contains(trace))
        };
        assert!(records.iter().any(is_there), "{records:?}");
        let decisions = records.iter().filter(|record| record["event"] == "review").count();
        assert_eq!(decisions, 1, "{records:?}");
    }
}

fn run(server: &Server, module: &str, text: &str) -> (u16, String) {
    answer(&server.address, module, &json!({ "text": format!("<{text}>") }))
}

/// Retries runs until the server uses its database again, which it tries after a second.
fn until_taken(server: &Server, text: &str) {
    wait_until("a run that is taken", || run(server, "talk", text).0 == 200);
}

#[test]
fn a_database_that_is_killed_and_comes_back_has_all_that_was_acknowledged() {
    let Some(world) = World::start() else { return };
    let recorded = world.before();
    world.postgres.kill();
    world.meanwhile();
    world.postgres.start_again();
    world.after(&recorded);
}

#[test]
fn a_database_that_stands_still_and_goes_on_has_all_that_was_acknowledged() {
    let Some(world) = World::start() else { return };
    let recorded = world.before();
    world.postgres.freeze();
    world.meanwhile();
    world.postgres.thaw();
    world.after(&recorded);
}
