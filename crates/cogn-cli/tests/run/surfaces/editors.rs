//! The errors that an editor marks in a module, through the YAML language server of editors, with the schemas that
//! `cogn init` and `cogn schema --write` create. Nothing is downloaded.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use cognitive_testkit::{Lack, Running, skip};
use serde_json::{Value, json};

use super::support::Place;

/// The language server, with an editor's protocol.
struct Editor {
    _process: Running,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Editor {
    /// Returns `None` if there is no language server.
    fn start(place: &Place) -> Option<Self> {
        let program =
            std::env::var("COGN_TEST_YAML_SERVER").unwrap_or_else(|_| "yaml-language-server".to_owned());
        let child = Command::new(program)
            .arg("--stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut process = Running(child.ok()?);
        let (to, from) = (process.0.stdin.take().unwrap(), BufReader::new(process.0.stdout.take().unwrap()));
        let mut editor = Self { _process: process, to, from };
        let root = format!("file://{}", place.path("").display());
        let params =
            json!({ "processId": null, "rootUri": root, "capabilities": {}, "workspaceFolders": null });
        editor.send(&json!({ "id": 1, "method": "initialize", "params": params }));
        editor.until(|message| message["id"] == 1 && message.get("result").is_some());
        editor.send(&json!({ "method": "initialized", "params": {} }));
        Some(editor)
    }

    fn send(&mut self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = json!("2.0");
        let text = message.to_string();
        write!(self.to, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        self.to.flush().unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the language server ended");
            if let Some(count) = line.to_lowercase().strip_prefix("content-length:") {
                length = count.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.from.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// Reads messages until one matches; requests of the server get an empty answer.
    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.receive();
            if wanted(&message) {
                return message;
            }
            if let (Some(id), Some(_)) = (message.get("id"), message.get("method")) {
                let count = message["params"]["items"].as_array().map_or(0, Vec::len);
                self.send(&json!({ "id": id, "result": vec![json!({}); count] }));
            }
        }
    }

    /// Returns the marks in a text: line from 1, and the message.
    fn marks(&mut self, place: &Place, file: &str, text: &str) -> Vec<(u64, String)> {
        let uri = format!("file://{}", place.path(file).display());
        let document = json!({ "uri": uri, "languageId": "yaml", "version": 1, "text": text });
        self.send(&json!({ "method": "textDocument/didOpen", "params": { "textDocument": document } }));
        let published = self.until(|message| {
            message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri.as_str()
        });
        self.send(
            &json!({ "method": "textDocument/didClose", "params": { "textDocument": { "uri": uri } } }),
        );
        let found = published["params"]["diagnostics"].as_array().unwrap().iter();
        let mark = |each: &Value| {
            let line = each["range"]["start"]["line"].as_u64().unwrap() + 1;
            (line, each["message"].as_str().unwrap().to_owned())
        };
        found.map(mark).collect()
    }
}

#[test]
fn an_editor_marks_misspelt_and_missing_keys() {
    let place = Place::new();
    for (name, options) in
        [("mine", &[][..]), ("whole", &["--full", "--compose", "--context", "--media", "image"])]
    {
        assert_eq!(place.run(&[&["init", name], options].concat()).exit(), 0);
    }
    let Some(mut editor) = Editor::start(&place) else { return skip(Lack::YamlServer) };
    for name in ["mine", "whole"] {
        let file = format!("cognitive/modules/{name}/module.yaml");
        let good = std::fs::read_to_string(place.path(&file)).unwrap();
        // A new name for each text, because the server caches files.
        let mut number = 0;
        let mut marks = |text: &str| {
            number += 1;
            editor.marks(&place, &format!("cognitive/modules/{name}/module-{number}.yaml"), text)
        };
        assert_eq!(marks(&good), [], "{name}");
        let line = |words: &str| good.lines().position(|line| line.starts_with(words)).unwrap() as u64 + 1;
        let misspelt = marks(&good.replacen("\nexcludes:", "\nexlcudes:", 1));
        assert_eq!(misspelt, [(line("excludes:"), "Property exlcudes is not allowed.".to_owned())]);
        let start = good.find("responsibility:").unwrap();
        let end = start + good[start..].find('\n').unwrap() + 1;
        let missing = marks(&format!("{}{}", &good[..start], &good[end..]));
        assert!(
            missing.iter().any(|(_, message)| message == "Missing property \"responsibility\"."),
            "{missing:?}"
        );
        let wrong = marks(&good.replacen("\ntier: decision", "\ntier: descision", 1));
        assert!(wrong.len() == 1 && wrong[0].0 == line("tier:"), "{wrong:?}");
    }
    let config = "# yaml-language-server: $schema=.cogn/schemas/config.json\nmodel: large\nreask: 1\n";
    assert_eq!(editor.marks(&place, "cognitive.yaml", config), []);
    let slip = editor.marks(&place, "other.yaml", &config.replace("reask", "reaks"));
    assert_eq!(slip, [(3, "Property reaks is not allowed.".to_owned())]);
    // Expectations are JSON, which is also YAML.
    let expected = "# yaml-language-server: $schema=.cogn/schemas/expected.json\n{\"ok\": true, \"label\": {\"$in\": [\"a\"]}}\n";
    assert_eq!(editor.marks(&place, "expected.yaml", expected), []);
    let slip = editor.marks(&place, "slip.yaml", &expected.replace("$in", "$inn"));
    assert!(slip.iter().any(|(line, message)| *line == 2 && message.contains("$inn")), "{slip:?}");
}
