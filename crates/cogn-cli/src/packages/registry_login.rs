//! Finds the login of a registry in existing places: the environment, then the files of podman and docker, then the
//! credential helper that such a file names. Sends it only to that registry.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cognitive_net::Secret;
use cognitive_net::registry::{CredentialHelper, Credentials, DockerLogin, docker_credentials};
use cognitive_packages::PackageError;
use cognitive_setup::env_vars::{
    CONTAINERS_FILE, DOCKER_FOLDER, REGISTRY_HOST, REGISTRY_PASSWORD, REGISTRY_TOKEN, REGISTRY_USER,
    RUNTIME_FOLDER,
};
use cognitive_setup::wiring::{environment, home};

/// The timeout of a helper. It may ask a keyring, which may ask the user.
const HELPER_TIME: Duration = Duration::from_mins(1);
/// The maximum length of a file or of a helper's output. Without it, an endless output would fill the memory.
const MAX_LENGTH: u64 = 1 << 20;

/// Returns the login of a host, if there is one.
pub(crate) fn find(host: &str) -> Result<Option<Credentials>, PackageError> {
    if let Some(credentials) = environment_login(host)? {
        return Ok(Some(credentials));
    }
    for file in files() {
        let Ok(text) = read(&file) else { continue };
        match docker_credentials(&text, host)? {
            DockerLogin::Credentials(credentials) => return Ok(Some(credentials)),
            DockerLogin::Helper(helper) => return ask(&helper),
            _ => {}
        }
    }
    Ok(None)
}

/// Returns the login of the environment, if it is for this host. A lock file or an index may name any host, so a login
/// without a host is never sent.
fn environment_login(host: &str) -> Result<Option<Credentials>, PackageError> {
    let secret = |name: &str| environment(name).and_then(Secret::new);
    let credentials = match (secret(REGISTRY_TOKEN), environment(REGISTRY_USER), secret(REGISTRY_PASSWORD)) {
        (Some(token), ..) => Credentials::bearer(token),
        (None, Some(user), Some(password)) => Credentials::basic(user, password),
        _ => return Ok(None),
    };
    match environment(REGISTRY_HOST) {
        Some(own) => Ok(own.eq_ignore_ascii_case(host).then_some(credentials)),
        None => Err(PackageError::new("the environment has a login without a registry")
            .hint(format!("Set `{REGISTRY_HOST}` to its host, such as `{host}`"))),
    }
}

/// Returns the login files of podman and docker, in the order that they use themselves.
fn files() -> Vec<PathBuf> {
    let named = environment(CONTAINERS_FILE).map(PathBuf::from);
    let running =
        environment(RUNTIME_FOLDER).map(|folder| PathBuf::from(folder).join("containers/auth.json"));
    let docker =
        environment(DOCKER_FOLDER).map(PathBuf::from).or_else(|| home().map(|home| home.join(".docker")));
    let config = home().map(|home| home.join(".config/containers/auth.json"));
    [named, running, config, docker.map(|folder| folder.join("config.json"))].into_iter().flatten().collect()
}

fn read(path: &PathBuf) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(MAX_LENGTH).read_to_string(&mut text)?;
    Ok(text)
}

/// Runs a helper. A helper without a login for the host exits with an error, which counts as no login.
fn ask(helper: &CredentialHelper) -> Result<Option<Credentials>, PackageError> {
    let failed = |error: std::io::Error| {
        PackageError::new(format!("cannot use the credential helper: `{}`: {error}", helper.program))
            .hint(format!("Check that it is installed with `docker login {}`", helper.server))
    };
    let mut child = Command::new(&helper.program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // A helper that does not read its input also has no answer, so the error is ignored.
        let _it_ends_by_itself = writeln!(input, "{}", helper.server);
    }
    let output = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let read = output.map(|output| output.take(MAX_LENGTH).read_to_string(&mut text));
        read.is_some_and(|read| read.is_ok()).then_some(text)
    });
    let started = Instant::now();
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if started.elapsed() > HELPER_TIME => {
                let _gone_already = child.kill();
                return Err(failed(std::io::ErrorKind::TimedOut.into()));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    match reader.join().ok().flatten().filter(|_| status.success()) {
        Some(text) => Ok(Some(helper.read(&text)?)),
        None => Ok(None),
    }
}
