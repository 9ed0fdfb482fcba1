//! The state folder next to the output, which exists until the batch is finished. It contains the identity of
//! the batch (`batch.json`), the answered rows (`journal`), and answers that must still be sorted
//! (`answers.jsonl`, `failed.jsonl`). A lock prevents two processes from writing the same output. A batch
//! only resumes with the same module, rows and options.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use cognitive_contract::{ErrorCode, Failure};
use serde_json::{Value, json};

use crate::answer_log::LogPlaces;
use crate::plan::BatchPlan;
use crate::row_source::RowFormat;

/// The suffix added to the name of the output.
const ENDING: &str = ".cogn-batch";
/// The version of the state format. Other versions are refused. Misread state would lose or repeat rows.
const VERSION: u64 = 1;

/// The state folder of an unfinished batch.
pub(crate) struct BatchFolder {
    pub(crate) path: PathBuf,
    /// True if an earlier process started the batch.
    pub(crate) is_resumed: bool,
    /// All rows of the file.
    pub(crate) rows: u64,
    pub(crate) places: LogPlaces,
    /// True if the lines must be sorted or converted at the end.
    pub(crate) is_staged: bool,
    _lock: File,
}

/// Returns the state folder of an output.
pub(crate) fn for_output(output: &Path) -> PathBuf {
    let mut name = output.file_name().map_or_else(OsString::new, OsString::from);
    name.push(ENDING);
    output.with_file_name(name)
}

impl BatchFolder {
    /// Opens the folder of an earlier process, or creates one.
    pub(crate) fn open(plan: &BatchPlan) -> Result<Self, Failure> {
        let path = for_output(&plan.target.path);
        let is_staged = plan.target.ordered || plan.target.format == RowFormat::Parquet;
        let about = batch_identity(plan)?;
        if !path.exists() && !plan.restart {
            let outputs = [Some(&plan.target.path), plan.target.failed.as_ref()];
            if let Some(there) = outputs.into_iter().flatten().find(|path| path.exists()) {
                return Err(output_exists(there));
            }
        }
        fs::create_dir_all(&path).map_err(|error| unusable(&path, &error))?;
        let lock = lock(&path)?;
        let places = places(plan, &path, is_staged);
        let kept = read(&path)?.filter(|_| !plan.restart);
        if kept.is_none() {
            // This also removes the leftovers of a process that was killed during a restart.
            forget(plan, &path, &places).map_err(|error| unusable(&path, &error))?;
        }
        let is_resumed = kept.is_some();
        let rows = match kept {
            Some(kept) => {
                check_identity(&kept, &about)?;
                kept.get("rows").and_then(Value::as_u64).unwrap_or_default()
            }
            None => {
                let rows = plan.rows.count().map_err(|error| unreadable_rows(&plan.rows.path, &error))?;
                let mut about = about;
                if let Some(members) = about.as_object_mut() {
                    members.insert("rows".to_owned(), json!(rows));
                }
                write(&path, &about).map_err(|error| unusable(&path, &error))?;
                rows
            }
        };
        Ok(Self { path, is_resumed, rows, places, is_staged, _lock: lock })
    }

    /// Removes the folder of a finished batch.
    pub(crate) fn remove(self) -> io::Result<()> {
        let Self { path, _lock: lock, .. } = self;
        drop(lock);
        // Renamed first, in one step: half a folder would look like a batch that has hardly started, and the
        // output would be overwritten.
        let mut gone = path.clone().into_os_string();
        gone.push(".done");
        fs::rename(&path, &gone)?;
        fs::remove_dir_all(gone)
    }
}

fn places(plan: &BatchPlan, folder: &Path, is_staged: bool) -> LogPlaces {
    let place = |name: &str, target: &Path| if is_staged { folder.join(name) } else { target.to_owned() };
    LogPlaces {
        answers: place("answers.jsonl", &plan.target.path),
        failed: plan.target.failed.as_ref().map(|failed| place("failed.jsonl", failed)),
        journal: folder.join("journal"),
    }
}

