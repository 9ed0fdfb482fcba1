//! Media on the wire: in the format of each service, without a copy, and back out of answers.

use std::sync::Arc;

use bytes::Bytes;
use cognitive_contract::media::{Category, MediaPart, MediaType, ReportedMedia};
use cognitive_contract::ports::{Example, ModelCall, Provider, ProviderError};
use cognitive_net::{Kind, ProviderConfig, provider};
use serde_json::Value;

use crate::support::{Act, Outcome, Reply, Request, Server, TEXT, ask, call, config, recorded, run, written};

fn part(index: usize, media_type: MediaType) -> MediaPart {
    let base64 = match media_type {
        MediaType::Png => "aW1hZ2U=",
        MediaType::Jpeg => "anBlZw==",
        MediaType::Mp3 => "YXVkaW8=",
        MediaType::Quicktime => "dmlkZW8=",
        _ => "cGRm",
    };
    MediaPart::new(index, media_type, Bytes::from_static(base64.as_bytes()))
}

/// Calls with these media and returns all requests.
fn with_media(
    config: impl Fn(&Server) -> ProviderConfig,
    media: &[(usize, MediaType)],
    script: Vec<Act>,
) -> (Outcome, Vec<Request>) {
    let media: Vec<MediaPart> = media.iter().map(|(index, media_type)| part(*index, *media_type)).collect();
    ask_with(config, script, move |call| call.media = media)
}

fn ask_with(
    config: impl Fn(&Server) -> ProviderConfig,
    script: Vec<Act>,
    change: impl FnOnce(&mut ModelCall),
) -> (Outcome, Vec<Request>) {
    run(async {
        let server = Server::start(script).await;
        let provider = provider(config(&server)).unwrap();
        let mut call = call(provider.target());
        change(&mut call);
        let outcome = ask(provider.as_ref(), &call).await;
        (outcome, server.seen())
    })
}

fn usual(kind: Kind) -> impl Fn(&Server) -> ProviderConfig {
    move |server| config(kind, &server.url)
}

fn model(kind: Kind, model: &str) -> impl Fn(&Server) -> ProviderConfig {
    move |server| config(kind, &server.url).with_model(model)
}

// Every service gets media in its format, whether it streams its answer or not.
#[test]
fn media_in_the_words_of_each_service() {
    use MediaType::{Jpeg, Mp3, Pdf, Png, Quicktime};
    let check = |config: &dyn Fn(&Server) -> ProviderConfig,
                 media: &[(usize, MediaType)],
                 answers: [&str; 2],
                 name: &str| {
        for answer in answers {
            let (outcome, requests) = with_media(config, media, vec![recorded(answer).act()]);
            outcome.ok();
            assert_eq!(outcome.heard.text, TEXT, "{name}");
            assert_eq!(requests[0].json(), written(name), "{name}");
        }
    };
    let (openai, router) =
        (["openai/stream", "openai/whole"], ["compatible/openrouter-image-stream", "openai/whole"]);
    check(&usual(Kind::OpenAi), &[(0, Png), (2, Pdf)], openai, "openai/media");
    check(&model(Kind::OpenAi, "gpt-audio-1.5"), &[(1, Mp3)], openai, "openai/audio");
    check(&usual(Kind::OpenRouter), &[(0, Png), (1, Mp3), (2, Pdf)], router, "compatible/openrouter-media");
    let anthropic = ["anthropic/stream", "anthropic/whole"];
    check(&usual(Kind::Anthropic), &[(0, Png), (2, Pdf)], anthropic, "anthropic/media");
    let everything = [(0, Png), (1, Mp3), (2, Pdf), (3, Quicktime)];
    check(&usual(Kind::Gemini), &everything, ["gemini/stream", "gemini/whole"], "gemini/media");
    check(&usual(Kind::Ollama), &[(0, Png), (4, Jpeg)], ["ollama/stream", "ollama/whole"], "ollama/media");
}

