//! Real database servers for tests, from the system's own packages: PostgreSQL and Redis, each on a socket in a
//! separate folder. They stop when the test ends, even if it is killed. Finds the programs in `COGN_TEST_POSTGRES`
//! (the folder with `initdb`) and `COGN_TEST_REDIS` (the program), else where Debian installs them; installs nothing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fs, process, thread};

use crate::platform;
use crate::{Lack, skip};

/// The server refuses to run as root, so root runs it as another user. It runs while the input of this script is
/// open. Each line of input restarts it on its existing data.
const POSTGRES: &str = r#"
as=""
if [ "$(id -u)" = 0 ]; then chown 65534:65534 "$1"; as="setpriv --reuid=65534 --regid=65534 --clear-groups"; fi
$as "$0/initdb" -D "$1/data" -U cogn -A trust -E UTF8 --locale=C --no-sync >"$1/initdb.log" 2>&1 || { cat "$1/initdb.log"; exit 1; }
cd "$1"
serve() {
    $as "$0/postgres" -D "$1/data" -k "$1" -c listen_addresses= -c fsync="$2" -c max_connections=200 \
        -c log_destination=stderr -c logging_collector=off 2>&1 & served=$!
    echo "pid $served"
}
serve "$1" "$2"
while read -r _; do wait "$served"; serve "$1" "$2"; done
kill -CONT "$served" $(cat "/proc/$served/task/$served/children" 2>/dev/null) 2>/dev/null
kill -QUIT "$served"; wait; rm -rf "$1"
"#;

/// The same for Redis.
const REDIS: &str = r#"
"$0" --port 0 --unixsocket "$1/redis.sock" --save "" --appendonly no --dir "$1" 2>&1 & served=$!
echo "pid $served"
cat >/dev/null
kill -CONT "$served"; kill -KILL "$served"; wait; rm -rf "$1"
"#;

/// A running server. Stops when it is dropped.
struct ServerGuard {
    folder: PathBuf,
    pid: Arc<AtomicU32>,
    guardian: Child,
    stdin: Option<ChildStdin>,
    /// Receives a message each time the server is ready.
    ready: Mutex<Receiver<()>>,
}

impl ServerGuard {
    #[expect(clippy::expect_used, reason = "in a test, a panic is the report")]
    fn start(script: &str, program: &Path, option: &str, ready: &'static str) -> Self {
        let folder = new_folder();
        let mut guardian = Command::new("sh")
            .args(["-c", script])
            .arg(program)
            .arg(&folder)
            .arg(option)
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let stdin = guardian.stdin.take();
        let mut log = BufReader::new(guardian.stdout.take().expect("the log")).lines();
        let (pid, mut said) = (Arc::new(AtomicU32::new(0)), String::new());
        let own = Arc::clone(&pid);
        let says_ready = move |line: &str| {
            if let Some(number) = line.strip_prefix("pid ") {
                own.store(number.parse().unwrap_or(0), Ordering::Relaxed);
            }
            line.contains(ready)
        };
        let is_ready = log.by_ref().map_while(Result::ok).any(|line| {
            said.push_str(&line);
            said.push('\n');
            says_ready(&line)
        });
        assert!(is_ready, "the server ended before it was ready: {said}");
        // The log must be drained, or the server would block on a full pipe.
        let (tell, ready) = channel();
        thread::spawn(move || {
            for line in log.map_while(Result::ok) {
                if says_ready(&line) {
                    let _ = tell.send(());
                }
            }
        });
        Self { folder, pid, guardian, stdin, ready: Mutex::new(ready) }
    }

    /// The server and its children.
    fn processes(&self) -> Vec<String> {
        let pid = self.pid.load(Ordering::Relaxed);
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        [pid.to_string()].into_iter().chain(children.split_whitespace().map(str::to_owned)).collect()
    }

    /// Sends a signal to the server and its children.
    fn signal(&self, name: &str) {
        let all = self.processes();
        let _ = Command::new("kill").arg(format!("-{name}")).args(all).stderr(Stdio::null()).status();
    }

    /// Kills the server and its children without a shutdown, and waits until none of them runs.
    fn kill(&self) {
        let all = self.processes();
        self.signal("KILL");
        while all.iter().any(|pid| runs(pid)) {
            thread::yield_now();
        }
    }

