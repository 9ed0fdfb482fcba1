//! The batch API of Gemini with inline requests, which limits a batch to about twenty megabytes. Results come in
//! request order. The keys sent with the requests are not always returned; results without a key are matched by that
//! order.

use cognitive_contract::ports::{PortFuture, ProviderError};
use cognitive_ports::batch_service::{CollectReply, PostLimits, PostState, PostedReply, PostedRequest};
use reqwest::Url;
use serde_json::Value;

use super::{BatchClient, PostWire, WantedPost, id_of};

pub(super) struct GeminiPosts;

impl GeminiPosts {
    fn calls(batch_client: &BatchClient) -> String {
        format!("/models/{}:streamGenerateContent", batch_client.model())
    }

    fn at(batch_client: &BatchClient, path: &str) -> Url {
        batch_client.at(&Self::calls(batch_client), path)
    }
}

impl PostWire for GeminiPosts {
    fn limits(&self) -> PostLimits {
        PostLimits { requests: 10_000, bytes: 15_000_000 }
    }

    fn post<'a>(
        &'a self,
        batch_client: &'a BatchClient,
        name: &'a str,
        requests: &'a [PostedRequest],
    ) -> PortFuture<'a, Result<String, ProviderError>> {
        Box::pin(async move {
            let requests = requests.iter().map(|request| {
                let key = Value::from(request.id.as_str());
                format!("{{\"request\":{},\"metadata\":{{\"key\":{key}}}}}", request.body)
            });
            let requests = requests.collect::<Vec<_>>().join(",");
            let name = Value::from(name);
            let body = format!(
                "{{\"batch\":{{\"display_name\":{name},\"input_config\":{{\"requests\":{{\"requests\":[{requests}]}}}}}}}}"
            );
            let url =
                Self::at(batch_client, &format!("/models/{}:batchGenerateContent", batch_client.model()));
            let made = batch_client.post_json(&url, body.into_bytes()).await?;
            id_of(&made, batch_client, "name")
        })
    }

    fn list(&self, batch_client: &BatchClient) -> Url {
        let mut url = Self::at(batch_client, "/batches");
        url.set_query(Some("pageSize=100"));
        url
    }

    fn in_list(&self, list: &Value, wanted: &WantedPost<'_>) -> Option<String> {
        let posts = list.get("operations").or_else(|| list.get("batches"))?.as_array()?;
        let is_ours = |post: &&Value| {
            let named = ["/metadata/displayName", "/metadata/display_name", "/displayName"];
            named.iter().any(|place| post.pointer(place).and_then(Value::as_str) == Some(wanted.name))
        };
        posts.iter().find(is_ours)?.get("name")?.as_str().map(str::to_owned)
    }

    fn place(&self, batch_client: &BatchClient, id: &str) -> Url {
        Self::at(batch_client, &format!("/{id}"))
    }

    fn state(&self, post: &Value) -> PostState {
        let state = post.pointer("/metadata/state").or_else(|| post.get("state"));
        let state = state.and_then(Value::as_str).unwrap_or_default();
        let why = || {
            post.pointer("/error/message").and_then(Value::as_str).unwrap_or("the batch failed").to_owned()
        };
        // The guides document `JOB_STATE_…`, the reference `BATCH_STATE_…`.
        match state.rsplit('_').next().unwrap_or_default() {
            "SUCCEEDED" | "EXPIRED" | "CANCELLED" => PostState::Ended,
            "FAILED" => PostState::Failed(why()),
            _ if post.get("error").is_some_and(Value::is_object) => PostState::Failed(why()),
            _ if post.get("done").and_then(Value::as_bool) == Some(true) => PostState::Ended,
            _ => {
                let done = post.pointer("/metadata/batchStats/successfulRequestCount");
                let done = done.and_then(|count| count.as_u64().or_else(|| count.as_str()?.parse().ok()));
                PostState::Waiting(done.unwrap_or(0))
            }
        }
    }

    fn collect<'a>(
        &'a self,
        _: &'a BatchClient,
        post: Value,
        ids: &'a [String],
        take: &'a mut CollectReply<'_>,
    ) -> PortFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            let places = [
                "/response/inlinedResponses",
                "/metadata/output/inlinedResponses",
                "/output/inlinedResponses",
            ];
            let found = places.iter().find_map(|place| post.pointer(place));
            // The list may be nested in an object of the same name.
            let replies = found
                .and_then(|found| found.get("inlinedResponses").or(Some(found)))
                .and_then(Value::as_array);
            for (at, item) in replies.into_iter().flatten().enumerate() {
                let key = item.pointer("/metadata/key").and_then(Value::as_str);
                if let Some(id) = key.or_else(|| ids.get(at).map(String::as_str)) {
                    take(id, reply(item)).map_err(ProviderError::Unexpected)?;
                }
            }
            Ok(())
        })
    }
}

fn reply(item: &Value) -> PostedReply {
    if let Some(response) = item.get("response") {
        return PostedReply::Answer { status: 200, body: response.to_string() };
    }
    let Some(error) = item.get("error") else { return PostedReply::Lost("no answer".to_owned()) };
    let code = error.get("code").and_then(Value::as_u64).unwrap_or(13);
    PostedReply::Answer { status: status_of(code), body: serde_json::json!({ "error": error }).to_string() }
}

/// Maps a `google.rpc` code to an HTTP status. Codes that already are HTTP error statuses are returned unchanged.
fn status_of(code: u64) -> u16 {
    match code {
        3 | 9 | 11 => 400,
        16 => 401,
        7 => 403,
        5 => 404,
        8 => 429,
        4 => 504,
        14 => 503,
        400..=599 => u16::try_from(code).unwrap_or(500),
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn states_have_two_spellings_and_errors_two_kinds_of_codes() {
        let state = |word: &str| GeminiPosts.state(&json!({ "metadata": { "state": word } }));
        assert_eq!(
            (state("BATCH_STATE_SUCCEEDED"), state("JOB_STATE_EXPIRED")),
            (PostState::Ended, PostState::Ended)
        );
        assert_eq!(state("BATCH_STATE_RUNNING"), PostState::Waiting(0));
        assert!(matches!(state("JOB_STATE_FAILED"), PostState::Failed(_)));
        for (code, status) in [(3, 400), (8, 429), (503, 503), (2, 500)] {
            let PostedReply::Answer { status: read, .. } = reply(&json!({ "error": { "code": code } }))
            else {
                panic!()
            };
            assert_eq!(read, status);
        }
    }
}
