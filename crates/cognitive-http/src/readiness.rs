//! Checks whether a server accepts work, for health checks of containers and service managers. Minimal images often
//! have no other program for that. Follows no redirect, sends no key, and waits a few seconds at most.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// The timeout of each step: connect, write, read. A server that hangs counts as not ready.
const PATIENCE: Duration = Duration::from_secs(2);

/// The length limit of a status line, in bytes.
const MAX_STATUS_LINE: u64 = 256;

/// Sends `GET /ready`. The error says why the server does not accept work: no server listens, it is stopping, or it
/// is not a `cogn` server.
pub fn check_ready(listens_on: SocketAddr) -> io::Result<()> {
    let address = SocketAddr::new(reachable(listens_on.ip()), listens_on.port());
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_STATUS_LINE)).read_line(&mut line)?;
    let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.split_whitespace().next());
    match status {
        Some("200") => Ok(()),
        Some(status) => Err(io::Error::other(format!("it answered {status}"))),
        None => Err(io::Error::other("it does not speak HTTP")),
    }
}

/// Maps an unspecified address to loopback, where a server that listens on all addresses can be reached.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use cognitive_testkit::SilentAddress;

    use super::*;

    /// The outcome of the check against a server with this response.
    fn told(answer: &'static str) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // Read the whole request: closing a connection with unread data resets it.
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
            let request: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            stream.write_all(answer.as_bytes()).unwrap();
            request
        });
        let asked = check_ready(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port()));
        assert_eq!(server.join().unwrap()[0], "GET /ready HTTP/1.1");
        asked.map_err(|error| error.to_string())
    }

    #[test]
    fn only_a_server_that_takes_work_is_ready() {
        assert_eq!(told("HTTP/1.1 200 OK\r\n\r\n"), Ok(()));
        assert_eq!(told("HTTP/1.1 503 Service Unavailable\r\n\r\n"), Err("it answered 503".to_owned()));
        assert_eq!(told("SSH-2.0-x 200 y\r\n"), Err("it does not speak HTTP".to_owned()));
        assert_eq!(told(""), Err("it does not speak HTTP".to_owned()));
    }

    #[test]
    fn nobody_who_listens_is_not_ready() {
        let silent = SilentAddress::take();
        assert_eq!(check_ready(silent.address()).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
