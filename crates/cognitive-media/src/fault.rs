//! The failures of this crate, each with one wording. Their texts name types and sizes, never content.

use cognitive_contract::media::MediaType;
use cognitive_contract::{ErrorCode, Failure};
use serde_json::json;

/// The failure for a file of the right type that cannot be read to its end. (E1013)
pub(crate) fn broken_file(kind: MediaType, what: &str) -> Failure {
    Failure::new(ErrorCode::MediaDecodeFailed, format!("the {kind} {what}"))
        .suggest("Open it in a viewer and save it again")
}

/// The usual case of [`broken_file`].
pub(crate) fn cut_short(kind: MediaType) -> Failure {
    broken_file(kind, "is truncated")
}

/// The failure for an item that needs more memory or time than allowed. (E1011)
pub(crate) fn too_much(kind: MediaType, what: &str) -> Failure {
    Failure::new(ErrorCode::MediaTooLarge, format!("the {kind} {what}")).suggest("Send a smaller one")
}

/// The failure for an item with more bytes than requested. (E1011)
pub(crate) fn too_many_bytes(most: u64) -> Failure {
    Failure::new(ErrorCode::MediaTooLarge, format!("the item is larger than the limit of {most} bytes"))
        .with_detail("limit_bytes", json!(most))
        .suggest("Send a smaller item")
}

/// The failure for a file that cannot be read. (E1012)
pub(crate) fn no_file(reason: &str, message: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::MediaFetchFailed, message).with_detail("reason", json!(reason))
}

/// A failure of the server: a full disk, or a process that does not start. (E4000)
pub(crate) fn server_failure(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(ErrorCode::InternalError, format!("{what}: {error}"))
}
