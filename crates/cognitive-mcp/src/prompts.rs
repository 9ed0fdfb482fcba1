//! Prompts, which users pick from a menu. Each module with its own tool has a prompt whose arguments are the plain
//! members of its input. The prompt asks the client's model to call the tool. Runs nothing.

use cognitive_contract::text::cut;
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, ListPromptsResult, Prompt, PromptArgument,
    PromptMessage, Role, Tool,
};
use serde_json::{Map, Value};

use crate::surface::Offer;

/// Returns one prompt for each module with its own tool.
pub(crate) fn list(offer: &Offer) -> ListPromptsResult {
    ListPromptsResult::with_all_items(tools(offer).map(prompt).collect())
}

fn tools(offer: &Offer) -> impl Iterator<Item = &Tool> {
    offer.tools.iter().filter(|tool| offer.modules.iter().any(|name| *name == tool.name))
}

fn prompt(tool: &Tool) -> Prompt {
    let arguments: Vec<PromptArgument> = plain_members(&tool.input_schema).collect();
    Prompt::new(tool.name.clone(), tool.description.clone(), Some(arguments))
}

/// Returns the members of an input that users can type.
fn plain_members(input: &Map<String, Value>) -> impl Iterator<Item = PromptArgument> + '_ {
    let required = input.get("required").and_then(Value::as_array);
    let members = input.get("properties").and_then(Value::as_object).into_iter().flatten();
    let is_plain = |schema: &Value| {
        schema.get("enum").is_some()
            || matches!(
                schema.get("type").and_then(Value::as_str),
                Some("string" | "number" | "integer" | "boolean")
            )
    };
    members.filter(move |(_, schema)| is_plain(schema)).map(move |(name, schema)| {
        let is_required = required.is_some_and(|names| names.iter().any(|each| each == name));
        let argument = PromptArgument::new(name.clone()).with_required(is_required);
        match schema.get("description").and_then(Value::as_str) {
            Some(described) => argument.with_description(described),
            None => argument,
        }
    })
}

/// Returns the text that asks for the call.
pub(crate) fn get(offer: &Offer, request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let Some(tool) = tools(offer).find(|tool| tool.name == request.name) else {
        let name = cut(&request.name, 128);
        return Err(ErrorData::invalid_params(format!("unknown prompt: `{name}`"), None));
    };
    let given = request.arguments.clone().unwrap_or_default();
    let missing = plain_members(&tool.input_schema)
        .find(|argument| argument.required == Some(true) && !given.contains_key(&argument.name));
    if let Some(missing) = missing {
        return Err(ErrorData::invalid_params(format!("the argument `{}` is missing", missing.name), None));
    }
    let text = format!(
        "Call the tool `{}` with these arguments, complete them from our conversation where it needs more, and tell me what \
         its envelope says. Read `meta` first: say so if its risk is high or its confidence low.\n\n{}",
        tool.name,
        serde_json::to_string_pretty(&given).unwrap_or_default()
    );
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
}
