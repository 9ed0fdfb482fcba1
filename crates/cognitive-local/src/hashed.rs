//! A file of weights that is hashed while it is loaded, so that what was judged is what is computed with. Opened once, read
//! once. Somebody may remember the hash of a file that has not changed, which saves the time; who that is, and what a file
//! should be, is not known here.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use cognitive_contract::text::hex;
use sha2::{Digest, Sha256};

use cognitive_llama::{Model, WeightsError};

/// Someone who knows what a file of weights should be.
pub trait KnownHashes: Send + Sync {
    /// The hash of a file that is about to be read, if it is remembered and the file has not changed since.
    fn recall(&self, file: &File) -> Option<String>;

    /// Takes note of the hash of a file that was read just now. The error refuses it and says why.
    fn confirm(&self, file: &File, sha256: &str) -> Result<(), String>;
}

/// Remembers nothing and lets everything pass.
pub(crate) struct Nobody;

impl KnownHashes for Nobody {
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
    let file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    let recalled = witness.recall(&file);
    let mut hashed = Hashed { file: &file, hash: recalled.is_none().then(Sha256::new) };
    let model = Model::read(&mut hashed, length);
    let sha256 = match recalled {
        Some(sha256) => sha256,
        None => {
            io::copy(&mut hashed, &mut io::sink()).map_err(unreadable)?;
            hex(&hashed.hash.unwrap_or_default().finalize())
        }
    };
    // Whoever knows better what is wrong with a file says it first.
    witness.confirm(&file, &sha256).map_err(WeightsError::Damaged)?;
    Ok(model?.with_sha256(&sha256))
}

/// Hashes what passes, if somebody wants that.
struct Hashed<'a> {
    file: &'a File,
    hash: Option<Sha256>,
}

impl Read for Hashed<'_> {
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

    /// Remembers one hash, refuses another, and notes what it is told.
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
    fn m6_all_of_a_file_is_hashed_and_its_judge_speaks_before_the_reader() {
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