#[test]
fn media_belong_to_the_input_and_not_to_an_example() {
    for (kind, answer, place, content) in [
        (Kind::OpenAi, "openai/stream", "/messages/3", "content"),
        (Kind::Anthropic, "anthropic/stream", "/messages/2", "content"),
        (Kind::Gemini, "gemini/stream", "/contents/2", "parts"),
        (Kind::Ollama, "ollama/stream", "/messages/3", "images"),
    ] {
        let (outcome, requests) = ask_with(usual(kind), vec![recorded(answer).act()], |call| {
            call.examples = vec![Example { input: "?".to_owned(), answer: "{}".to_owned() }];
            call.media = vec![part(0, MediaType::Png)];
        });
        outcome.ok();
        let body = requests[0].json();
        let turn = body.pointer(place).unwrap();
        assert!(turn[content].is_array() && turn.to_string().contains("aW1hZ2U="), "{kind}: {turn}");
        assert_eq!(body.to_string().matches("aW1hZ2U=").count(), 1, "{kind}");
    }
}

// The length is known before the first byte, and a retry sends the same bytes.
#[test]
fn a_large_medium_is_sent_with_its_length_and_again() {
    let large = Bytes::from("QUJD".repeat(500_000));
    let again = recorded("openai/error-503").act();
    let (outcome, requests) =
        ask_with(usual(Kind::OpenAi), vec![again, recorded("openai/stream").act()], |call| {
            call.media = vec![MediaPart::new(0, MediaType::Png, large.clone())];
        });
    outcome.ok();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert!(!request.headers.contains("transfer-encoding"), "{}", request.headers);
        assert!(request.headers.contains(&format!("content-length: {}", request.body.len())));
        let url = request.json()["messages"][1]["content"][1]["image_url"]["url"].take();
        assert_eq!(url.as_str().unwrap().len(), "data:image/png;base64,".len() + large.len());
    }
}

#[test]
fn what_is_not_base64_is_sent_to_nobody() {
    let (outcome, requests) = ask_with(usual(Kind::OpenAi), vec![recorded("openai/stream").act()], |call| {
        call.media =
            vec![MediaPart::new(0, MediaType::Png, Bytes::from_static(b"\"}]}],\"model\":\"dear\""))];
    });
    assert!(matches!(outcome.error(), ProviderError::Unexpected(_)));
    assert_eq!(requests.len(), 0);
}

