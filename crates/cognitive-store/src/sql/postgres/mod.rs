//! A PostgreSQL server shared by several processes. A few connections are opened on demand, each used by one piece of
//! work at a time. A separate thread drives them, so that callers can wait in any thread. Waits for connections and
//! statements are bounded. After a failure, callers get the same error at once until a probe reaches the server.

mod address;
mod schema;
mod session;
mod tls;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::lock::Lock;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, NoTls};

use self::address::ServerAddress;
use self::session::{PgSession, problem_of, wait};
use self::tls::Tls;
use super::{SqlAccess, SqlSession, SqlValue, first, values};
use crate::error::Problem;
use crate::gate::ConnectionGate;

/// The most connections per process. Servers allow about a hundred in total by default.
const CONNECTIONS: usize = 8;
/// The pause between the first two probes of a server that could not be reached or did not answer. Callers do not wait
/// for a probe: otherwise a run would wait for the timeout of a dead server again and again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two probes. It doubles after each, so that a server which starts slowly gets few of them.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// The time that a probe may take.
const PROBE: Duration = Duration::from_secs(5);
/// The lock for creating and migrating tables.
const MIGRATION: i32 = 0;
/// The first half of all lock ids: `cogn` in ASCII.
const LOCKS: i32 = 0x636f_676e;
/// The time limit for a statement in a snapshot, which may read everything, or in a migration.
const LONG: Duration = Duration::from_mins(10);

/// A connection pool for one server.
#[derive(Debug)]
pub(crate) struct PgServer {
    address: ServerAddress,
    /// Taken only on drop.
    driver: Option<Runtime>,
    gate: ConnectionGate,
    idle: Lock<Vec<Arc<Client>>>,
    /// The reason for which the server is not contacted, except by the probe that clears it.
    outage: Arc<Lock<Option<Problem>>>,
}

impl PgServer {
    /// Connects to a server and migrates its tables.
    pub(crate) fn open(place: &Path, password: Option<&str>, patience: Duration) -> Result<Self, Problem> {
        let address = ServerAddress::read(place, password, patience)?;
        let driver = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("postgres")
            .enable_all()
            .build()
            .map_err(|error| Problem::Failed(format!("cannot start a thread: {error}")))?;
        let server = Self {
            address,
            driver: Some(driver),
            gate: ConnectionGate::new(CONNECTIONS),
            idle: Lock::default(),
            outage: Arc::default(),
        };
        server.migrate_up(patience)?;
        Ok(server)
    }

    /// Returns the address without secrets.
    pub(crate) fn display_address(&self) -> PathBuf {
        PathBuf::from(&self.address.shown)
    }

    /// Runs a piece of work in one transaction, with its locks.
    pub(crate) fn work<T>(
        &self,
        access: SqlAccess,
        patience: Duration,
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        // Even a call without patience needs one round trip.
        let limit = patience.max(SHORT);
        let begin = match access {
            SqlAccess::Look => opening("", limit, &[]),
            SqlAccess::Moment => opening(" ISOLATION LEVEL REPEATABLE READ, READ ONLY", LONG, &[]),
            SqlAccess::Change(areas) | SqlAccess::Keep(areas) => {
                let locks: Vec<i32> = areas.iter().map(|area| *area as i32).collect();
                opening("", limit, &locks)
            }
        };
        let limit = if matches!(access, SqlAccess::Moment) { LONG } else { limit };
        self.transact(&begin, patience, limit, work)
    }

    fn transact<T>(
        &self,
        begin: &str,
        patience: Duration,
        limit: Duration,
        work: impl FnOnce(&mut dyn SqlSession) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let _turn = self.gate.enter(patience).ok_or(Problem::Busy(patience))?;
        let driver = self.driver()?.handle();
        let client = self.connection(patience.max(SHORT))?;
        // A connection that is not returned is closed, which aborts its transaction.
        let mut session = PgSession::begin(client, driver, limit + SLACK, begin);
        let done = work(&mut session).and_then(|value| session.batch("COMMIT").map(|()| value));
        match &done {
            Ok(_) => self.return_client(session.into_client()),
            Err(problem @ (Problem::Unreachable(_) | Problem::Silent(_))) => self.pause(problem),
            Err(_) => {
                if session.abandon("ROLLBACK").is_ok() {
                    self.return_client(session.into_client());
                }
            }
        }
        done
    }

    fn driver(&self) -> Result<&Runtime, Problem> {
        self.driver.as_ref().ok_or_else(|| Problem::Failed("the database is closed".to_owned()))
    }

    fn connection(&self, limit: Duration) -> Result<Arc<Client>, Problem> {
        let idle = self.idle.lock().pop();
        if let Some(client) = idle.filter(|client| !client.is_closed()) {
            return Ok(client);
        }
        if let Some(problem) = self.outage.lock().clone() {
            return Err(problem);
        }
        let driver = self.driver()?.handle();
        let work = connect(self.address.config.clone(), driver.clone());
        let connected = match wait(driver, limit, work) {
            Ok(connected) => connected.map(Arc::new).map_err(|error| error.into_problem(limit)),
            Err(problem) => Err(problem),
        };
        if let Err(problem) = &connected {
            self.pause(problem);
        }
        connected
    }

    fn return_client(&self, client: Arc<Client>) {
        self.idle.lock().push(client);
    }

