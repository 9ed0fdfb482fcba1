//! Puts the weights of the embedded model into the program when `COGN_EMBED_WEIGHTS` names their file. Refuses a file
//! that is no model; which one it is, `cogn model verify` says. Without the variable it does nothing.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

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
    println!("cargo::rerun-if-changed={}", path.display());
    println!("cargo::rustc-env=COGN_EMBED_WEIGHTS_FILE={}", path.display());
    println!("cargo::rustc-cfg=embedded_weights");
    Ok(())
}
