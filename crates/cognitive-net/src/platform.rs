//! Functions that depend on the operating system, with a fallback for the others.

use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;

/// Treats a connection as dead if sent data is not acknowledged within `time`.
#[cfg(target_os = "linux")]
pub(crate) fn limit_unacknowledged(connector: &mut HttpConnector, time: Duration) {
    connector.set_tcp_user_timeout(Some(time));
}

/// Does nothing: the system detects a dead connection itself, but later.
#[cfg(not(target_os = "linux"))]
pub(crate) fn limit_unacknowledged(_: &mut HttpConnector, _: Duration) {}
