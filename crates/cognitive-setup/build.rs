//! Embeds the weights of the model into the program when `COGN_EMBED_WEIGHTS` names their file. Refuses a file that is
//! not a model; `cogn model verify` identifies it. Without the variable it does nothing.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

const VARIABLE: &str = "COGN_EMBED_WEIGHTS";

fn main() -> Result<(), String> {
    println!("cargo::rustc-check-cfg=cfg(embedded_weights)");
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) else { return Ok(()) };
    let path = PathBuf::from(named);
    let unusable =
        |why: String| format!("{VARIABLE} names a file that cannot be used: `{}`: {why}", path.display());
    let path = path.canonicalize().map_err(|error| unusable(error.to_string()))?;
    let mut beginning = [0; 4];
    File::open(&path)
        .and_then(|mut file| file.read_exact(&mut beginning))
        .map_err(|error| unusable(error.to_string()))?;
    if &beginning != b"GGUF" {
        return Err(unusable("it is not GGUF".to_owned()));
    }
    let sha256 = hash(&path).map_err(|error| unusable(error.to_string()))?;
    println!("cargo::rerun-if-changed={}", path.display());
    println!("cargo::rustc-env=COGN_EMBED_WEIGHTS_SHA256={sha256}");
    println!("cargo::rustc-env=COGN_EMBED_WEIGHTS_FILE={}", path.display());
    println!("cargo::rustc-cfg=embedded_weights");
    Ok(())
}

/// Hashes the file at build time, so that no program start has to.
fn hash(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            length => hash.update(buffer.get(..length).unwrap_or_default()),
        }
    }
    let mut text = String::new();
    for byte in hash.finalize() {
        // Writing to a `String` cannot fail.
        let _never_fails = write!(text, "{byte:02x}");
    }
    Ok(text)
}
