//! A real registry for tests: `docker-registry` on 127.0.0.1, with everything in memory. It stops when the test ends,
//! even if it is killed. Finds the program in `COGN_TEST_REGISTRY`, else by its name; installs nothing.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, process, thread};

use crate::{Lack, skip};

/// The only user of a registry that requires a login.
pub const REGISTRY_USER: &str = "tester";
/// Its password.
pub const REGISTRY_PASSWORD: &str = "pa55word-of-tests";
/// The password hash in the registry's format. Created once, with the lowest cost, because it only protects a test.
const PASSWORD_HASH: &str = "$2b$04$9x4d0uDPBub4sxpckIJB3ukybxvF3nXZJfXJu15LXLguOSEaVCyF6";

/// The registry runs while the input of this script is open, and that closes with the process of the test.
const GUARDIAN: &str = r#""$0" serve "$1" & served=$!; cat >/dev/null; kill "$served"; wait"#;

/// A running registry. Stops when it is dropped.
pub struct TestRegistry {
    /// The host and port, such as `127.0.0.1:41234`.
    pub host: String,
    guardian: Child,
    stdin: Option<ChildStdin>,
    folder: PathBuf,
}

impl TestRegistry {
    /// A registry without login. `None`, after [`skip`], if the program is missing.
    #[must_use]
    pub fn open() -> Option<Self> {
        Self::start(false)
    }

    /// A registry that requires the login of [`REGISTRY_USER`]. `None`, after [`skip`], if the program is missing.
    #[must_use]
    pub fn with_login() -> Option<Self> {
        Self::start(true)
    }

    #[expect(clippy::expect_used, clippy::panic, reason = "in a test, a panic is the report")]
    fn start(login: bool) -> Option<Self> {
        let program = env::var_os("COGN_TEST_REGISTRY").unwrap_or_else(|| "docker-registry".into());
        let runs =
            Command::new(&program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !runs.is_ok_and(|status| status.success()) {
            skip(Lack::Registry);
            return None;
        }
        let folder = new_folder();
        let config = folder.join("config.yml");
        fs::write(folder.join("htpasswd"), format!("{REGISTRY_USER}:{PASSWORD_HASH}\n")).expect("a file");
        let auth =
            format!("auth: {{htpasswd: {{realm: tests, path: '{}'}}}}\n", folder.join("htpasswd").display());
        let text = "version: 0.1\nlog: {level: info}\nstorage: {inmemory: {}}\nhttp: {addr: '127.0.0.1:0', secret: tests}\n";
        fs::write(&config, format!("{text}{}", if login { &auth } else { "" })).expect("a file");
        let mut guardian = Command::new("sh")
            .args(["-c", GUARDIAN])
            .args([program.as_os_str(), config.as_os_str()])
            // The registry also reads settings from variables.
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let stdin = guardian.stdin.take();
        let mut log = BufReader::new(guardian.stderr.take().expect("the log")).lines();
        let listening = log.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once("listening on ")?;
            Some(rest.split(['"', ' ']).next()?.to_owned())
        });
        let Some(host) = listening else { panic!("the registry ended before it listened") };
        // The log must be drained, or the server would block on a full pipe.
        thread::spawn(move || log.for_each(drop));
        Some(Self { host, guardian, stdin, folder })
    }
}

impl Drop for TestRegistry {
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
    let name = format!("cogn-registry-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = env::temp_dir().join(name);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}
