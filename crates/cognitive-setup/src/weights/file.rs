//! The file of weights on disk: verified by length and hash, downloaded in pieces, moved into place by one rename. The
//! final name never holds a partial file.

#[cfg(feature = "net")]
use std::fs::OpenOptions;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use cognitive_contract::text::hex;
use sha2::{Digest, Sha256};

#[cfg(feature = "net")]
use super::PullProgress;
use super::{KnownWeights, WeightsFolder, megabytes};
use crate::platform;

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsState {
    /// No file exists.
    Nothing,
    /// The expected file.
    Right,
    /// Another file; holds the reason.
    Wrong(String),
}

impl WeightsState {
    /// Returns the reason why a file is refused.
    pub(super) fn refusal(&self) -> String {
        match self {
            Self::Wrong(why) => format!("not the expected file: {why}"),
            // Callers refuse no right file.
            Self::Nothing | Self::Right => "the file does not exist".to_owned(),
        }
    }
}

/// Checks a file by its length only. This is cheap; the engine verifies the rest while it reads.
#[must_use]
pub fn look(known: &KnownWeights, path: &Path) -> WeightsState {
    look_for(known.length, path)
}

/// Checks a file by any given length.
#[must_use]
pub fn look_for(length: u64, path: &Path) -> WeightsState {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => WeightsState::Nothing,
        Err(error) => WeightsState::Wrong(format!("it cannot be read: {error}")),
        Ok(meta) if !meta.is_file() => WeightsState::Wrong("it is not a file".to_owned()),
        Ok(meta) if meta.len() != length => {
            WeightsState::Wrong(format!("it has {} bytes instead of {}", meta.len(), length))
        }
        Ok(_) => WeightsState::Right,
    }
}

/// Checks a file by its length and hash.
#[must_use]
pub fn check(known: &KnownWeights, path: &Path) -> WeightsState {
    let found = look(known, path);
    if found != WeightsState::Right {
        return found;
    }
    match File::open(path).and_then(digest) {
        Err(error) => WeightsState::Wrong(format!("it cannot be read: {error}")),
        Ok(sha256) => known.judge(&sha256),
    }
}

/// Hashes a source to its end.
pub(super) fn digest(source: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    absorb(&mut hash, source)?;
    Ok(hex(&hash.finalize()))
}

impl KnownWeights {
    /// Compares a hash with the expected one.
    #[must_use]
    pub fn judge(&self, sha256: &str) -> WeightsState {
        if sha256 == self.sha256 {
            WeightsState::Right
        } else {
            WeightsState::Wrong(format!("its sha256 is {sha256}"))
        }
    }
}

fn absorb(hash: &mut Sha256, mut source: impl Read) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 20];
    let mut length = 0;
    loop {
        let read = match source.read(&mut buffer) {
            Ok(0) => return Ok(length),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(buffer.get(..read).unwrap_or_default());
        length += read as u64;
    }
}

/// A download in progress. It is hashed as it arrives, and an earlier partial download is resumed.
#[cfg(feature = "net")]
pub(super) struct PartialDownload<'a> {
    file: File,
    hash: Sha256,
    length: u64,
    watch: &'a dyn PullProgress,
}

#[cfg(feature = "net")]
impl<'a> PartialDownload<'a> {
    /// Opens a partial download, or starts one.
    pub(super) fn open(path: &Path, watch: &'a dyn PullProgress) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut hash = Sha256::new();
        // A device has no end, so only a regular file is read.
        let length = if file.metadata()?.is_file() { absorb(&mut hash, &mut file)? } else { 0 };
        Ok(Self { file, hash, length, watch })
    }

    /// Compares the downloaded bytes with the expected hash.
    pub(super) fn judge(self, known: &KnownWeights) -> WeightsState {
        known.judge(&hex(&self.hash.finalize()))
    }
}

#[cfg(feature = "net")]
impl cognitive_net::FileSink for PartialDownload<'_> {
    fn length(&self) -> u64 {
        self.length
    }

    fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.hash = Sha256::new();
        self.length = 0;
        self.watch.at(0);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        self.watch.at(self.length);
        Ok(())
    }
}

/// Copies a foreign file into the cache and verifies the copy. The result is always a plain private file, even if the
/// source is a link or has other permissions.
pub(super) fn take(known: &KnownWeights, from: &Path, place: &WeightsFolder) -> io::Result<WeightsState> {
    let found = look(known, from);
    if found != WeightsState::Right {
        return Ok(found);
    }
    let source = File::open(from)?;
    let copy = platform::create_public_file(&place.copy())?;
    // The hash is of the copied bytes. Bytes that are appended meanwhile are ignored.
    let sha256 = digest(Copying { from: source.take(known.length), to: &copy })?;
    Ok(known.judge(&sha256))
}

/// Writes all bytes that are read to a second file.
struct Copying<'a, R> {
    from: R,
    to: &'a File,
}

impl<R: Read> Read for Copying<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(buffer)?;
        self.to.write_all(buffer.get(..length).unwrap_or_default())?;
        Ok(length)
    }
}

/// Moves a verified file into place, and records its origin.
pub(super) fn install(from: &Path, place: &WeightsFolder, origin: &str) -> io::Result<()> {
    // The bytes must be on disk before the name, so that a power cut leaves no partial file.
    File::open(from)?.sync_all()?;
    fs::rename(from, place.file())?;
    // The origin is only for `cogn model list`; the weights work without it.
    let _only_a_note = fs::write(place.origin(), format!("{origin}\n"));
    Ok(())
}

/// Refuses to start if the disk has no room for `bytes` and a small reserve.
pub(super) fn room(folder: &Path, bytes: u64) -> Result<(), String> {
    // Without the reserve, the download would leave no room for the other files of the user.
    const SPARE: u64 = 16 << 20;
    let needed = bytes.saturating_add(SPARE);
    match platform::free_space(folder) {
        Some(free) if free < needed => Err(format!(
            "not enough disk space for `{}`: {} needed, {} free",
            folder.display(),
            megabytes(needed),
            megabytes(free)
        )),
        _ => Ok(()),
    }
}
