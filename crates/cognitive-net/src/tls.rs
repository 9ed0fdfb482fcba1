//! Explains TLS errors: the cause and a remedy. Does not judge certificates; the verifier has already done that.

use std::error::Error;
use std::io;

use rustls::CertificateError as Certificate;

/// Returns the innermost TLS error behind an error, such as an invalid certificate or a server without TLS. A retry
/// would not help.
pub(crate) fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        // An I/O error hides its inner error: `source` returns the source of the inner error.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = wrapped.map(|wrapped| wrapped as &(dyn Error + 'static)).or_else(|| error.source());
    }
    None
}

/// Returns whether TLS failed.
pub(crate) fn is_tls(error: &(dyn Error + 'static)) -> bool {
    tls_error(error).is_some()
}

/// Returns the cause and a remedy; `None` if the error's own text must be used.
pub(crate) fn explain_tls_error(error: &rustls::Error) -> Option<(&'static str, &'static str)> {
    let certificate = match error {
        rustls::Error::InvalidCertificate(certificate) => certificate,
        rustls::Error::InvalidMessage(_) => {
            return Some((
                "it does not speak TLS",
                "Check host and port; the address of a service without TLS begins with `http://`",
            ));
        }
        _ => return None,
    };
    Some(match certificate {
        Certificate::UnknownIssuer => (
            "its certificate is not signed by an authority that this machine trusts",
            "Check the address; if the service is yours, name a file with the certificate of its \
             authority in `SSL_CERT_FILE`",
        ),
        Certificate::Expired | Certificate::ExpiredContext { .. } => (
            "its certificate has expired",
            "Renew the certificate of the service; check the clock of this machine",
        ),
        Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
            ("its certificate is not valid yet", "Check the clock of this machine")
        }
        Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => (
            "its certificate is for another name",
            "Use a host name that the certificate lists as a `subjectAltName`",
        ),
        // The verifier has no separate variant for it.
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => (
            "its certificate is that of an authority (`CA:TRUE`), which a server must not use",
            "Naming it in `SSL_CERT_FILE` is not enough: create one for the server, as with `openssl req \
             -x509 … -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:HOST`, and \
             name that in `SSL_CERT_FILE`. Or sign one for the server with this authority, and name the \
             authority there",
        ),
        _ => return None,
    })
}
