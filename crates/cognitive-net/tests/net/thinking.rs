//! Thinking budgets in the format of each service: the request, the reported outcome, and that thoughts never become
//! text.

use cognitive_contract::ports::ModelCall;
use cognitive_contract::thinking::ThoughtOutcome;
use cognitive_net::Kind;
use serde_json::{Value, json};

use crate::support::{Outcome, Reply, Server, TEXT, ask, at, call, recorded, run};

/// Runs one call per budget and returns the outcomes and the bodies of all requests.
fn asked(kind: Kind, thoughts: &[u32], script: Vec<Reply>) -> (Vec<Outcome>, Vec<Value>) {
    run(async {
        let server = Server::start(script.into_iter().map(Reply::act).collect()).await;
        let provider = at(kind, &server);
        let mut outcomes = Vec::new();
        for tokens in thoughts {
            let mut call: ModelCall = call(provider.target());
            call.thinking = Some(*tokens);
            outcomes.push(ask(provider.as_ref(), &call).await);
        }
        (outcomes, server.seen().iter().map(crate::support::Request::json).collect())
    })
}

/// Returns a refusal with the message of a service.
fn refusal(message: &str) -> Reply {
    let body = json!({ "error": { "message": message, "type": "invalid_request_error" } }).to_string();
    Reply::new("400 Bad Request", "content-type: application/json", &body)
}

/// Returns the members that differ from a request without thinking settings, and the reported outcome.
fn news(kind: Kind, recording: &str, tokens: u32) -> (Value, ThoughtOutcome) {
    let (outcomes, bodies) = asked(kind, &[tokens], vec![recorded(recording)]);
    let plain = run(async {
        let server = Server::start(vec![recorded(recording).act()]).await;
        let provider = at(kind, &server);
        ask(provider.as_ref(), &call(provider.target())).await.ok();
        server.seen()[0].json()
    });
    let fresh = |(name, value): (&String, &Value)| {
        (plain.get(name) != Some(value)).then(|| (name.clone(), value.clone()))
    };
    let added = bodies[0].as_object().unwrap().iter().filter_map(fresh).collect();
    (Value::Object(added), outcomes[0].ok().thinking.unwrap())
}

// The lines of the table: service, recording, budget, outcome, and the members that are added. The answer keeps its 900 tokens:
// the budget is added to them. A budget of zero turns thinking off.
#[test]
fn each_service_is_asked_in_its_own_words_and_the_answer_keeps_its_room() {
    for line in include_str!("thinking.txt").lines() {
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().unwrap();
        let (service, recording) = (word(), word());
        let (tokens, outcome, expected) = (word().parse().unwrap(), word(), word());
        let expected: Value = serde_json::from_str(expected).unwrap();
        let (added, reported) = news(Kind::parse(service).unwrap(), recording, tokens);
        assert_eq!((added, format!("{reported:?}").as_str()), (expected, outcome), "{line}");
    }
}

#[test]
fn anthropic_thinks_within_a_budget_and_without_a_temperature() {
    let (outcomes, bodies) = asked(Kind::Anthropic, &[2000, 5], vec![recorded("anthropic/stream"); 2]);
    let [body, short] = &bodies[..] else { panic!("{bodies:?}") };
    assert_eq!(body["thinking"], json!({ "type": "enabled", "budget_tokens": 2000 }));
    assert_eq!((&body["max_tokens"], body.get("temperature")), (&json!(2900), None));
    assert!(body.pointer("/output_config/format/schema").is_some(), "the contract binds what follows");
    assert_eq!(outcomes[0].ok().thinking, Some(ThoughtOutcome::Bounded));
    // The service accepts no smaller budget.
    assert_eq!((&short["thinking"]["budget_tokens"], &short["max_tokens"]), (&json!(1024), &json!(1924)));
}

