//! Real database servers for tests, from the system's own packages: PostgreSQL and Redis, each on a socket in a folder of its own.
//! They end when the test does, also when the test is killed. Finds the programs in `COGN_TEST_POSTGRES` (the folder with `initdb`)
//! and `COGN_TEST_REDIS` (the program), else where Debian puts them; installs nothing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fs, process, thread};

use crate::platform;
use crate::{Lack, skip};

/// The server refuses to be run by root, so it is somebody else's then. It lives as long as the input of this script is open, and is
/// started again, on what it had, for each line that is said to it.
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

/// The same for the other.
const REDIS: &str = r#"
"$0" --port 0 --unixsocket "$1/redis.sock" --save "" --appendonly no --dir "$1" 2>&1 & served=$!
echo "pid $served"
cat >/dev/null
kill -CONT "$served"; kill -KILL "$served"; wait; rm -rf "$1"
"#;

/// A server that runs. Ends when it is dropped.
struct Guarded {
    folder: PathBuf,
    pid: Arc<AtomicU32>,
    guardian: Child,
    stdin: Option<ChildStdin>,
    /// Says each time that it is ready.
    ready: Mutex<Receiver<()>>,
}

impl Guarded {
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
        // What nobody reads would hold it up one day.
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

    /// Ends it without a word, with its children, and waits until nothing of it runs.
    fn kill(&self) {
        let all = self.processes();
        self.signal("KILL");
        while all.iter().any(|pid| runs(pid)) {
            thread::yield_now();
        }
    }

    /// Starts it again, on what it had, and waits until it is ready.
    #[expect(clippy::expect_used, reason = "in a test, a panic is the report")]
    fn start_again(&self) {
        let mut stdin = self.stdin.as_ref().expect("a server that runs");
        stdin.write_all(b"again\n").expect("a shell that hears");
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).recv().expect("a server that is ready");
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.guardian.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Whether a process does anything any more: one that nobody has asked for its end does not.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

/// A PostgreSQL server.
pub struct TestPostgres {
    server: Guarded,
    programs: PathBuf,
}

impl TestPostgres {
    /// A server that forgets what it had when the power goes, which is faster. `None`, after [`skip`], if there are no programs.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with("off")
    }

    /// A server as people have it.
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
        Some(Self { server: Guarded::start(POSTGRES, &programs, fsync, ready), programs })
    }

    /// The process whose children serve.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.server.pid.load(Ordering::Relaxed)
    }

    /// A new database in it; its address.
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

    /// Does something in a database behind everybody's back; gives what it says.
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

    /// Lets it answer nobody: every process of it stands still.
    pub fn freeze(&self) {
        self.server.signal("STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.server.signal("CONT");
    }

    /// Ends it without a word, as a machine does that loses its power.
    pub fn kill(&self) {
        self.server.kill();
    }

    /// Starts it again after that, on what was on its disk.
    pub fn start_again(&self) {
        self.server.start_again();
    }
}

/// The newest of those that are installed.
fn usual_postgres() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<PathBuf> = versions.flatten().map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.pop()
}

/// A Redis server.
pub struct TestRedis(Guarded);

impl TestRedis {
    /// A server with nothing in it. `None`, after [`skip`], if there is no program.
    #[must_use]
    pub fn start() -> Option<Self> {
        let program = env::var_os("COGN_TEST_REDIS").unwrap_or_else(|| "redis-server".into());
        let runs =
            Command::new(&program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !runs.is_ok_and(|status| status.success()) {
            skip(Lack::Redis);
            return None;
        }
        Some(Self(Guarded::start(REDIS, Path::new(&program), "", "eady to accept connections")))
    }

    /// The process that serves.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.pid.load(Ordering::Relaxed)
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> String {
        format!("redis+unix://{}/redis.sock", self.0.folder.display())
    }

    /// Lets it answer nobody.
    pub fn freeze(&self) {
        self.0.signal("STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.0.signal("CONT");
    }
}

/// A folder that no other test has, short enough for the name of a socket.
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
