//! Lists the tags of a repository, page by page. Bounded: a list that never ends is refused.

use cognitive_contract::failure::Failure;
use reqwest::Method;
use reqwest::header::LINK;
use serde::Deserialize;

use super::login::RegistryScope;
use super::name::is_tag;
use super::oci::{OciClient, SendMode};
use super::transfer::{BodyBound, SMALL_ANSWER_TIME, WebRequest};
use crate::client::same_place;

/// The most pages. Registries put 50 to 1,000 tags on one. A registry could answer with pages without end.
const MAX_PAGES: usize = 200;
/// The most tags. All of them are held in memory.
const MAX_TAGS: usize = 100_000;
/// The largest page, in bytes. A page is held in memory.
const MAX_PAGE: u64 = 4 * 1024 * 1024;
/// The requested page size. A registry may send fewer tags.
const PAGE: &str = "n=1000";

/// One page. Some registries send `null` for a repository without tags.
#[derive(Deserialize)]
struct TagPage {
    tags: Option<Vec<String>>,
}

impl OciClient {
    /// Returns all tags of a repository, in the registry's order. Invalid tags are skipped, because they could not be
    /// requested.
    pub async fn tags(&self, repository: &str) -> Result<Vec<String>, Failure> {
        let repository = self.host.repository(repository)?;
        let report = self.report(&repository, "");
        let mut url = self.host.url(&repository, "tags/list");
        url.set_query(Some(PAGE));
        let scope = RegistryScope { repository, push: false };
        let way = SendMode::Fetch(BodyBound::AtMost(MAX_PAGE), Some(SMALL_ANSWER_TIME));
        let mut tags: Vec<String> = Vec::new();
        for _ in 0..MAX_PAGES {
            let answer =
                self.exchange(WebRequest::new(Method::GET, url.clone()), way, &scope, &report).await?;
            if answer.status != 200 {
                return Err(report.status(&answer));
            }
            let page: Option<TagPage> = serde_json::from_slice(&answer.body).ok();
            let page = page.ok_or_else(|| report.nonsense("returned an invalid list of tags"))?;
            tags.extend(page.tags.unwrap_or_default().into_iter().filter(|tag| is_tag(tag)));
            let links: Vec<&str> =
                answer.headers.get_all(LINK).iter().filter_map(|link| link.to_str().ok()).collect();
            let Some(next) = links.iter().find_map(|link| next_page(link)) else { return Ok(tags) };
            // The next page must be at the same origin.
            let next = url.join(next).ok().filter(|next| same_place(next, &url));
            url = next.ok_or_else(|| report.nonsense("continues its list of tags on another host"))?;
            if tags.len() > MAX_TAGS {
                break;
            }
        }
        Err(report.nonsense("returned a list of tags without an end"))
    }
}

/// Returns the URL in `</v2/a/tags/list?last=b>; rel="next"`.
fn next_page(header: &str) -> Option<&str> {
    header.split(',').find_map(|link| {
        let (address, rest) = link.trim().strip_prefix('<')?.split_once('>')?;
        let mut parameters = rest.split(';').filter_map(|parameter| parameter.split_once('='));
        let is_next = parameters.any(|(name, value)| {
            name.trim().eq_ignore_ascii_case("rel")
                && value.trim().trim_matches('"').split(' ').any(|rel| rel.eq_ignore_ascii_case("next"))
        });
        is_next.then_some(address)
    })
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::*;

    #[test]
    fn links_to_the_next_page() {
        for (header, expected) in [
            (r#"</v2/a/tags/list?last=b&n=2>; rel="next""#, Some("/v2/a/tags/list?last=b&n=2")),
            (r"<https://h/x>; rel=next", Some("https://h/x")),
            (r#"</p>; rel="prev", </n>; title="t"; rel="last next""#, Some("/n")),
            (r#"</p>; rel="prev""#, None),
            ("</n>", None),
            ("nonsense", None),
            ("", None),
        ] {
            assert_eq!(next_page(header), expected, "{header}");
        }
        let page = Url::parse("https://h/v2/a/tags/list?n=1").unwrap();
        assert_eq!(page.join("/n?last=b").unwrap().as_str(), "https://h/n?last=b");
    }
}
