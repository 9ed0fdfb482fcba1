//! Resources with information about modules: `cognitive://modules` lists them, `cognitive://modules/NAME` describes
//! one as `cognitive_info` does. Never exposes the prompts of authors.

use std::sync::Arc;

use cognitive_contract::{ErrorCode, Failure};
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use serde_json::{Map, Value, json};

use crate::backend::McpBackend;
use crate::search_tools;
use crate::surface::Offer;

const MODULES: &str = "cognitive://modules";
const JSON: &str = "application/json";

/// Returns the list of modules, and each module with its own tool.
pub(crate) fn list(offer: &Offer) -> ListResourcesResult {
    let all = Resource::new(MODULES, "modules")
        .with_description("The modules that are offered, with what each is for")
        .with_mime_type(JSON);
    let each = offer.modules.iter().map(|name| {
        Resource::new(format!("{MODULES}/{name}"), name.clone())
            .with_description(format!("What `{name}` takes and gives"))
            .with_mime_type(JSON)
    });
    ListResourcesResult::with_all_items(std::iter::once(all).chain(each).collect())
}

/// Returns the template for reading any module by its name.
pub(crate) fn templates() -> ListResourceTemplatesResult {
    let one = ResourceTemplate::new(format!("{MODULES}/{{name}}"), "module")
        .with_description("What a module takes and gives")
        .with_mime_type(JSON);
    ListResourceTemplatesResult::with_all_items(vec![one])
}

/// Reads a resource.
pub(crate) async fn read(
    backend: Arc<dyn McpBackend>,
    offer: Arc<Offer>,
    request: ReadResourceRequestParams,
) -> Result<ReadResourceResponse, ErrorData> {
    let uri = request.uri.clone();
    let work = move || match uri.strip_prefix(MODULES) {
        Some("") => Ok(search_tools::list(
            offer.listed_modules(backend.host()),
            &Map::from_iter([("limit".to_owned(), json!(u64::MAX))]),
        )),
        Some(rest) => search_tools::info(&*backend, rest.strip_prefix('/').unwrap_or_default()),
        None => Err(Failure::new(ErrorCode::ModuleNotFound, "no such resource")),
    };
    let found: Result<Value, Failure> = tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|_| Err(Failure::new(ErrorCode::InternalError, "the modules cannot be read")));
    match found {
        Ok(value) => {
            let text = ResourceContents::TextResourceContents {
                uri: request.uri,
                mime_type: Some(JSON.to_owned()),
                text: value.to_string(),
                meta: None,
            };
            Ok(ReadResourceResult::new(vec![text]).into())
        }
        Err(failure) => Err(ErrorData::resource_not_found(
            failure.message().to_owned(),
            Some(json!({ "uri": request.uri })),
        )),
    }
}
