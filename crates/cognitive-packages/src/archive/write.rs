//! Writes reproducible archives: sorted names, no times, no owners, one mode. The same files always give the same
//! bytes.

use std::io;

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::Files;

/// The gzip code for an unknown operating system.
const ANY_SYSTEM: u8 = 255;
/// The compression level. It must not change, because another level gives other bytes.
const LEVEL: u32 = 9;

/// Creates a gzipped tar archive with one top folder.
pub fn write(folder: &str, files: &Files) -> io::Result<Vec<u8>> {
    let packed = GzBuilder::new().mtime(0).operating_system(ANY_SYSTEM);
    let mut tar = Builder::new(packed.write(Vec::new(), Compression::new(LEVEL)));
    for (path, bytes) in files {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, format!("{folder}/{path}"), bytes.as_slice())?;
    }
    tar.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{ArchiveForm, read};

    fn files() -> Files {
        let long = format!("tests/{}.input.json", "long-name-".repeat(16));
        let texts = [("module.yaml", "name: m"), ("tests/a.input.json", "{}"), (long.as_str(), "{}")];
        texts.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into()
    }

    #[test]
    fn reg_002_what_is_written_is_read_again() {
        let bytes = write("m", &files()).unwrap();
        let unpacked = read(&bytes, &ArchiveForm::Package).unwrap();
        assert_eq!((unpacked.top.as_str(), unpacked.files), ("m", files()));
    }

    // Compares the exact bytes, so that no release changes them unnoticed: lock files and registries store their hash.
    #[test]
    fn reg_002_the_same_files_are_the_same_bytes() {
        use sha2::{Digest as _, Sha256};

        let bytes = write("m", &files()).unwrap();
        let hash = cognitive_contract::text::hex(&Sha256::digest(&bytes));
        assert_eq!(hash, "699999333d2dec4de2473b001a88f4c7dd23bbcd177ca94b323f7a44f7ea1280");
    }
}
