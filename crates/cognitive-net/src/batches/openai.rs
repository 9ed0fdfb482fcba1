//! The Batch API of OpenAI. A file of requests is uploaded and a batch is created from it. The results are two files,
//! one of them for failed requests. Our name is sent as metadata.

use cognitive_contract::ports::{PortFuture, ProviderError};
use cognitive_ports::batch_service::{CollectReply, PostLimits, PostState, PostedReply, PostedRequest};
use cognitive_ports::openai_api::OpenAiApi;
use reqwest::Url;
use serde_json::{Value, json};

use super::{BatchClient, PostWire, WantedPost, id_of};

/// The boundary between the parts of an upload.
const BOUNDARY: &str = "cogn-7d1f0c52a9b34e66";

pub(super) struct OpenAiPosts;

impl OpenAiPosts {
    /// Returns the URL of something else than calls.
    fn at(batch_client: &BatchClient, path: &str) -> Url {
        batch_client.at(api(batch_client).path(), path)
    }

    fn upload(requests: &[PostedRequest], endpoint: &str) -> Vec<u8> {
        let mut body = format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--{BOUNDARY}\r\n\
             content-disposition: form-data; name=\"file\"; filename=\"requests.jsonl\"\r\ncontent-type: application/jsonl\r\n\r\n"
        )
        .into_bytes();
        for request in requests {
            let id = Value::from(request.id.as_str());
            // The body is JSON already and is inserted unchanged.
            let body_of = &request.body;
            let line = format!(
                "{{\"custom_id\":{id},\"method\":\"POST\",\"url\":\"{endpoint}\",\"body\":{body_of}}}\n"
            );
            body.extend_from_slice(line.as_bytes());
        }
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        body
    }
}

impl PostWire for OpenAiPosts {
    fn limits(&self) -> PostLimits {
        PostLimits { requests: 50_000, bytes: 190_000_000 }
    }

    fn post<'a>(
        &'a self,
        batch_client: &'a BatchClient,
        name: &'a str,
        requests: &'a [PostedRequest],
    ) -> PortFuture<'a, Result<String, ProviderError>> {
        Box::pin(async move {
            let kind = format!("multipart/form-data; boundary={BOUNDARY}");
            let (url, endpoint) = (Self::at(batch_client, "/files"), endpoint(batch_client));
            let upload = Self::upload(requests, &endpoint);
            let answer = batch_client.ask(hyper::Method::POST, &url, &kind, upload).await?;
            let file = batch_client.document(answer).await?;
            let file = id_of(&file, batch_client, "id")?;
            let batch = json!({
                "input_file_id": file,
                "endpoint": endpoint,
                "completion_window": "24h",
                "metadata": { "cogn_batch": name },
            });
            let made = batch_client
                .post_json(&Self::at(batch_client, "/batches"), batch.to_string().into_bytes())
                .await?;
            id_of(&made, batch_client, "id")
        })
    }

    fn list(&self, batch_client: &BatchClient) -> Url {
        let mut url = Self::at(batch_client, "/batches");
        url.set_query(Some("limit=100"));
        url
    }

    fn in_list(&self, list: &Value, wanted: &WantedPost<'_>) -> Option<String> {
        let posts = list.get("data")?.as_array()?;
        let is_ours =
            |post: &&Value| post.pointer("/metadata/cogn_batch").and_then(Value::as_str) == Some(wanted.name);
        posts.iter().find(is_ours)?.get("id")?.as_str().map(str::to_owned)
    }

    fn place(&self, batch_client: &BatchClient, id: &str) -> Url {
        Self::at(batch_client, &format!("/batches/{id}"))
    }

    fn state(&self, post: &Value) -> PostState {
        match post.get("status").and_then(Value::as_str).unwrap_or_default() {
            "completed" | "expired" | "cancelled" => PostState::Ended,
            "failed" => {
                let why = post.pointer("/errors/data/0/message").and_then(Value::as_str);
                PostState::Failed(why.unwrap_or("the batch failed").to_owned())
            }
            _ => PostState::Waiting(
                post.pointer("/request_counts/completed").and_then(Value::as_u64).unwrap_or(0),
            ),
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
            for member in ["output_file_id", "error_file_id"] {
                let Some(file) = post.get(member).and_then(Value::as_str).filter(|file| !file.is_empty())
                else {
                    continue;
                };
                let url = Self::at(batch_client, &format!("/files/{file}/content"));
                batch_client
                    .lines(&url, |line| reply(&line).map_or(Ok(()), |(id, reply)| take(&id, reply)))
                    .await?;
            }
            Ok(())
        })
    }
}

/// Returns the API of the calls.
fn api(batch_client: &BatchClient) -> OpenAiApi {
    let path = batch_client.remote.wire.endpoint().calls.path();
    let is_used = |api: &OpenAiApi| path.ends_with(api.path());
    OpenAiApi::ALL.into_iter().find(is_used).unwrap_or(OpenAiApi::Chat)
}

/// Returns the endpoint for requests, in the form that a batch names it.
fn endpoint(batch_client: &BatchClient) -> String {
    format!("/v1{}", api(batch_client).path())
}

fn reply(line: &Value) -> Option<(String, PostedReply)> {
    let id = line.get("custom_id")?.as_str()?.to_owned();
    let response = line.get("response").filter(|response| response.is_object());
    let Some(response) = response else {
        let why =
            line.pointer("/error/code").or_else(|| line.pointer("/error/message")).and_then(Value::as_str);
        return Some((id, PostedReply::Lost(why.unwrap_or("no answer").to_owned())));
    };
    let status =
        response.get("status_code").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok());
    let body = response.get("body").unwrap_or(response);
    Some((id, PostedReply::Answer { status: status.unwrap_or(500), body: body.to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_errors_and_what_was_never_asked_are_told_apart() {
        let good = json!({ "custom_id": "a", "response": { "status_code": 200, "body": { "choices": [] } }, "error": null });
        let bad = json!({ "custom_id": "b", "response": { "status_code": 400, "body": { "error": {} } }, "error": null });
        let lost = json!({ "custom_id": "c", "response": null, "error": { "code": "batch_expired", "message": "m" } });
        let read = |line: &Value| reply(line).unwrap().1;
        assert_eq!(read(&good), PostedReply::Answer { status: 200, body: "{\"choices\":[]}".to_owned() });
        assert_eq!(read(&bad), PostedReply::Answer { status: 400, body: "{\"error\":{}}".to_owned() });
        assert_eq!(read(&lost), PostedReply::Lost("batch_expired".to_owned()));
    }
}