// PIPE-009: a request without the schema does not give a model vision.
#[test]
fn pipe_009_a_model_without_eyes_is_asked_once_per_try() {
    let blind = |answer: Reply| {
        let config = |server: &Server| config(Kind::LlamaCpp, &server.url).with_media([Category::Image]);
        with_media(config, &[(0, MediaType::Png)], vec![answer.act(); 3])
    };
    let (outcome, requests) =
        blind(Reply::new("400 Bad Request", "", r#"{"error":{"message":"image input is not supported"}}"#));
    assert!(matches!(outcome.error(), ProviderError::Rejected(_)), "{:?}", outcome.error());
    assert_eq!(requests.len(), 1);
    let (outcome, requests) = blind(recorded("compatible/llama-cpp-blind"));
    assert!(outcome.error().to_string().contains("image input is not supported"), "{:?}", outcome.error());
    assert!(requests.iter().all(|request| request.json()["response_format"]["type"] == "json_schema"));
}

// ERR-015: a media item that the service repeats is not shown.
#[test]
fn err_015_no_error_repeats_a_medium() {
    let data = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5eg==";
    let body = format!(r#"{{"error":{{"message":"cannot read data:image/png;base64,{data}"}}}}"#);
    let (outcome, _) =
        ask_with(usual(Kind::OpenAi), vec![Reply::new("400 Bad Request", "", &body).act()], |call| {
            call.media = vec![MediaPart::new(0, MediaType::Png, Bytes::from(data))];
        });
    assert_eq!(outcome.error(), &ProviderError::Rejected("openai answered 400".to_owned()));
}

fn built(config: ProviderConfig) -> Arc<dyn Provider> {
    provider(config.with_base_url("http://127.0.0.1:9")).unwrap()
}

// The media that each service is assumed to accept; others are refused before a request. (CAP-011)
#[test]
fn what_each_service_takes() {
    use Category::{Audio, Document, Image, Video};
    let takes = |config: ProviderConfig| {
        let provider = built(config);
        Category::ALL.into_iter().filter(|category| provider.takes(*category).is_some()).collect::<Vec<_>>()
    };
    let of = |kind: Kind| config(kind, "http://127.0.0.1:9");
    for (kind, expected) in [
        (Kind::OpenAi, vec![Image, Document]),
        (Kind::Anthropic, vec![Image, Document]),
        (Kind::Gemini, vec![Image, Audio, Video, Document]),
        (Kind::Ollama, vec![Image]),
        (Kind::OpenRouter, vec![Image, Audio, Document]),
        (Kind::Vllm, vec![Image, Audio]),
        (Kind::Groq, vec![Image]),
        (Kind::Compatible, vec![Image]),
        (Kind::DeepSeek, vec![]),
        (Kind::LlamaCpp, vec![]),
    ] {
        assert_eq!(takes(of(kind)), expected, "{kind}");
    }
    assert_eq!(takes(of(Kind::OpenAi).with_model("gpt-audio-1.5")), [Image, Audio, Document]);
    // The configuration overrides the default, except for media that the API cannot carry.
    assert_eq!(takes(of(Kind::LlamaCpp).with_media([Image, Audio, Video])), [Image, Audio]);
    assert_eq!(takes(of(Kind::Ollama).with_media(Category::ALL)), [Image]);
    assert_eq!(takes(of(Kind::Gemini).with_media([])), []);
}

#[test]
fn an_image_is_no_larger_than_a_service_takes() {
    for (kind, side, largest) in [
        (Kind::OpenAi, 2048, Some(20 << 20)),
        (Kind::Anthropic, 1568, Some(3_932_160)),
        (Kind::Gemini, 3072, Some(71_250_000)),
        (Kind::Ollama, 2048, None),
        (Kind::Groq, 2048, Some(2_925_000)),
    ] {
        let form = built(config(kind, "http://127.0.0.1:9")).takes(Category::Image).unwrap();
        assert_eq!((form.longest_side, form.largest), (Some(side), largest), "{kind}");
        assert_eq!(form.types[0], MediaType::Jpeg, "{kind}");
    }
}

/// Requests an image in addition to the text.
fn drawn(kind: Kind, name: &str, answer: &str) -> (Outcome, Value) {
    let script = vec![recorded(answer).act()];
    let (outcome, requests) = ask_with(model(kind, name), script, |call| call.wants_media = true);
    (outcome, requests[0].json())
}

#[test]
fn images_of_an_answer_come_beside_its_text() {
    let image = ReportedMedia { media_type: "image/png".to_owned(), base64: "aW1hZ2U=".to_owned() };
    for (kind, name, service) in [
        (Kind::Gemini, "gemini-3-pro-image", "gemini/image"),
        (Kind::OpenRouter, "google/gemini-3-pro-image", "compatible/openrouter-image"),
    ] {
        for shape in ["stream", "whole"] {
            let (outcome, request) = drawn(kind, name, &format!("{service}-{shape}"));
            assert_eq!(request, written(service), "{service}");
            // An image within a thought is ignored.
            assert_eq!(outcome.ok().media, std::slice::from_ref(&image), "{service} {shape}");
            assert_eq!(outcome.heard.text, TEXT, "{service} {shape}");
        }
    }
}

#[test]
fn a_model_that_draws_nothing_is_not_asked_to() {
    let (outcome, request) = drawn(Kind::Gemini, "gemini-flash-latest", "gemini/stream");
    assert!(outcome.ok().media.is_empty());
    assert!(request["generationConfig"].get("responseModalities").is_none());
    let (_, request) = drawn(Kind::OpenRouter, "openrouter/auto", "openai/stream");
    assert!(request.get("modalities").is_none());
}

// An answer with an image may be longer than any text. Without a request for one, the usual limit applies.
#[test]
fn an_image_may_be_large_where_one_is_wanted() {
    let data = "QUJD".repeat(5_000_000);
    let frame = format!(
        r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{{}}"}},{{"inlineData":{{"mimeType":"image/png","data":"{data}"}}}}]}},"finishReason":"STOP"}}]}}"#
    );
    let answer =
        Reply::new("200 OK", "content-type: text/event-stream", &format!("data: {frame}\n\n")).cut(1 << 16);
    let asked = |wants| {
        let script = vec![answer.clone().act(); 3];
        ask_with(model(Kind::Gemini, "gemini-3-pro-image"), script, |call| call.wants_media = wants).0
    };
    assert_eq!(asked(true).ok().media[0].base64.len(), data.len());
    assert!(matches!(asked(false).error(), ProviderError::Interrupted(_)));
}
