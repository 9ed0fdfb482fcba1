//! Ports of 127.0.0.1 for tests. A server normally lets the system choose a port and keeps the listener. This module
//! is for the two other cases: no server may listen, or a program needs its port in advance. The system may choose a
//! port again as soon as it is released.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// Systems choose ports for listeners above this range.
const FIRST_NAMED: u16 = 12_000;
const NAMED: u16 = 20_000;
/// The number of ports of one process before they overlap with those of the next process id.
const OF_ONE_PROCESS: u16 = 40;

/// An address at which no server listens and none can while this exists: it is the client side of a connection.
pub struct SilentAddress {
    address: SocketAddr,
    _connection: (TcpStream, TcpListener),
}

impl SilentAddress {
    /// Reserves an address.
    ///
    /// # Panics
    /// If the system has none left.
    #[expect(clippy::expect_used, reason = "in a test, a panic is the report")]
    #[must_use]
    pub fn take() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port to listen at");
        let called = listener.local_addr().expect("the address of a listener");
        let stream = TcpStream::connect(called).expect("a connection on this machine");
        let address = stream.local_addr().expect("the address of a connection");
        Self { address, _connection: (stream, listener) }
    }

    /// The silent address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A free port for a program that cannot choose one itself. It is outside the range of the system's choices, so only
/// another call of this could return it. Processes start at different offsets.
///
/// # Panics
/// If all are taken.
#[expect(clippy::expect_used, reason = "in a test, a panic is the report")]
#[must_use]
pub fn port_to_name() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = process::id() % u32::from(NAMED / OF_ONE_PROCESS) * u32::from(OF_ONE_PROCESS);
    (0..NAMED)
        .map(|_| {
            let offset = (start + u32::from(NEXT.fetch_add(1, Ordering::Relaxed))) % u32::from(NAMED);
            FIRST_NAMED + u16::try_from(offset).unwrap_or_default()
        })
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("a free port")
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn nobody_listens_at_a_silent_address_and_nobody_can() {
        let silent = SilentAddress::take();
        let refused = TcpStream::connect(silent.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(TcpListener::bind(silent.address()).unwrap_err().kind(), ErrorKind::AddrInUse);
    }

    #[test]
    fn a_port_is_named_once_and_is_none_that_the_system_would_choose() {
        let (one, other) = (port_to_name(), port_to_name());
        assert_ne!(one, other);
        let range = FIRST_NAMED..FIRST_NAMED + NAMED;
        assert!(range.contains(&one) && range.contains(&other), "{one} {other}");
        let chosen = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        assert!(!range.contains(&chosen), "{chosen}");
    }
}