#[test]
fn anthropic_models_without_budgets_are_told_how_hard_to_think_and_it_is_remembered() {
    let refused =
        refusal("\"thinking.type.enabled\" is not supported for this model. Use adaptive thinking.");
    let answer = || recorded("anthropic/stream");
    let (outcomes, bodies) = asked(Kind::Anthropic, &[9000, 9000], vec![refused, answer(), answer()]);
    let modes: Vec<&Value> = bodies.iter().map(|body| &body["thinking"]["type"]).collect();
    assert_eq!(modes, ["enabled", "adaptive", "adaptive"]);
    assert_eq!(bodies[1]["output_config"]["effort"], "high");
    assert!(bodies[1].pointer("/output_config/format/schema").is_some());
    assert_eq!(outcomes[1].ok().thinking, Some(ThoughtOutcome::Effort));
}

#[test]
fn gemini_has_a_budget_and_a_level_where_that_is_refused() {
    let answer = || recorded("gemini/stream");
    let refused = refusal("thinking_budget is not supported for this model; use thinking_level");
    let (outcomes, bodies) = asked(Kind::Gemini, &[500, 500], vec![answer(), refused, answer()]);
    let config = |at: usize| &bodies[at]["generationConfig"];
    assert_eq!(config(0)["thinkingConfig"], json!({ "thinkingBudget": 500 }));
    assert_eq!(config(0)["maxOutputTokens"], 1400);
    assert_eq!(config(2)["thinkingConfig"], json!({ "thinkingLevel": "low" }));
    let became: Vec<_> = outcomes.iter().map(|outcome| outcome.ok().thinking.unwrap()).collect();
    assert_eq!(became, [ThoughtOutcome::Bounded, ThoughtOutcome::Effort]);
}

// The thinking setting is dropped before the binding, whatever else the complaint names.
#[test]
fn a_model_that_cannot_think_is_asked_without_and_the_schema_stays() {
    for (kind, complaint, answer) in [
        (Kind::OpenAi, "Unrecognized request argument supplied: reasoning_effort", "openai/stream"),
        (Kind::Ollama, "\"llama3.2\" does not support thinking", "ollama/stream"),
        (
            Kind::Qwen,
            "Json mode response is not supported when enable_thinking is true",
            "compatible/groq-stream",
        ),
    ] {
        let replies = vec![refusal(complaint), recorded(answer), recorded(answer)];
        let (outcomes, bodies) = asked(kind, &[500, 500], replies);
        let text = |body: &Value| body.to_string();
        assert_eq!(bodies.len(), 3, "{kind}: remembered");
        assert!(bodies[1..].iter().all(|body| !text(body).contains("think\"")), "{kind}");
        assert!(bodies[1..].iter().all(|body| !text(body).contains("reasoning_effort")), "{kind}");
        let formats: Vec<_> =
            bodies.iter().map(|body| body.get("response_format").or_else(|| body.get("format"))).collect();
        assert!(formats[0].is_some() && formats.windows(2).all(|pair| pair[0] == pair[1]), "{kind}");
        for outcome in &outcomes {
            assert_eq!(outcome.ok().thinking, Some(ThoughtOutcome::Ignored), "{kind}");
        }
    }
}

#[test]
fn thoughts_are_counted_and_are_no_text() {
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 20, "completion_tokens_details": { "reasoning_tokens": 12 } });
    let body = [
        json!({ "choices": [{ "index": 0, "delta": { "reasoning": "SECRET thought" } }] }),
        json!({ "choices": [{ "index": 0, "delta": { "reasoning_content": "SECRET thought", "content": TEXT } }] }),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }], "usage": usage }),
    ];
    let frames = body.iter().map(ToString::to_string).chain(["[DONE]".to_owned()]);
    let body = frames.map(|frame| format!("data: {frame}\n\n")).collect::<Vec<_>>().concat();
    let reply = Reply::new("200 OK", "content-type: text/event-stream", &body);
    let (outcomes, _) = asked(Kind::OpenRouter, &[64], vec![reply]);
    assert_eq!(outcomes[0].heard.text, TEXT);
    let usage = outcomes[0].ok().usage.unwrap();
    assert_eq!((usage.output_tokens, usage.thinking_tokens), (20, 12));
}
