//! What this crate asks of one kind of operating system; elsewhere there is a fallback.

use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;

/// Lets a connection count as dead on which nothing that was sent is acknowledged for so long.
#[cfg(target_os = "linux")]
pub(crate) fn limit_unacknowledged(connector: &mut HttpConnector, time: Duration) {
    connector.set_tcp_user_timeout(Some(time));
}

/// The system notices it by itself, later.
#[cfg(not(target_os = "linux"))]
pub(crate) fn limit_unacknowledged(_: &mut HttpConnector, _: Duration) {}
