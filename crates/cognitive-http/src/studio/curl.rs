//! Formats a request as a `curl` command for a shell. Everything is quoted, so that the shell interprets no text of a
//! module or a caller. It expands only the variables that hold secrets.

use std::fmt::Write as _;

use cognitive_contract::ports::RenderedRequest;

/// Returns the command.
pub(crate) fn command(request: &RenderedRequest) -> String {
    let mut text = format!("curl -X {} {}", single(&request.method), single(&request.url));
    for (name, value) in &request.headers {
        let header = format!("{name}: {value}");
        let quoted = if value.contains('$') { double(&header) } else { single(&header) };
        let _ = write!(text, " \\\n  -H {quoted}");
    }
    let _ = write!(text, " \\\n  --data-raw {}", single(&request.body.to_string()));
    text
}

/// Quotes a word so that the shell expands nothing in it.
fn single(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Quotes a word so that the shell expands variables in it and nothing else.
fn double(word: &str) -> String {
    let mut quoted = String::from('"');
    for letter in word.chars() {
        if matches!(letter, '"' | '\\' | '`') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted.push('"');
    quoted.replace("$(", r"\$(")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_of_a_text_is_read_by_a_shell() {
        let request = RenderedRequest {
            method: "POST".to_owned(),
            url: "https://a.example/v1?x=1&y=2".to_owned(),
            headers: vec![
                ("authorization".to_owned(), "Bearer $OPENAI_API_KEY".to_owned()),
                ("x".to_owned(), "it's \"$A\" `id` $(id) \\".to_owned()),
            ],
            body: json!({ "text": "it's $HOME `id` $(id)\n" }),
        };
        let command = command(&request);
        assert_eq!(
            command,
            "curl -X 'POST' 'https://a.example/v1?x=1&y=2' \\\n  -H \"authorization: Bearer $OPENAI_API_KEY\" \\\n  \
             -H \"x: it's \\\"$A\\\" \\`id\\` \\$(id) \\\\\" \\\n  --data-raw '{\"text\":\"it'\\''s $HOME `id` $(id)\\n\"}'"
        );
    }
}
