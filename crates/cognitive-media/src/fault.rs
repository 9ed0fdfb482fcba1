//! The failures of this crate, each said in one way. Their texts name types and sizes, never content.

use cognitive_contract::media::MediaType;
use cognitive_contract::{ErrorCode, Failure};
use serde_json::json;

/// Bytes that are of the right type and cannot be read to their end. (E1013)
pub(crate) fn broken(kind: MediaType, what: &str) -> Failure {
    Failure::new(ErrorCode::MediaDecodeFailed, format!("the {kind} {what}"))
        .suggest("Open it in a viewer and save it again")
}

/// The usual case of [`broken`].
pub(crate) fn cut_short(kind: MediaType) -> Failure {
    broken(kind, "is truncated")
}

/// Something that would take more memory or time than it may. (E1011)
pub(crate) fn too_much(kind: MediaType, what: &str) -> Failure {
    Failure::new(ErrorCode::MediaTooLarge, format!("the {kind} {what}")).suggest("Send a smaller one")
}

/// More bytes than wanted. (E1011)
pub(crate) fn too_many_bytes(most: u64) -> Failure {
    Failure::new(ErrorCode::MediaTooLarge, format!("the item is larger than the limit of {most} bytes"))
        .with_detail("limit_bytes", json!(most))
        .suggest("Send a smaller item")
}

/// A file that cannot be had. (E1012)
pub(crate) fn no_file(reason: &str, message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::MediaFetchFailed, message).with_detail("reason", json!(reason))
}

/// A fault on our side: a disk that is full, a process that does not start. (E4000)
pub(crate) fn own(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(ErrorCode::InternalError, format!("{what}: {error}"))
}
