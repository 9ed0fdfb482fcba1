//! Agents at all servers are notified that their tool list has changed, wherever a module of the shared folder was
//! changed.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use cognitive_testkit::TestRedis;
use serde_json::{Value, json};

use super::service::{EVE, Home, Server, Service, request, send};
use super::streams::{shared, three};

/// An agent that subscribes to changes.
struct Agent(BufReader<TcpStream>);

impl Agent {
    /// Returns an agent that has read the tool list and waits for changes.
    fn listen(server: &Server) -> Self {
        Self::ask(server, "tools/list", json!({})).hear("\"tools\"");
        let mut agent = Self::ask(
            server,
            "subscriptions/listen",
            json!({ "notifications": { "toolsListChanged": true } }),
        );
        agent.hear("notifications/subscriptions/acknowledged");
        agent
    }

    fn ask(server: &Server, method: &str, mut params: Value) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        params["_meta"] = meta;
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let headers = format!(
            "{EVE}accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n"
        );
        Self(BufReader::new(request(&server.address, "POST /mcp", &headers, &body)))
    }

    /// Reads until it gets this text.
    fn hear(&mut self, words: &str) {
        let mut said = String::new();
        loop {
            let begin = said.len();
            assert!(self.0.read_line(&mut said).unwrap() > 0, "{said}");
            if said[begin..].contains(words) {
                return;
            }
        }
    }
}

fn json_in(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
}

#[test]
fn a_module_that_is_changed_at_one_server_is_told_to_the_agents_of_all() {
    let Some(redis) = TestRedis::start() else { return };
    let (home, service) = (Home::new("audit: {enabled: false}\n"), Service::start());
    let more = ["--edit", "cognitive/modules", "--tools", "all", "--no-bundled"].map(str::to_owned);
    let servers = three(&home, &service, &[shared(&redis, "0"), more.to_vec()].concat());
    let mut agents = [0, 1, 2].map(|number: usize| Agent::listen(&servers[number]));
    // Through the page of the first server.
    let (status, files) = send(&servers[0].address, "GET /v1/modules/talk/files", EVE, "");
    assert_eq!(status, 200, "{files}");
    let manifest = std::fs::read_to_string(home.path().join("cognitive/modules/talk/module.yaml")).unwrap();
    let changed = manifest.replace("Answer a question", "Answer a question at length");
    assert_ne!(changed, manifest, "an equal file would change nothing");
    let body = json!({ "hash": json_in(&files)["hash"], "files": { "module.yaml": changed } }).to_string();
    let (status, saved) = send(&servers[0].address, "PUT /v1/modules/talk/files", EVE, &body);
    assert_eq!(status, 200, "{saved}");
    for agent in &mut agents {
        agent.hear("notifications/tools/list_changed");
    }
    // Through the command line, which notifies no server.
    let added = home.cogn(&["init", "more"]);
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    for agent in &mut agents {
        agent.hear("notifications/tools/list_changed");
    }
}