    /// Restarts the server on its existing data, and waits until it is ready.
    #[expect(clippy::expect_used, reason = "in a test, a panic is the report")]
    fn start_again(&self) {
        let mut stdin = self.stdin.as_ref().expect("a server that runs");
        stdin.write_all(b"again\n").expect("a shell that hears");
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).recv().expect("a server that is ready");
    }
}

impl Drop for ServerGuard {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.guardian.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns whether a process still runs. A zombie does not: its parent only has not collected it yet.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

/// A PostgreSQL server.
pub struct TestPostgres {
    server: ServerGuard,
    programs: PathBuf,
}

impl TestPostgres {
    /// A server without durable writes, which is faster. `None`, after [`skip`], if the programs are missing.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with("off")
    }

    /// A server with durable writes, as in production.
    #[must_use]
    pub fn durable() -> Option<Self> {
        Self::start_with("on")
    }

    fn start_with(fsync: &str) -> Option<Self> {
        let named = env::var_os("COGN_TEST_POSTGRES").map(PathBuf::from);
        let Some(programs) = named.or_else(usual_postgres).filter(|folder| folder.join("initdb").is_file())
        else {
            skip(Lack::Postgres);
            return None;
        };
        let ready = "database system is ready to accept connections";
        Some(Self { server: ServerGuard::start(POSTGRES, &programs, fsync, ready), programs })
    }

    /// The process id of the server's main process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.server.pid.load(Ordering::Relaxed)
    }

    /// Creates a new database; returns its address.
    #[must_use]
    pub fn database(&self) -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("t{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.address(&name)
    }

    /// The address of a database.
    #[must_use]
    pub fn address(&self, name: &str) -> String {
        let folder = self.server.folder.display().to_string().replace('/', "%2F");
        format!("postgres://cogn@{folder}/{name}")
    }

    /// Runs SQL in a database, bypassing the code under test; returns the output.
    ///
    /// # Panics
    /// If the server refuses it.
    #[expect(clippy::expect_used, reason = "in a test, a panic is the report")]
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let done = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "cogn", "-d", database, "-c", sql])
            .arg("-h")
            .arg(&self.server.folder)
            .output()
            .expect("psql");
        assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// The last part of an address.
    #[must_use]
    pub fn name_of(address: &str) -> &str {
        address.rsplit('/').next().unwrap_or_default()
    }

    /// Freezes all processes of the server, so that it does not respond.
    pub fn freeze(&self) {
        self.server.signal("STOP");
    }

    /// Resumes the server.
    pub fn thaw(&self) {
        self.server.signal("CONT");
    }

    /// Kills the server without a shutdown, like a power loss.
    pub fn kill(&self) {
        self.server.kill();
    }

    /// Restarts the server after that, on the data of its disk.
    pub fn start_again(&self) {
        self.server.start_again();
    }
}

/// The newest installed version.
fn usual_postgres() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<PathBuf> = versions.flatten().map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.pop()
}

/// A Redis server.
pub struct TestRedis(ServerGuard);

impl TestRedis {
    /// An empty server. `None`, after [`skip`], if the program is missing.
    #[must_use]
    pub fn start() -> Option<Self> {
        let program = env::var_os("COGN_TEST_REDIS").unwrap_or_else(|| "redis-server".into());
        let runs =
            Command::new(&program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !runs.is_ok_and(|status| status.success()) {
            skip(Lack::Redis);
            return None;
        }
        Some(Self(ServerGuard::start(REDIS, Path::new(&program), "", "eady to accept connections")))
    }

    /// The process id of the server.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.pid.load(Ordering::Relaxed)
    }

    /// The address of the server.
    #[must_use]
    pub fn address(&self) -> String {
        format!("redis+unix://{}/redis.sock", self.0.folder.display())
    }

    /// Freezes the server, so that it does not respond.
    pub fn freeze(&self) {
        self.0.signal("STOP");
    }

    /// Resumes the server.
    pub fn thaw(&self) {
        self.0.signal("CONT");
    }
}

/// A folder that no other test uses, with a path short enough for a socket.
#[expect(clippy::expect_used, reason = "in a test, a panic is the report")]
fn new_folder() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("cogn-db-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    platform::open_to_all(&folder);
    folder
}
