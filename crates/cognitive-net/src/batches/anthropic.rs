//! The Message Batches API of Anthropic. One body carries all requests, and the results are JSON lines at a URL that
//! the batch names. A batch cannot carry our name. A batch whose creation response was lost is therefore found by its
//! creation time and request count; the ids of its results confirm it.

use std::time::{Duration, SystemTime};

use cognitive_contract::ports::{PortFuture, ProviderError};
use cognitive_ports::batch_service::{CollectReply, PostLimits, PostState, PostedReply, PostedRequest};
use jiff::Timestamp;
use reqwest::Url;
use serde_json::Value;

use super::{BatchClient, PostWire, WantedPost, id_of};
use crate::client::same_place;

/// The path suffix of the calls URL.
const CALLS: &str = "/messages";
/// The largest clock difference assumed between this machine and the service.
const CLOCKS: Duration = Duration::from_mins(2);

pub(super) struct AnthropicPosts;

impl PostWire for AnthropicPosts {
    fn limits(&self) -> PostLimits {
        PostLimits { requests: 100_000, bytes: 240_000_000 }
    }

    fn post<'a>(
        &'a self,
        batch_client: &'a BatchClient,
        _: &'a str,
        requests: &'a [PostedRequest],
    ) -> PortFuture<'a, Result<String, ProviderError>> {
        Box::pin(async move {
            let requests = requests.iter().map(|request| {
                format!("{{\"custom_id\":{},\"params\":{}}}", Value::from(request.id.as_str()), request.body)
            });
            let body = format!("{{\"requests\":[{}]}}", requests.collect::<Vec<_>>().join(","));
            let made = batch_client
                .post_json(&batch_client.at(CALLS, "/messages/batches"), body.into_bytes())
                .await?;
            id_of(&made, batch_client, "id")
        })
    }

    fn list(&self, batch_client: &BatchClient) -> Url {
        let mut url = batch_client.at(CALLS, "/messages/batches");
        url.set_query(Some("limit=100"));
        url
    }

    fn in_list(&self, list: &Value, wanted: &WantedPost<'_>) -> Option<String> {
        let posts = list.get("data")?.as_array()?;
        let is_ours = |post: &&Value| {
            let made = post
                .get("created_at")
                .and_then(Value::as_str)
                .and_then(|time| time.parse::<Timestamp>().ok());
            let is_new = made.is_some_and(|made| SystemTime::from(made) + CLOCKS >= wanted.since);
            let counts = post.get("request_counts").and_then(Value::as_object);
            let count: u64 =
                counts.into_iter().flat_map(|counts| counts.values().filter_map(Value::as_u64)).sum();
            is_new && count == wanted.count
        };
        posts.iter().find(is_ours)?.get("id")?.as_str().map(str::to_owned)
    }

    fn place(&self, batch_client: &BatchClient, id: &str) -> Url {
        batch_client.at(CALLS, &format!("/messages/batches/{id}"))
    }

    fn state(&self, post: &Value) -> PostState {
        let count = |name: &str| {
            post.pointer(&format!("/request_counts/{name}")).and_then(Value::as_u64).unwrap_or(0)
        };
        match post.get("processing_status").and_then(Value::as_str) {
            Some("ended") => PostState::Ended,
            _ => PostState::Waiting(count("succeeded") + count("errored")),
        }
    }

    fn collect<'a>(
        &'a self,
        batch_client: &'a BatchClient,
        post: Value,
        _: &'a [String],
        take: &'a mut CollectReply<'_>,
    ) -> PortFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            let id = id_of(&post, batch_client, "id")?;
            let usual = batch_client.at(CALLS, &format!("/messages/batches/{id}/results"));
            let named = post.get("results_url").and_then(Value::as_str).and_then(|url| Url::parse(url).ok());
            // The key is sent to the origin of the service only.
            let url = named.filter(|url| same_place(&usual, url)).unwrap_or(usual);
            batch_client.lines(&url, |line| reply(&line).map_or(Ok(()), |(id, reply)| take(&id, reply))).await
        })
    }
}

fn reply(line: &Value) -> Option<(String, PostedReply)> {
    let id = line.get("custom_id")?.as_str()?.to_owned();
    let result = line.get("result")?;
    let reply = match result.get("type").and_then(Value::as_str).unwrap_or_default() {
        "succeeded" => PostedReply::Answer { status: 200, body: result.get("message")?.to_string() },
        "errored" => {
            let error = result.get("error").cloned().unwrap_or_default();
            let kind = error.pointer("/error/type").and_then(Value::as_str).unwrap_or_default();
            PostedReply::Answer { status: status_of(kind), body: error.to_string() }
        }
        other => PostedReply::Lost(other.to_owned()),
    };
    Some((id, reply))
}

/// Maps an error type to the status that a single call would have returned.
fn status_of(kind: &str) -> u16 {
    match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_result_is_what_a_single_call_would_have_been() {
        let read = |result: Value| reply(&json!({ "custom_id": "a", "result": result })).unwrap().1;
        let message = json!({ "type": "succeeded", "message": { "content": [] } });
        assert_eq!(read(message), PostedReply::Answer { status: 200, body: "{\"content\":[]}".to_owned() });
        let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "m" } });
        let PostedReply::Answer { status, .. } = read(json!({ "type": "errored", "error": error })) else {
            panic!()
        };
        assert_eq!(status, 529);
        assert_eq!(read(json!({ "type": "expired" })), PostedReply::Lost("expired".to_owned()));
    }

    #[test]
    fn a_post_is_found_by_its_time_and_its_count() {
        let list = json!({ "data": [
            { "id": "old", "created_at": "2026-01-01T00:00:00Z", "request_counts": { "processing": 2, "succeeded": 1 } },
            { "id": "other", "created_at": "2026-11-18T01:00:00Z", "request_counts": { "processing": 4 } },
            { "id": "ours", "created_at": "2026-11-18T01:00:00Z", "request_counts": { "processing": 2, "succeeded": 1 } },
        ] });
        let since = SystemTime::from("2026-11-18T00:59:00Z".parse::<Timestamp>().unwrap());
        let found = AnthropicPosts.in_list(&list, &WantedPost { name: "", since, count: 3 });
        assert_eq!(found.as_deref(), Some("ours"));
    }
}
