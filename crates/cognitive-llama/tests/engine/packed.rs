//! Packed weights: mapped, they give the same bits as weights packed in memory, and only unchanged packed files are
//! opened.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;
use std::sync::Arc;

use cognitive_llama::{Model, WeightsError};

use super::toy::Toy;
use super::{bits, logits};

const HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// A file that is deleted with the test.
struct Scrap(PathBuf);

impl Scrap {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("cogn-packed-{name}-{}", std::process::id())))
    }

    fn empty(&self) -> File {
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&self.0).unwrap()
    }

    fn open(&self) -> Result<Model, WeightsError> {
        Model::map(&File::open(&self.0).unwrap(), HASH)
    }
}

impl Drop for Scrap {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn packed(name: &str, bytes: &[u8]) -> Scrap {
    let scrap = Scrap::new(name);
    Model::pack(bytes, bytes.len() as u64, HASH, &scrap.empty()).unwrap();
    scrap
}

#[cfg(unix)]
#[test]
fn packed_weights_give_the_bits_of_those_in_memory() {
    let text: Vec<u32> = (0..100_u32).map(|i| i * 37 % 256).collect();
    let mut files = vec![Toy::default().bytes()];
    files.extend(cognitive_testkit::weights().map(|path| fs::read(path).unwrap()));
    for bytes in files {
        let scrap = packed("same", &bytes);
        let (mapped, other) = (Arc::new(scrap.open().unwrap()), Arc::new(scrap.open().unwrap()));
        let memory = Arc::new(Model::from_bytes(&bytes).unwrap());
        assert_eq!((mapped.name(), mapped.context_length()), (memory.name(), memory.context_length()));
        assert_eq!(mapped.tokenizer().encode("the the12"), memory.tokenizer().encode("the the12"));
        let expected = bits(&logits(&memory, 2, &text));
        assert_eq!(bits(&logits(&mapped, 2, &text)), expected);
        // An open mapping stays valid after the file is deleted.
        drop(scrap);
        assert_eq!(bits(&logits(&other, 1, &text)), expected);
    }
}

#[cfg(unix)]
#[test]
fn nothing_but_what_was_packed_is_opened() {
    let scrap = packed("damaged", &Toy::default().bytes());
    let right = fs::read(&scrap.0).unwrap();
    let refused = |bytes: &[u8], what: &str| {
        fs::write(&scrap.0, bytes).unwrap();
        assert!(scrap.open().is_err(), "{what}");
    };
    refused(&[], "nothing");
    refused(&Toy::default().bytes(), "a file of weights");
    for end in [1, 50, 127, 128, 1_000, right.len() / 2, right.len() - 64, right.len() - 1] {
        refused(&right[..end], &format!("cut at {end}"));
    }
    refused(&[&right[..], &[0; 64]].concat(), "longer");
    // Magic, order, version, lengths, checksum, hash; the header; tensors; padding.
    let places =
        (0..112).step_by(3).chain((128..right.len()).step_by(right.len() / 50)).chain([right.len() - 1]);
    for place in places {
        let mut other = right.clone();
        other[place] ^= 0x40;
        refused(&other, &format!("a bit at {place}"));
    }
    for (place, length) in
        [(16, 0_u64), (16, 1 << 40), (24, 0), (24, 8), (24, u64::MAX), (32, 0), (32, u64::MAX)]
    {
        let mut other = right.clone();
        other[place..place + 8].copy_from_slice(&length.to_ne_bytes());
        refused(&other, &format!("a length of {length} at {place}"));
    }
    fs::write(&scrap.0, &right).unwrap();
    scrap.open().unwrap();
    let other = Model::map(&File::open(&scrap.0).unwrap(), &HASH.replace('b', "c"));
    assert!(matches!(other, Err(WeightsError::Damaged(_))), "the hash of another file");
}

#[test]
fn what_cannot_be_packed_says_why() {
    let scrap = Scrap::new("refused");
    let bytes = Toy::default().bytes();
    let cut = &bytes[..bytes.len() - 1];
    let refused = Model::pack(cut, bytes.len() as u64, HASH, &scrap.empty());
    assert!(matches!(refused, Err(WeightsError::Damaged(_))), "{refused:?}");
    assert!(scrap.open().is_err(), "without its preamble it is none");
    drop(scrap.empty());
    let readable = File::open(&scrap.0).unwrap();
    let refused = Model::pack(&*bytes, bytes.len() as u64, HASH, &readable);
    assert!(matches!(refused, Err(WeightsError::Unreadable(_))), "{refused:?}");
}
