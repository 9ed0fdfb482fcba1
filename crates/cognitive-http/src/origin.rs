//! Web origins listed by an operator, normalised to the form that browsers send. An origin that could never match, or
//! that would match unintended pages, is refused when the server starts.

use cognitive_contract::{ErrorCode, Failure};

/// Normalises an origin to the form that browsers send: lower-case scheme and host, and the port only if it is not
/// the default one. (E1001)
pub fn origin(given: &str) -> Result<String, Failure> {
    let refuse = |what: &str, hint: &str| {
        let message = format!("{what}: `{}`", cognitive_contract::text::cut(given, 200));
        Err(Failure::new(ErrorCode::InvalidInput, message).suggest(hint))
    };
    let text = given.trim().to_ascii_lowercase();
    match text.as_str() {
        "*" => {
            return refuse("a wildcard is not an origin", "Name each origin, such as `https://app.example`");
        }
        "null" => {
            let hint =
                "Every sandboxed page has this origin. Serve the page from a distinct origin and name it";
            return refuse("this origin cannot be trusted", hint);
        }
        _ => {}
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return refuse("an origin begins with a scheme", &format!("Write `https://{text}`"));
    };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let place = rest.strip_suffix('/').unwrap_or(rest);
    let hint = "Write scheme, host and optional port, such as `https://app.example:8443`";
    if place.contains(['/', '?', '#']) {
        return refuse(
            "an origin has no path",
            &format!("Write `{scheme}://{}`", place.split(['/', '?', '#']).next().unwrap_or_default()),
        );
    }
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (place, None),
    };
    let Some(port) = port.map_or(Some(None), |port| port.parse::<u16>().ok().map(Some)) else {
        return refuse("invalid port", hint);
    };
    if !place.is_ascii() {
        return refuse(
            "an origin is written in ASCII",
            "Write the host as browsers send it, beginning with `xn--`",
        );
    }
    if !is_scheme || !is_host(host) {
        return refuse("not a web origin", hint);
    }
    let usual = match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    Ok(match port.filter(|port| Some(*port) != usual) {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    })
}

/// Returns whether `host` can be a host: letters, digits, dots and hyphens, or an IPv6 address in brackets.
fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    // S8: origins are compared in the form that browsers send.
    #[test]
    fn an_origin_is_written_as_browsers_send_it() {
        for (given, sent) in [
            ("https://app.example", "https://app.example"),
            ("https://app.example/", "https://app.example"),
            ("HTTPS://App.Example", "https://app.example"),
            (" https://app.example:443 ", "https://app.example"),
            ("http://localhost:80/", "http://localhost"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("https://[::1]:8443", "https://[::1]:8443"),
            ("http://[::1]", "http://[::1]"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        ] {
            assert_eq!(origin(given).unwrap(), sent, "{given}");
        }
    }

    #[test]
    fn what_could_never_match_or_matches_strangers_is_refused_with_a_hint() {
        for (given, hint) in [
            ("*", "Name each origin"),
            ("null", "distinct origin"),
            ("NULL", "distinct origin"),
            ("app.example", "Write `https://app.example`"),
            ("https://app.example/page?x", "Write `https://app.example`"),
            ("https://", "such as `https://app.example:8443`"),
            ("https://*.example", "such as"),
            ("https://a@b.example", "such as"),
            ("https://app.example:99999", "such as"),
            ("https://app.example:", "such as"),
            ("https://münchen.example", "xn--"),
            ("://x", "such as"),
            ("", "https://"),
        ] {
            let failure = origin(given).unwrap_err();
            assert!(failure.suggestion().unwrap().contains(hint), "{given}: {:?}", failure.suggestion());
        }
    }
}
