//! Hashes a file of weights before it is used, so that the verified bytes are the bytes that are computed with. A
//! [`KnownHashes`] may remember the hash of an unchanged file, which saves time. It may also provide packed weights
//! that all processes share. Does not know the expected hash of a file.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::path::Path;

use cognitive_contract::text::hex;
use sha2::{Digest, Sha256};

use cognitive_llama::{Model, WeightsError};

/// Knows the expected hashes of files of weights.
pub trait KnownHashes: Send + Sync {
    /// Returns the hash of a file that is about to be read, if it is stored and the file has not changed since.
    fn recall(&self, file: &File) -> Option<String>;

    /// Records the hash of a file that was just read. An error refuses the file and gives the reason.
    fn confirm(&self, file: &File, sha256: &str) -> Result<(), String>;

    /// Returns the store of packed weights; `None` if every process uses its own copy.
    fn packed_weights(&self) -> Option<&dyn PackedWeights> {
        None
    }
}

/// A store of packed weights. Errors in it cost time and memory, but never an answer.
pub trait PackedWeights {
    /// Returns the packed weights, if they exist.
    fn find(&self) -> Option<File>;

    /// Discards the result of [`Self::find`], which is unusable.
    fn discard(&self);

    /// Has `write` fill an empty file and keeps it, unless another process has stored one in the meantime. At least
    /// `length` bytes are needed.
    fn keep(&self, length: u64, write: &mut dyn FnMut(&File) -> io::Result<()>) -> Option<File>;
}

/// Remembers nothing and accepts every file.
pub(crate) struct NoHashMemory;

impl KnownHashes for NoHashMemory {
    fn recall(&self, _: &File) -> Option<String> {
        None
    }

    fn confirm(&self, _: &File, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// Loads a model.
pub(crate) fn open(path: &Path, witness: &dyn KnownHashes) -> Result<Model, WeightsError> {
    let unreadable =
        |error: io::Error| WeightsError::Unreadable(format!("cannot read `{}`: {error}", path.display()));
    let mut file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    let mut recalled = witness.recall(&file);
    if let Some(packed) = witness.packed_weights() {
        let sha256 = match recalled {
            Some(sha256) => sha256,
            None => digest(&file).map_err(unreadable)?,
        };
        witness.confirm(&file, &sha256).map_err(WeightsError::Damaged)?;
        if let Some(model) = load_shared(&file, length, &sha256, witness, packed) {
            return Ok(model.with_sha256(&sha256));
        }
        file.rewind().map_err(unreadable)?;
        recalled = Some(sha256);
    }
    let mut hashed = HashingReader { file: &file, hash: recalled.is_none().then(Sha256::new) };
    let model = Model::read(&mut hashed, length);
    let sha256 = match recalled {
        Some(sha256) => sha256,
        None => {
            io::copy(&mut hashed, &mut io::sink()).map_err(unreadable)?;
            hex(&hashed.hash.unwrap_or_default().finalize())
        }
    };
    // If `confirm` fails, its error is more precise than that of the reader, so it is returned first.
    witness.confirm(&file, &sha256).map_err(WeightsError::Damaged)?;
    Ok(model?.with_sha256(&sha256))
}

/// Returns the model from packed weights that other processes also use. Packs them if they do not exist yet.
fn load_shared(
    mut file: &File,
    length: u64,
    sha256: &str,
    witness: &dyn KnownHashes,
    packed: &dyn PackedWeights,
) -> Option<Model> {
    let open = |packed: File| Model::map(&packed, sha256).ok();
    if let Some(found) = packed.find() {
        match open(found) {
            Some(model) => return Some(model),
            None => packed.discard(),
        }
    }
    let kept = packed.keep(length, &mut |to| {
        file.rewind()?;
        Model::pack(file, length, sha256, to).map_err(io::Error::other)?;
        // Checks that the file did not change while it was packed.
        witness.confirm(file, sha256).map_err(io::Error::other)
    });
    kept.and_then(open)
}

fn digest(file: &File) -> io::Result<String> {
    let mut hashed = HashingReader { file, hash: Some(Sha256::new()) };
    io::copy(&mut hashed, &mut io::sink())?;
    Ok(hex(&hashed.hash.unwrap_or_default().finalize()))
}

/// Hashes the bytes that are read, if requested.
struct HashingReader<'a> {
    file: &'a File,
    hash: Option<Sha256>,
}

impl Read for HashingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(buffer)?;
        if let (Some(hash), Some(read)) = (&mut self.hash, buffer.get(..length)) {
            hash.update(read);
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Remembers one hash, refuses another, and records its calls.
    #[derive(Default)]
    struct Remembers {
        known: Option<String>,
        refused: Option<String>,
        told: Mutex<Vec<String>>,
    }

    impl KnownHashes for Remembers {
        fn recall(&self, _: &File) -> Option<String> {
            self.known.clone()
        }

        fn confirm(&self, _: &File, sha256: &str) -> Result<(), String> {
            self.told.lock().unwrap().push(sha256.to_owned());
            if self.refused.as_deref() == Some(sha256) { Err("another file".to_owned()) } else { Ok(()) }
        }
    }

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn all_of_a_file_is_hashed_and_its_judge_speaks_before_the_reader() {
        let folder = std::env::temp_dir().join(format!("cogn-hashed-{}", std::process::id()));
        std::fs::write(&folder, "abc").unwrap();
        let witness = Remembers { refused: Some(ABC.to_owned()), ..Remembers::default() };
        assert_eq!(open(&folder, &witness).unwrap_err(), WeightsError::Damaged("another file".to_owned()));
        assert_eq!(*witness.told.lock().unwrap(), [ABC]);
        let remembered = Remembers { known: Some("1".to_owned()), ..Remembers::default() };
        assert!(matches!(open(&folder, &remembered), Err(WeightsError::Damaged(_))));
        assert_eq!(*remembered.told.lock().unwrap(), ["1"], "what is remembered is not made again");
        std::fs::remove_file(&folder).unwrap();
    }
}
