//! Connections from start to end, and probes that call no model.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cognitive_contract::ports::{Attempt, CallSink, ProviderError};
use cognitive_net::{Kind, Secret, probe, provider};

use crate::support::{Act, Heard, KEY, Reply, Server, TEXT, Then, ask, at, call, config, recorded, run};

// A cancelled call must not leave a model running: local servers stop only when the connection is closed.
#[test]
fn dropping_the_call_closes_the_connection() {
    let halfway = recorded("openai/truncated").then(Then::Stall).act();
    for act in [halfway, Act::Stall] {
        run(async {
            let server = Server::start(vec![act]).await;
            let provider = at(Kind::OpenAi, &server);
            let (call, mut heard) = (call(None), Heard::default());
            tokio::select! {
                ended = provider.ask(&call, &mut heard) => panic!("it should still have been running: {ended:?}"),
                () = server.stalls() => {}
            }
            assert!(server.client_left().await, "the server saw no end of the connection");
        });
    }
}

#[test]
fn a_connection_is_used_again() {
    run(async {
        let server = Server::start(vec![recorded("openai/stream").act(); 3]).await;
        let provider = at(Kind::OpenAi, &server);
        for _ in 0..3 {
            assert_eq!(ask(provider.as_ref(), &call(None)).await.heard.text, TEXT);
        }
        assert_eq!(server.connections(), 1);
    });
}

#[test]
fn calls_at_the_same_time_do_not_disturb_each_other() {
    run(async {
        let server = Server::start(vec![recorded("openai/stream").cut(50).act(); 8]).await;
        let provider = at(Kind::OpenAi, &server);
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let provider = provider.clone();
                tokio::spawn(async move { ask(provider.as_ref(), &call(None)).await.heard.text })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), TEXT);
        }
    });
}

/// Counts the pieces of a call.
struct Counting(Arc<AtomicUsize>);

impl CallSink for Counting {
    fn piece(&mut self, _: &str) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn attempt(&mut self, _: Attempt) {}
}

// A fast service must not occupy the thread for its whole answer.
#[test]
fn others_have_their_turn_while_a_long_answer_is_read() {
    run(async {
        let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n";
        let body = event.repeat(2_000) + "data: [DONE]\n\n";
        let server =
            Server::start(vec![Reply::new("200 OK", "content-type: text/event-stream", &body).act()]).await;
        let provider = at(Kind::OpenAi, &server);
        let pieces = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&pieces);
        let other = tokio::spawn(async move {
            let (mut last, mut most_at_once) = (0, 0);
            while last < 2_000 {
                let now = seen.load(Ordering::SeqCst);
                most_at_once = most_at_once.max(now - last);
                last = now;
                tokio::task::yield_now().await;
            }
            most_at_once
        });
        let asked = provider.ask(&call(None), &mut Counting(Arc::clone(&pieces))).await;
        assert_eq!(pieces.load(Ordering::SeqCst), 2_000, "{asked:?}");
        let most_at_once = other.await.unwrap();
        assert!(most_at_once <= 16, "{most_at_once} pieces were read before another task had its turn");
    });
}

#[test]
fn a_look_at_each_service() {
    for (kind, path, listed) in [
        (Kind::OpenAi, "GET /v1/models HTTP/1.1", "gpt-5.4"),
        (Kind::Anthropic, "GET /v1/models?limit=1000 HTTP/1.1", "claude-sonnet-5"),
        (Kind::Gemini, "GET /v1beta/models?pageSize=1000 HTTP/1.1", "gemini-flash-latest"),
        (Kind::Ollama, "GET /api/tags HTTP/1.1", "qwen3:4b"),
    ] {
        run(async {
            let server = Server::start(vec![recorded(&format!("{kind}/models")).act()]).await;
            let found = probe(&config(kind, &server.url)).await.unwrap();
            assert_eq!(server.seen()[0].line, path);
            assert!(server.seen()[0].headers.contains(KEY));
            assert!(found.models.contains(&listed.to_owned()), "{:?}", found.models);
            assert!(found.model_is_listed, "{kind}: {}", found.model);
        });
    }
}

#[test]
fn a_look_that_fails_says_why() {
    run(async {
        let script = vec![
            recorded("openai/error-401").act(),
            recorded("openai/page").act(),
            Reply::new("200 OK", "content-type: application/json", r#"{"data":[]}"#).act(),
        ];
        let server = Server::start(script).await;
        let config = config(Kind::OpenAi, &server.url);
        assert!(matches!(probe(&config).await, Err(ProviderError::Misconfigured(_))));
        assert!(matches!(probe(&config).await, Err(ProviderError::Unavailable(_))));
        let found = probe(&config).await.unwrap();
        assert!(!found.model_is_listed && found.models.is_empty());
        assert_eq!(server.seen().len(), 3, "no look is taken twice");
    });
}

#[test]
fn a_provider_says_who_it_is() {
    let config = config(Kind::Moonshot, "http://127.0.0.1:9").with_key(Secret::new("k"));
    let provider = provider(config).unwrap();
    assert_eq!((provider.name(), provider.target()), ("moonshot", None));
    assert!(provider.structured_output());
    assert_eq!(provider.capabilities(), ["json_mode", "function_calling"]);
}
