//! Real database servers for tests, from the system's own packages: PostgreSQL and Redis, each on a socket in a folder of its own.
//! They end when the test does, also when the test is killed. Finds the programs in `COGN_TEST_POSTGRES` (the folder with `initdb`)
//! and `COGN_TEST_REDIS` (the program), else where Debian puts them; installs nothing.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, process, thread};

use crate::platform;
use crate::{Lack, skip};

/// The server refuses to be run by root, so it is somebody else's then. It lives as long as the input of this script is open.
const POSTGRES: &str = r#"
as=""
if [ "$(id -u)" = 0 ]; then chown 65534:65534 "$1"; as="setpriv --reuid=65534 --regid=65534 --clear-groups"; fi
$as "$0/initdb" -D "$1/data" -U cogn -A trust -E UTF8 --locale=C --no-sync >"$1/initdb.log" 2>&1 || { cat "$1/initdb.log"; exit 1; }
cd "$1"
$as "$0/postgres" -D "$1/data" -k "$1" -c listen_addresses= -c fsync="$2" -c max_connections=200 \
    -c log_destination=stderr -c logging_collector=off 2>&1 & served=$!
echo "pid $served"
cat >/dev/null
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
    pid: u32,
    guardian: Child,
    stdin: Option<ChildStdin>,
}

impl Guarded {
    #[expect(clippy::expect_used, reason = "in a test, a panic is the report")]
    fn start(script: &str, program: &Path, option: &str, ready: &str) -> Self {
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
        let (mut pid, mut said) = (0, String::new());
        let is_ready = log.by_ref().map_while(Result::ok).any(|line| {
            if let Some(number) = line.strip_prefix("pid ") {
                pid = number.parse().unwrap_or(0);
            }
            said.push_str(&line);
            said.push('\n');
            line.contains(ready)
        });
        assert!(is_ready, "the server ended before it was ready: {said}");
        // What nobody reads would hold it up one day.
        thread::spawn(move || log.for_each(drop));
        Self { folder, pid, guardian, stdin }
    }

    /// Sends a signal to the server and its children.
    fn signal(&self, name: &str) {
        let children =
            fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid)).unwrap_or_default();
        let all = [self.pid.to_string()].into_iter().chain(children.split_whitespace().map(str::to_owned));
        let _ = Command::new("kill").arg(format!("-{name}")).args(all).stderr(Stdio::null()).status();
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.guardian.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
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
    #[expect(clippy::expect_used, clippy::must_use_candidate, reason = "in a test, a panic is the report")]
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
