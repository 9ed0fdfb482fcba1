//! The proxies of this machine, from the standard environment variables. A variable that is set but names no proxy is
//! an error: otherwise the call would bypass the configured proxy.

use std::env;

use cognitive_contract::ports::ProviderError;
use hyper::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use reqwest::Url;

/// A placeholder proxy, for checks whether any proxy would be used.
const ANY: &str = "http://127.0.0.1:1";

/// Returns the proxy for this address, if one is configured.
pub(crate) fn system_proxy(to: &Uri) -> Result<Option<Intercept>, ProviderError> {
    check(to, &|name| env::var(name).ok())?;
    Ok(Matcher::from_env().intercept(to))
}

/// Runs only the check, for clients that find their proxies themselves.
pub(crate) fn check_for(base: &Url) -> Result<(), ProviderError> {
    match base.origin().ascii_serialization().parse() {
        Ok(to) => check(&to, &|name| env::var(name).ok()),
        // An invalid address is refused elsewhere.
        Err(_) => Ok(()),
    }
}

/// Checks the variables that apply to this address.
fn check(to: &Uri, variable: &dyn Fn(&str) -> Option<String>) -> Result<(), ProviderError> {
    let first = |names: [&'static str; 2]| {
        let found = names.into_iter().find_map(|name| Some((name, variable(name)?)));
        found.filter(|(_, value)| !value.trim().is_empty())
    };
    let own = match to.scheme_str() {
        Some("http") => ["HTTP_PROXY", "http_proxy"],
        _ => ["HTTPS_PROXY", "https_proxy"],
    };
    let spared = first(["NO_PROXY", "no_proxy"]).map(|(_, value)| value).unwrap_or_default();
    if Matcher::builder().all(ANY).no(spared).build().intercept(to).is_none() {
        return Ok(());
    }
    match first(own).or_else(|| first(["ALL_PROXY", "all_proxy"])) {
        Some((name, value)) if Matcher::builder().all(value.as_str()).build().intercept(to).is_none() => {
            // The value may contain a password, so the message does not repeat it.
            let text = format!(
                "`{name}` is not the address of a proxy: write it as `http://host:3128`, or unset it"
            );
            Err(ProviderError::Misconfigured(text))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(to: &'static str, variables: &[(&str, &str)]) -> Result<(), String> {
        let look = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        check(&Uri::from_static(to), &look).map_err(|error| error.to_string())
    }

    #[test]
    fn a_variable_that_names_no_proxy_is_refused() {
        let far = "https://api.example";
        for value in ["::::", "http://", "not a proxy", "ftp://h:1", "http://[::1"] {
            let error = checked(far, &[("HTTPS_PROXY", value)]).unwrap_err();
            assert!(
                error.contains("`HTTPS_PROXY` is not the address of a proxy") && !error.contains("ftp"),
                "{value}: {error}"
            );
        }
        assert!(checked(far, &[("https_proxy", "::::")]).unwrap_err().contains("`https_proxy`"));
        assert!(checked(far, &[("ALL_PROXY", "::::")]).unwrap_err().contains("`ALL_PROXY`"));
        assert!(checked("http://h", &[("HTTP_PROXY", "::::")]).is_err());
    }

    #[test]
    fn what_is_a_proxy_or_does_not_count_here_is_fine() {
        let far = "https://api.example";
        for variables in [
            &[][..],
            &[("HTTPS_PROXY", "")],
            &[("HTTPS_PROXY", "h:3128")],
            &[("HTTPS_PROXY", "http://me:pw@h:3128")],
            &[("ALL_PROXY", "socks5://h:1")],
            &[("HTTP_PROXY", "::::")],
            &[("HTTPS_PROXY", "http://h:1"), ("ALL_PROXY", "::::")],
            &[("HTTPS_PROXY", "::::"), ("NO_PROXY", "api.example")],
        ] {
            assert_eq!(checked(far, variables), Ok(()), "{variables:?}");
        }
    }
}