/// The identity of a batch. All of it must match for the batch to resume.
fn batch_identity(plan: &BatchPlan) -> Result<Value, Failure> {
    let rows = plan.rows.fingerprint().map_err(|error| unreadable_rows(&plan.rows.path, &error))?;
    let decided = plan.host.decide(&plan.module.manifest.name, &plan.options);
    let (model, settings) = (&decided.models.first, decided.settings);
    Ok(json!({
        "version": VERSION,
        "module": { "name": plan.module.manifest.name, "version": plan.module.manifest.version, "sha256": plan.module.digest.module },
        "rows_of": rows,
        "mapping": plan.mapping.fingerprint(),
        "model": { "provider": model.name(), "identity": model.identity() },
        "options": {
            "seed": settings.seed,
            "max_output_tokens": settings.max_output_tokens,
            "thinking": settings.thinking,
            "reask": settings.reasks(),
        },
        "output": {
            "format": plan.target.format.to_string(),
            "failed": plan.target.failed,
            "ordered": plan.target.ordered,
            "with_input": plan.target.with_input,
        },
    }))
}

/// A description of each member for the error message.
const MEMBERS: [(&str, &str); 7] = [
    ("version", "another version of this program"),
    ("module", "another module, or a changed one"),
    ("rows_of", "another file of rows, or a changed one"),
    ("mapping", "other members of the rows (`--map`, `--id`, `--fixed`)"),
    ("model", "another model"),
    ("options", "other options of the runs"),
    ("output", "another form of the output (`--failed`, `--ordered`, `--with-input`)"),
];

fn check_identity(kept: &Value, now: &Value) -> Result<(), Failure> {
    let changed = MEMBERS.iter().find(|(member, _)| kept.get(member) != now.get(member));
    changed.map_or(Ok(()), |(member, what)| {
        let message = format!("the batch was started with {what}");
        Err(Failure::new(ErrorCode::InvalidInput, message)
            .with_detail("member", json!(member))
            .with_detail("begun_with", kept.get(member).cloned().unwrap_or_default())
            .with_detail("now", now.get(member).cloned().unwrap_or_default())
            .suggest(
                "Resume it with the original settings, name another output, or start again with `--restart`",
            ))
    })
}

fn lock(folder: &Path) -> Result<File, Failure> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(folder.join("lock"));
    let file = file.map_err(|error| unusable(folder, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = format!("another process runs this batch: `{}`", folder.display());
            Err(Failure::new(ErrorCode::InvalidInput, message)
                .suggest("Wait for it, or name another output with `-o`"))
        }
        Err(TryLockError::Error(error)) => Err(unusable(folder, &error)),
    }
}

fn read(folder: &Path) -> Result<Option<Value>, Failure> {
    let path = folder.join("batch.json");
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(&path, &error)),
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| unusable(&path, &io::Error::other(error)))
}

/// Writes the file atomically.
fn write(folder: &Path, about: &Value) -> io::Result<()> {
    let draft = folder.join("batch.json.part");
    fs::write(&draft, about.to_string())?;
    File::open(&draft)?.sync_all()?;
    fs::rename(draft, folder.join("batch.json"))
}

/// Removes everything that an earlier process left, including its output.
fn forget(plan: &BatchPlan, folder: &Path, places: &LogPlaces) -> io::Result<()> {
    // `batch.json` goes first: without it, the remaining files are ignored.
    let mut gone = vec![folder.join("batch.json"), places.journal.clone(), places.answers.clone()];
    gone.extend(places.failed.clone());
    gone.push(plan.target.path.clone());
    gone.extend(plan.target.failed.clone());
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name() != "lock" {
            gone.push(entry.path());
        }
    }
    for path in gone {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn output_exists(path: &Path) -> Failure {
    Failure::new(ErrorCode::InvalidInput, format!("the output already exists: `{}`", path.display()))
        .suggest("Name another one with `-o`, or replace it with `--restart`")
}

/// The failure of a file of rows that cannot be read.
pub(crate) fn unreadable_rows(path: &Path, error: &io::Error) -> Failure {
    Failure::new(ErrorCode::InvalidReference, format!("cannot read `{}`: {error}", path.display()))
        .suggest("Check the path and the format: `.jsonl`, `.csv` or `.parquet`")
}

/// The error for a file or folder of the batch that cannot be used.
pub(crate) fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(ErrorCode::InternalError, format!("cannot use `{}`: {error}", path.display()))
        .suggest("Make the folder of the output writable, or name another output with `-o`")
}
