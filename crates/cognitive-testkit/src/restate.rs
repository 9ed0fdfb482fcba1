//! A real Restate server for tests, on free ports of 127.0.0.1, with its data in a separate folder. It stops when the
//! test ends, even if it is killed. Finds the program in `COGN_TEST_RESTATE`; installs nothing.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, process, thread};

use crate::{Lack, skip};

/// The server runs while the input of this script is open, and that closes with the process of the test.
const GUARDIAN: &str = r#""$0" "$@" & served=$!; cat >/dev/null; kill -9 "$served"; wait"#;

/// A running server. Stops when it is dropped.
pub struct TestRestate {
    /// The address at which workers are registered, such as `http://127.0.0.1:41234`.
    pub admin: String,
    /// The address at which handlers are called.
    pub ingress: String,
    guardian: Child,
    stdin: Option<ChildStdin>,
    folder: PathBuf,
}

impl TestRestate {
    /// Starts a server. `None`, after [`skip`], if the program is missing.
    ///
    /// # Panics
    /// If the server ends before it listens.
    #[must_use]
    #[expect(clippy::expect_used, clippy::panic, reason = "in a test, a panic is the report")]
    pub fn open() -> Option<Self> {
        let program = env::var_os("COGN_TEST_RESTATE").map(PathBuf::from).filter(|path| path.is_file());
        let Some(program) = program else {
            skip(Lack::Restate);
            return None;
        };
        let folder = new_folder();
        let mut guardian = Command::new("sh")
            .args(["-c", GUARDIAN])
            .arg(program)
            .args(["--no-logo", "--use-random-ports", "true", "--listen-mode", "tcp", "--node-name", "test"])
            .args(["--bind-ip", "127.0.0.1", "--advertised-host", "127.0.0.1", "--base-dir"])
            .arg(&folder)
            // The server also reads settings from variables.
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("RESTATE_DISABLE_TELEMETRY", "true")
            .env("RESTATE_LOG_FORMAT", "json")
            .env("RESTATE_DEFAULT_NUM_PARTITIONS", "4")
            .env("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "256 MiB")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let stdin = guardian.stdin.take();
        let mut log = BufReader::new(guardian.stdout.take().expect("the log")).lines();
        let (mut admin, mut ingress) = (None, None);
        for line in log.by_ref().map_while(Result::ok) {
            admin = admin.or_else(|| port_in(&line, "admin-api-server"));
            ingress = ingress.or_else(|| port_in(&line, "http-ingress-server"));
            if admin.is_some() && ingress.is_some() {
                break;
            }
        }
        let (Some(admin), Some(ingress)) = (admin, ingress) else {
            panic!("the server ended before it listened")
        };
        // The log must be drained, or the server would block on a full pipe.
        thread::spawn(move || log.for_each(drop));
        let [admin, ingress] = [admin, ingress].map(|port| format!("http://127.0.0.1:{port}"));
        Some(Self { admin, ingress, guardian, stdin, folder })
    }
}

/// The port in a log line that reports that this interface listens.
fn port_in(line: &str, interface: &str) -> Option<u16> {
    if !line.contains("listening") || !line.contains(interface) {
        return None;
    }
    let (_, rest) = line.split_once("\"server.port\":")?;
    rest.split([',', '}']).next()?.trim().parse().ok()
}

impl Drop for TestRestate {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.guardian.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A folder that no other test uses.
#[expect(clippy::expect_used, reason = "in a test, a panic is the report")]
fn new_folder() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("cogn-restate-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = env::temp_dir().join(name);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}
