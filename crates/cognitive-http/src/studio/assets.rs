//! The files of Studio, built from `studio/` and embedded in the program in compressed form. Without a key only the
//! login page can be read. Every page has a policy that allows its own files and nothing else.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, Uri, header};
use std::sync::Arc;

use crate::app::AppState;
use crate::auth::Client;
use crate::routes;

/// Path, type and compressed bytes of every file.
static FILES: &[(&str, &str, &[u8])] = include!("../../../../studio/dist/assets.rs");

/// The content security policy of Studio pages: nothing inline, nothing from other origins, no embedding in frames.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                                 media-src 'self' data: blob:; connect-src 'self'; font-src 'self'; \
                                 frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// For files whose name changes with their content.
const FOR_EVER: &str = "private, max-age=31536000, immutable";
/// For pages, and files with a fixed name.
const ASK_EACH_TIME: &str = "private, no-cache";

/// Returns the first page: Studio for known clients, otherwise the login; `None` if Studio is disabled.
pub(crate) fn first_page(shared: &AppState, client: &Client) -> Option<Response<Body>> {
    let name = if client.is_known { "index.html" } else { "login.html" };
    shared.config.studio.then(|| file(name)).flatten()
}

/// `GET /login.js`, `/login.css`, `/icon.svg` and `/assets/{file}`.
pub(crate) async fn serve(State(shared): State<Arc<AppState>>, uri: Uri) -> Response<Body> {
    let name = uri.path().trim_start_matches('/');
    let found = shared.config.studio.then(|| file(name)).flatten();
    found.unwrap_or_else(|| routes::no_such_path(&axum::http::Method::GET, &uri))
}

/// The paths of all files, for tests that request each of them.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, ..)| *name)
}

fn file(name: &str) -> Option<Response<Body>> {
    let (_, kind, bytes) = FILES.iter().find(|(known, ..)| *known == name)?;
    let mut response = Response::new(Body::from(*bytes));
    let headers = response.headers_mut();
    let mut put = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    put(header::CONTENT_TYPE, kind);
    put(header::CONTENT_ENCODING, "gzip");
    put(header::CACHE_CONTROL, if name.starts_with("assets/") { FOR_EVER } else { ASK_EACH_TIME });
    put(header::CONTENT_SECURITY_POLICY, POLICY);
    put(header::REFERRER_POLICY, "no-referrer");
    put(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    Some(response)
}

/// Returns whether a client wants a page. Browsers list `text/html`; programs list JSON or nothing.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.any(|value| {
        value.split(',').any(|each| each.split(';').next().is_some_and(|kind| kind.trim() == "text/html"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_compressed_and_the_pages_are_there() {
        for page in ["index.html", "login.html", "login.js", "login.css"] {
            assert!(names().any(|name| name == page), "{page}");
        }
        for (name, kind, bytes) in FILES {
            assert!(bytes.starts_with(&[0x1f, 0x8b]), "{name}");
            assert!(kind.contains('/') && HeaderValue::from_str(kind).is_ok(), "{name}");
        }
    }
}
