//! The prompts and resources of the conformance suite that no module can provide.

use rmcp::model::{
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, PromptMessage,
    ReadResourceResponse, ReadResourceResult, ResourceContents, Role,
};
use serde_json::{Value, json};

use crate::fixture_tools::{Rounds, elicit};

/// An image of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn said(content: ContentBlock, then: &str) -> GetPromptResponse {
    let messages = [content, ContentBlock::text(then)];
    GetPromptResult::new(messages.map(|each| PromptMessage::new(Role::User, each)).into()).into()
}

/// Returns a prompt, unless it belongs to the real server.
pub(crate) fn prompt(request: &GetPromptRequestParams) -> Option<GetPromptResponse> {
    match request.name.as_str() {
        "test_prompt_with_image" => {
            Some(said(ContentBlock::image(PIXEL, "image/png"), "Look at the picture."))
        }
        "test_prompt_with_embedded_resource" => {
            let uri = request.arguments.as_ref()?.get("resourceUri").and_then(Value::as_str)?;
            let text = ResourceContents::text("A text that comes along.", uri).with_mime_type("text/plain");
            Some(said(ContentBlock::resource(text), "Read what comes along."))
        }
        "test_input_required_result_prompt" => {
            let rounds = Rounds(vec![vec![("user_context", elicit("Which context?", "context"))]]);
            let asked = rounds.next(request.input_responses.as_ref(), None).ok()?;
            Some(match asked {
                Some(required) => required.into(),
                None => said(ContentBlock::text("It has its context."), "Go on."),
            })
        }
        _ => None,
    }
}

/// Returns a resource, unless it belongs to the real server.
pub(crate) fn resource(uri: &str) -> Option<ReadResourceResponse> {
    let contents = match uri {
        "test://static-text" => ResourceContents::text("A text.", uri).with_mime_type("text/plain"),
        "test://static-binary" => ResourceContents::blob(PIXEL, uri).with_mime_type("image/png"),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let text = json!({ "id": id, "data": format!("Data of {id}") }).to_string();
            ResourceContents::text(text, uri).with_mime_type("application/json")
        }
    };
    Some(ReadResourceResult::new(vec![contents]).into())
}