    /// Stops contact with the server until a probe reaches it, and drops the idle connections, which have probably
    /// failed too.
    fn pause(&self, problem: &Problem) {
        self.idle.lock().clear();
        let before = self.outage.lock().replace(problem.clone());
        // One probe for each outage. If the driver is gone, so is the store.
        if let (None, Ok(driver)) = (before, self.driver()) {
            let driver = driver.handle();
            let (outage, config) = (Arc::clone(&self.outage), self.address.config.clone());
            driver.spawn(probe_until_reached(outage, config, driver.clone()));
        }
    }

    /// Runs the migration steps that the database has not run. With concurrent processes, the first one migrates.
    fn migrate_up(&self, patience: Duration) -> Result<(), Problem> {
        let version = format!("SELECT version FROM {}.cogn_schema", schema::SCHEMA);
        let known = schema::KNOWN;
        let seen = self.transact("BEGIN", patience, patience, |session| {
            let exists = first(
                session,
                "SELECT to_regclass(?1) IS NOT NULL",
                &values![format!("{}.cogn_schema", schema::SCHEMA)],
                |row| row.is_true(0),
            )?;
            if exists != Some(true) {
                return Ok(None);
            }
            first(session, &version, &[], |row| row.integer(0))
        })?;
        match seen {
            Some(found) if found == known => return Ok(()),
            Some(found) if found > known => return Err(Problem::Newer { found, known }),
            _ => {}
        }
        // The schema itself may not exist yet.
        let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({LOCKS}, {MIGRATION})");
        self.transact(&begin, patience, LONG, |session| {
            let prepare = format!(
                "DO $do$ BEGIN IF to_regnamespace('{0}') IS NULL THEN CREATE SCHEMA {0}; END IF; END $do$",
                schema::SCHEMA
            );
            session.execute(&prepare, &[])?;
            session.execute(&format!("SET LOCAL search_path = {}", schema::SCHEMA), &[])?;
            session.execute("CREATE TABLE IF NOT EXISTS cogn_schema (version BIGINT NOT NULL)", &[])?;
            let seen = first(session, "SELECT version FROM cogn_schema", &[], |row| row.integer(0))?;
            let seen = seen.unwrap_or(0);
            if seen > known {
                return Err(Problem::Newer { found: seen, known });
            }
            for step in schema::STEPS.iter().skip(usize::try_from(seen).unwrap_or(usize::MAX)) {
                for statement in statements(step) {
                    session.execute(statement, &[])?;
                }
            }
            session.execute("DELETE FROM cogn_schema", &[])?;
            session.execute("INSERT INTO cogn_schema VALUES (?1)", &[SqlValue::Integer(known)]).map(drop)
        })
    }
}

/// A connection that could not be opened.
enum ConnectError {
    Tls(String),
    Server(tokio_postgres::Error),
}

impl ConnectError {
    fn into_problem(self, limit: Duration) -> Problem {
        match self {
            Self::Tls(why) => Problem::Failed(why),
            Self::Server(error) => problem_of(&error, limit),
        }
    }
}

/// Opens a connection, which `driver` then drives.
async fn connect(config: tokio_postgres::Config, driver: Handle) -> Result<Client, ConnectError> {
    if config.get_ssl_mode() == SslMode::Disable {
        let (client, connection) = config.connect(NoTls).await.map_err(ConnectError::Server)?;
        // The user of a connection gets the reason for its end.
        driver.spawn(async move { drop(connection.await) });
        return Ok(client);
    }
    let tls = Tls::with_system_roots().map_err(|error| ConnectError::Tls(error.to_string()))?;
    let (client, connection) = config.connect(tls).await.map_err(ConnectError::Server)?;
    driver.spawn(async move { drop(connection.await) });
    Ok(client)
}

/// Tries to reach the server until it answers, and then lets all callers contact it again.
async fn probe_until_reached(
    outage: Arc<Lock<Option<Problem>>>,
    config: tokio_postgres::Config,
    driver: Handle,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        // The first probe is sent at once: often only one connection broke, and the server is well.
        let answer = async {
            let client = connect(config.clone(), driver.clone()).await.ok()?;
            client.batch_execute("SELECT 1").await.ok()
        };
        if tokio::time::timeout(PROBE, answer).await.ok().flatten().is_some() {
            *outage.lock() = None;
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The server's timeout is this much shorter than ours, because its error gives the reason.
const SLACK: Duration = Duration::from_millis(250);
/// The shortest time limit, even for calls without patience.
const SHORT: Duration = Duration::from_millis(250);

/// Returns the start of a transaction, as one message to save round trips.
fn opening(mode: &str, limit: Duration, locks: &[i32]) -> String {
    let opened = format!(
        "BEGIN{mode}; SET LOCAL search_path = {}; SET LOCAL statement_timeout = {}",
        schema::SCHEMA,
        limit.as_millis()
    );
    let locked = locks.iter().map(|lock| format!("; SELECT pg_advisory_xact_lock({LOCKS}, {lock})"));
    locked.fold(opened, |sql, lock| sql + &lock)
}

/// Splits a step into statements at semicolons at line ends. The function after the SQL comment stays in one piece.
fn statements(step: &str) -> Vec<&str> {
    let (plain, function) = step
        .split_once("-- ")
        .map_or((step, None), |(plain, rest)| (plain, rest.split_once('\n').map(|(_, function)| function)));
    let mut found: Vec<&str> = plain.split(";\n").map(str::trim).filter(|text| !text.is_empty()).collect();
    found.extend(function.map(|text| text.trim().trim_end_matches(';')));
    found
}

impl Drop for PgServer {
    fn drop(&mut self) {
        self.idle.lock().clear();
        if let Some(driver) = self.driver.take() {
            // A runtime must not be dropped with a blocking wait inside a task of another one.
            driver.shutdown_background();
        }
    }
}
