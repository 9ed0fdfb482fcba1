//! A file of weights that is hashed before it is computed with, so that what was judged is what is computed with. Somebody may
//! remember the hash of a file that has not changed, which saves the time, and may keep the weights in packed form, which all
//! processes share; who that is, and what a file should be, is not known here.

use std::fs::File;
use std::io::{self, Read, Seek as _};
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

    /// Where the weights are kept in packed form; nowhere if every process is to have a copy of its own.
    fn packed(&self) -> Option<&dyn PackedWeights> {
        None
    }
}

/// Someone who keeps a file of weights in packed form. Whatever goes wrong there costs time and memory, and no answer.
pub trait PackedWeights {
    /// The packed form, if there is one.
    fn find(&self) -> Option<File>;

    /// Takes back what [`Self::find`] gave: nothing can be done with it.
    fn discard(&self);

    /// Lets an empty file be written and keeps it, unless another process has done so in the meantime. At least so many bytes
    /// are needed.
    fn keep(&self, length: u64, write: &mut dyn FnMut(&File) -> io::Result<()>) -> Option<File>;
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
    let mut file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    let mut recalled = witness.recall(&file);
    if let Some(packed) = witness.packed() {
        let sha256 = match recalled {
            Some(sha256) => sha256,
            None => digest(&file).map_err(unreadable)?,
        };
        witness.confirm(&file, &sha256).map_err(WeightsError::Damaged)?;
        if let Some(model) = shared(&file, length, &sha256, witness, packed) {
            return Ok(model.with_sha256(&sha256));
        }
        file.rewind().map_err(unreadable)?;
        recalled = Some(sha256);
    }
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

/// The model in packed form, which other processes compute with as well. Packs it if nobody has yet.
fn shared(
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
        // Nobody may have changed it while it was packed.
        witness.confirm(file, sha256).map_err(io::Error::other)
    });
    kept.and_then(open)
}

fn digest(file: &File) -> io::Result<String> {
    let mut hashed = Hashed { file, hash: Some(Sha256::new()) };
    io::copy(&mut hashed, &mut io::sink())?;
    Ok(hex(&hashed.hash.unwrap_or_default().finalize()))
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
