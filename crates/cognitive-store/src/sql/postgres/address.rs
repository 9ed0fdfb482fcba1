//! Parses a server address: `postgres://USER@HOST:PORT/DATABASE`. The password is configured separately.
//! Connections to other machines use TLS, unless the address disables it (`sslmode=disable`).

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::error::Problem;
use crate::store::without_secrets;

/// The connection settings of a server, and its address without secrets.
#[derive(Debug, Clone)]
pub(super) struct ServerAddress {
    pub(super) config: Config,
    pub(super) shown: String,
}

impl ServerAddress {
    pub(super) fn read(place: &Path, password: Option<&str>, patience: Duration) -> Result<Self, Problem> {
        let text =
            place.to_str().ok_or_else(|| Problem::Inaccessible("the address is not UTF-8".to_owned()))?;
        let shown = without_secrets(text);
        let mut config: Config = text
            .parse()
            // The library's error may quote the address.
            .map_err(|_| {
                Problem::Inaccessible("the address is not `postgres://USER@HOST:PORT/DATABASE`".to_owned())
            })?;
        if config.get_user().is_none() {
            config.user("cogn");
        }
        if config.get_dbname().is_none() {
            config.dbname("cogn");
        }
        if let Some(password) = password.filter(|_| config.get_password().is_none()) {
            config.password(password);
        }
        if !text.contains("sslmode=") {
            config.ssl_mode(if is_local_address(&config) { SslMode::Disable } else { SslMode::Require });
        }
        config.application_name("cogn").connect_timeout(patience);
        Ok(Self { config, shown })
    }
}

/// Returns whether the connection stays on this machine.
fn is_local_address(config: &Config) -> bool {
    let is_local = |host: &Host| {
        // A host without a name is a Unix socket.
        let Host::Tcp(name) = host else { return true };
        name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    config.get_hosts().iter().all(is_local) && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ServerAddress {
        ServerAddress::read(Path::new(text), Some("from-elsewhere"), Duration::from_secs(1)).unwrap()
    }

    #[test]
    fn an_address_shows_no_secret() {
        for text in [
            "postgres://ann:hush@db.example:5433/books",
            "postgres://ann@db.example:5433/books?password=hush",
            "postgresql://ann:hu@sh@db.example:5433/books",
        ] {
            let shown = without_secrets(text);
            assert!(!shown.contains("hush") && !shown.contains("hu@"), "{shown}");
            assert!(shown.ends_with("://ann@db.example:5433/books"), "{shown}");
        }
        let nonsense = "postgres://ann:hush@host:port/x";
        let error = ServerAddress::read(Path::new(nonsense), None, Duration::ZERO).unwrap_err();
        assert!(!error.to_string().contains("hush"), "{error}");
    }

    #[test]
    fn the_password_comes_from_elsewhere_and_only_this_machine_is_spoken_to_in_the_clear() {
        let far = read("postgres://ann@db.example/books");
        assert_eq!(far.config.get_password(), Some(b"from-elsewhere".as_slice()));
        assert_eq!(far.config.get_ssl_mode(), SslMode::Require);
        for here in ["postgres://a@localhost/b", "postgres://a@127.0.0.1/b", "postgres://a@%2Ftmp%2Fx/b"] {
            assert_eq!(read(here).config.get_ssl_mode(), SslMode::Disable, "{here}");
        }
        assert_eq!(
            read("postgres://a@db.example/b?sslmode=disable").config.get_ssl_mode(),
            SslMode::Disable,
            "who says so gets it"
        );
        assert_eq!(read("postgres://db.example").config.get_user(), Some("cogn"));
    }
}
