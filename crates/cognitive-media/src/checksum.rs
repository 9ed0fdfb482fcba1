//! Checksums of media. A checksum guards against damage in transit, not against malice: `md5` and `crc32` are accepted
//! because callers have them.

use cognitive_contract::media::Checksum;
use cognitive_contract::{ErrorCode, Failure};
use md5::Md5;
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// A hasher that reads its input in chunks.
#[derive(Clone)]
pub(crate) enum Hasher {
    Sha256(Sha256),
    Md5(Md5),
    Crc32(crc32fast::Hasher),
}

impl Hasher {
    /// Creates a hasher; `None` for an algorithm that the contract does not have.
    pub(crate) fn new(algorithm: &str) -> Option<Self> {
        Some(match algorithm {
            "sha256" => Self::Sha256(Sha256::new()),
            "md5" => Self::Md5(Md5::new()),
            "crc32" => Self::Crc32(crc32fast::Hasher::new()),
            _ => return None,
        })
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Md5(hasher) => hasher.update(bytes),
            Self::Crc32(hasher) => hasher.update(bytes),
        }
    }

    /// Returns the hexadecimal digits, in lower case.
    pub(crate) fn finish(self) -> String {
        match self {
            Self::Sha256(hasher) => hex(&hasher.finalize()),
            Self::Md5(hasher) => hex(&hasher.finalize()),
            Self::Crc32(hasher) => format!("{:08x}", hasher.finalize()),
        }
    }
}

/// Formats bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _a_string_takes_everything = write!(text, "{byte:02x}");
        text
    })
}

/// Checks bytes against their stated checksum. (E1020)
pub(crate) fn verify(bytes: &[u8], checksum: Checksum<'_>) -> Result<(), Failure> {
    // The contract has validated the algorithm, so this branch is not expected.
    let Some(mut hasher) = Hasher::new(checksum.algorithm) else { return Err(mismatch(checksum.algorithm)) };
    hasher.update(bytes);
    compare(hasher, checksum.algorithm, checksum.value)
}

pub(crate) fn compare(hasher: Hasher, algorithm: &str, expected: &str) -> Result<(), Failure> {
    if hasher.finish().eq_ignore_ascii_case(expected) { Ok(()) } else { Err(mismatch(algorithm)) }
}

fn mismatch(algorithm: &str) -> Failure {
    Failure::new(
        ErrorCode::ChecksumMismatch,
        format!("the media item does not match its checksum: `{algorithm}`"),
    )
    .with_detail("algorithm", json!(algorithm))
    .suggest("Send it again, or correct the checksum")
}

#[cfg(test)]
mod tests {
    use super::*;

    // EXT-MEDIA: `checksum: {algorithm: sha256 | md5 | crc32, value}`.
    #[test]
    fn ext_media_each_algorithm_gives_its_published_value() {
        let sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for (algorithm, value) in
            [("sha256", sha), ("md5", "900150983cd24fb0d6963f7d28e17f72"), ("crc32", "352441C2")]
        {
            assert!(verify(b"abc", Checksum { algorithm, value }).is_ok(), "{algorithm}");
            let wrong = verify(b"abd", Checksum { algorithm, value }).unwrap_err();
            assert_eq!(wrong.code().number(), "E1020", "{algorithm}");
        }
        assert!(verify(b"", Checksum { algorithm: "sha1", value: "" }).is_err());
    }
}
