//! Data that must not reach a model, a message, a record or another address: passwords and signatures in media
//! addresses, local folders, the key in any form, and answers of other users. Also errors on the way to the service
//! that must name their cause: proxies, certificates, redirects.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::media::{media_server, put_pictures};
use super::stub::{Act, Stub, good, piece, streamed};
use super::{KEY, Run};

/// The secrets in the addresses of these tests.
const HIDDEN: [&str; 5] = ["alice", "pa55word", "X-Amz-Signature", "s1gnature", "fr4gment"];

/// Returns a signed address, as object stores create it.
fn signed(web: &Stub) -> String {
    format!("http://alice:pa55word@{}/x.png?X-Amz-Signature=s1gnature#fr4gment", web.place)
}

fn plain_answer() -> Value {
    json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" }, "data": { "rationale": "r" } })
}

/// Writes a module into the working folder of a run.
fn module(run: &Run, name: &str, more: &str, files: &[(&str, &str)]) {
    let folder = run.home.path().join("cognitive/modules").join(name);
    fs::create_dir_all(folder.join("examples")).unwrap();
    let manifest = format!("name: {name}\nversion: 1.0.0\nresponsibility: Look\ntier: decision\n{more}\n");
    fs::write(folder.join("module.yaml"), manifest).unwrap();
    fs::write(folder.join("prompt.md"), "Look at it.\n").unwrap();
    let schema = r#"{"input": {"type": "object"}, "data": {"type": "object", "required": ["rationale"]}}"#;
    fs::write(folder.join("schema.json"), schema).unwrap();
    for (file, text) in files {
        fs::write(folder.join(file), text).unwrap();
    }
}

/// Creates a user who may fetch from this server, and whose audit stores inputs.
fn looking(web: &Stub) -> Run {
    let run = Run::new(None);
    run.configure(&format!(
        "media: {{trusted_origins: ['http://{}']}}\naudit: {{payloads: true}}\n",
        web.place
    ));
    run
}

fn told(service: &Stub) -> String {
    service.asked().concat()
}

/// Runs a module and returns everything that the service, the terminal and the audit got.
fn seen(run: &Run, service: &Stub, module: &str, input: &Value) -> (i32, String, String) {
    let input = input.to_string();
    let place = service.url();
    let args = ["run", module, "--input", &input, "--receipt", "--base-url", &place, "--model", "gpt-4o"];
    let output = run.cogn(&args);
    let books = run.cogn(&["audit", "export", "--jsonl"]).out;
    (output.code, told(service), format!("{}{books}", output.all))
}

fn assert_hidden(text: &str, what: &str) {
    for secret in HIDDEN {
        assert!(!text.contains(secret), "{what} holds {secret}: {text}");
    }
}

const IMAGES: &str = "modalities: {input: [text, image]}";

// M4: wherever an item is in the input, the model reads its location without the credentials.
#[test]
fn m4_a_model_reads_no_password_and_no_signature_of_a_media_address() {
    let web = media_server();
    let item = || json!({ "type": "url", "url": signed(&web), "media_type": "image/png" });
    for input in [json!({ "image": item() }), json!({ "deep": { "list": [[{ "in": item() }], "text"] } })] {
        let (run, service) = (looking(&web), Stub::start(vec![Act::stream(streamed(&plain_answer()))]));
        module(&run, "looker", IMAGES, &[]);
        let (code, sent, said) = seen(&run, &service, "looker", &input);
        assert_eq!(code, 0, "{said}");
        assert!(
            sent.contains(&format!("http://{}/x.png", web.place)) && sent.contains("data:image/png"),
            "{sent}"
        );
        assert_hidden(&sent, "the request");
        assert_hidden(&said, "the output or the books");
        let prompt = run.cogn(&["prompt", "looker", "--input", &input.to_string()]);
        assert_eq!(prompt.code, 0, "{}", prompt.all);
        assert_hidden(&prompt.all, "the prompt");
    }
    assert!(
        web.asked().iter().all(|asked| asked.contains("X-Amz-Signature=s1gnature")),
        "it was fetched as it is"
    );
}

// M4: the same applies to a template that inserts the input itself.
#[test]
fn m4_a_template_places_no_secret_either() {
    let web = media_server();
    let (run, service) = (looking(&web), Stub::start(vec![Act::stream(streamed(&plain_answer()))]));
    module(&run, "looker", IMAGES, &[("prompt.md", "Look at $INPUT and at ${input.image.url}.\n")]);
    let input = json!({ "image": { "type": "url", "url": signed(&web), "media_type": "image/png" } });
    let (code, sent, said) = seen(&run, &service, "looker", &input);
    assert_eq!(code, 0, "{said}");
    assert_hidden(&sent, "the request");
}

// M4: the model reads only the name of a file.
#[test]
fn m4_a_model_reads_no_folder_of_this_machine() {
    let (run, service) = (Run::new(None), Stub::start(vec![Act::stream(streamed(&plain_answer()))]));
    put_pictures(run.home.path());
    run.configure("audit: {payloads: true}\n");
    module(&run, "looker", IMAGES, &[]);
    let home = run.home.path().canonicalize().unwrap();
    let path = home.join("drawing.png");
    let (code, sent, said) =
        seen(&run, &service, "looker", &json!({ "image": { "type": "file", "path": path } }));
    assert_eq!(code, 0, "{said}");
    assert!(sent.contains("\\\"path\\\":\\\"drawing.png\\\""), "{sent}");
    let folder = home.to_str().unwrap();
    assert!(!sent.contains(folder), "{sent}");
    let books = run.cogn(&["audit", "export", "--jsonl"]).out;
    assert!(!books.contains(&format!("{folder}/drawing.png")), "{books}");
}

// M4: worked examples, context, a composition and its parts.
#[test]
fn m4_examples_context_and_compositions_hide_the_same() {
    let web = media_server();
    let item = json!({ "type": "url", "url": signed(&web), "media_type": "image/png" });
    let answers = || Stub::start(vec![Act::stream(streamed(&plain_answer()))]);

    let (run, service) = (looking(&web), answers());
    let example = json!({ "image": item }).to_string();
    let files = [
        ("examples/1.input.json", example.as_str()),
        ("examples/1.answer.json", &plain_answer().to_string()),
    ];
    module(&run, "looker", IMAGES, &files);
    let (code, sent, said) = seen(&run, &service, "looker", &json!({ "text": "none" }));
    assert_eq!(code, 0, "{said}");
    assert!(sent.contains("/x.png"), "the example is sent: {sent}");
    assert_hidden(&sent, "an example");

    let (run, service) = (looking(&web), answers());
    module(&run, "rememberer", "context: {accepts: [{type: session_state}]}", &[]);
    let input = json!({ "text": "a", "_context": { "session_state": { "last": [item] } } });
    let (code, sent, said) = seen(&run, &service, "rememberer", &input);
    assert_eq!(code, 0, "{said}");
    assert!(sent.contains("/x.png"), "the context is sent: {sent}");
    assert_hidden(&sent, "context");

    // The composition reads its input as business data; one part accepts media, another only gets it passed.
    let (run, service) = (looking(&web), answers());
    module(&run, "looker", IMAGES, &[]);
    module(&run, "reader", "", &[]);
    module(&run, "whole", "composition: {requires: [{name: looker}, {name: reader}]}", &[]);
    let (code, sent, said) = seen(&run, &service, "whole", &json!({ "image": item }));
    assert_eq!((code, service.asked().len()), (0, 3), "{said}");
    assert_hidden(&sent, "a composition");
    assert_hidden(&said, "what is said of a composition");
}

// M4: a failure contains no secret either.
#[test]
fn m4_an_address_that_cannot_be_fetched_is_not_repeated_with_its_secrets() {
    let gone = Stub::start(vec![Act::reply(404, "", "alice pa55word")]);
    let (run, service) = (looking(&gone), Stub::start(vec![Act::stream("")]));
    module(&run, "looker", IMAGES, &[]);
    let item = json!({ "image": { "type": "url", "url": signed(&gone), "media_type": "image/png" } });
    let (code, sent, said) = seen(&run, &service, "looker", &item);
    assert_eq!((code, sent.as_str()), (1, ""), "{said}");
    assert_hidden(&said, "the failure");
}

// M8: a cached answer is valid only for its provider, address and model.
#[test]
fn m8_a_kept_answer_is_not_that_of_another_address_or_model() {
    let run = Run::new(None);
    let emits =
        "context: {emits: [{type: analysis_cache, ttl: 3600, key_pattern: '${module}:${input_hash}'}]}";
    module(&run, "cached", emits, &[]);
    let service = || Stub::start(vec![Act::stream(streamed(&plain_answer()))]);
    let (one, other) = (service(), service());
    let ask = |place: &str, model: &str| {
        let args = ["run", "cached", "--input", "{\"q\":1}", "--base-url", place, "--model", model];
        let output = run.cogn(&args);
        assert_eq!(output.code, 0, "{}", output.all);
        output.all.contains("CACHED")
    };
    assert!(!ask(&one.url(), "m"));
    assert!(ask(&one.url(), "m"), "the same question to the same one");
    assert!(!ask(&other.url(), "m"), "another address");
    assert!(!ask(&one.url(), "n"), "another model");
    let with_secret = one.url().replace("http://", "http://me:pa55word@") + "?k=1";
    assert!(ask(&with_secret, "m"), "a password makes it nobody else");
    assert_eq!((one.asked().len(), other.asked().len()), (2, 1));
    for entry in fs::read_dir(run.home.path().join(".cognitive")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("pa55word"), "no secret is kept");
    }
}

// The list of low faults: an error that contains the key in any form.
#[test]
fn l_an_error_of_a_service_shows_the_key_in_no_form() {
    let rest = KEY.strip_prefix("sk-").unwrap();
    for form in [
        KEY.to_owned(),
        KEY.to_uppercase(),
        rest.to_owned(),
        STANDARD.encode(KEY),
        STANDARD.encode(format!("Bearer {KEY}")),
        STANDARD.encode(format!("u:{KEY}")),
        KEY.replace('-', "%2D"),
    ] {
        let service = Stub::start(vec![Act::error(400, "x", &format!("Unknown client <{form}>"))]);
        let run = Run::new(None);
        let output = run.summarizer(&service.url(), &["--receipt"]);
        let books = run.cogn(&["audit", "export", "--jsonl"]).out;
        for text in [&output.all, &books] {
            assert!(!text.contains(&form) && text.contains("[redacted]"), "{form}: {text}");
        }
    }
}

// The list of low faults: a gateway that echoes the request must not leak the key into the answer.
#[test]
fn l_a_key_inside_an_answer_is_taken_out_also_between_two_pieces() {
    let mut answer = good();
    answer["data"]["summary"] = json!(format!("Your key is {KEY}."));
    let text = answer.to_string();
    let middle = text.find(KEY).unwrap() + 7;
    let body = piece(&text[..middle], None)
        + &piece(&text[middle..], None)
        + &piece("", Some("stop"))
        + "data: [DONE]\n\n";
    let service = Stub::start(vec![Act::stream(body)]);
    let run = Run::new(None);
    for more in [&[][..], &["--stream"], &["--stream=text"]] {
        let output = run.summarizer(&service.url(), more);
        assert_eq!(output.code, 0, "{}", output.all);
        assert!(!output.all.contains(KEY) && !output.all.contains("very-secret"), "{}", output.all);
    }
    let output = run.summarizer(&service.url(), &[]);
    assert_eq!(output.envelope["data"]["summary"], "Your key is [redacted].");
}

// The list of low faults: a request that the service refuses reports the reason, and is not an internal error.
#[test]
fn l_a_refused_request_says_its_cause() {
    for status in [400, 418, 422] {
        let service = Stub::start(vec![Act::error(status, "odd", "No teapots here")]);
        let output = Run::new(None).summarizer(&service.url(), &["--receipt"]);
        let error = &output.envelope["error"];
        assert_eq!(error["code"], "E4001", "{}", output.all);
        assert!(error["message"].as_str().unwrap().contains("No teapots here"), "{error}");
        assert_eq!(error["details"]["provider_message"], "No teapots here");
        assert_eq!(error["details"]["status"], status);
        let attempts = output.envelope["meta"]["provenance"]["attempts"].as_array().unwrap();
        assert_eq!(attempts.last().unwrap()["status"], status, "{}", output.all);
    }
}

// S9: an invalid proxy variable is refused; the call does not bypass the configured proxy.
#[test]
fn s09_a_variable_that_names_no_proxy_is_refused() {
    let run = Run::new(None);
    let args =
        ["run", "summarizer", "--set", "text=a", "--base-url", "https://192.0.2.9/v1", "--timeout", "1"];
    for (variable, value) in [("HTTPS_PROXY", "::::"), ("https_proxy", "http://"), ("ALL_PROXY", "no proxy")]
    {
        let output = run.cogn_with(&[(variable, value)], &args);
        let error = &output.envelope["error"];
        assert_eq!((output.code, &error["code"]), (1, &json!("E4001")), "{}", output.all);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{variable}` names no proxy")), "{message}");
    }
    // A proxy variable for other addresses is ignored.
    let service = Stub::start(vec![Act::stream(streamed(&good()))]);
    let here = ["run", "summarizer", "--set", "text=a", "--base-url", &service.url(), "--model", "m"];
    assert_eq!(run.cogn_with(&[("HTTPS_PROXY", "::::")], &here).code, 0);
}

/// A certificate as `openssl req -x509` creates it: self-signed, and a certificate authority.
const OF_AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/providers/authority.pem");

// S10: the error has the cause, and a remedy that works.
#[test]
fn s10_a_certificate_that_cannot_be_used_says_why_and_what_helps() {
    let fine = || vec![Act::stream(streamed(&good()))];
    let error = |run: &Run, place: &str| {
        let output = run.summarizer(&format!("https://{place}/v1"), &[]);
        assert_eq!(output.envelope["error"]["code"], "E4001", "{}", output.all);
        let text = |name: &str| output.envelope["error"][name].as_str().unwrap_or_default().to_owned();
        (text("message"), text("suggestion"))
    };
    let authority = Stub::start_tls_with(fine(), OF_AUTHORITY);
    let (message, suggestion) = error(&Run::new(Some(OF_AUTHORITY)), &authority.place);
    assert!(message.contains("that of an authority (`CA:TRUE`)"), "{message}");
    assert!(suggestion.contains("CA:FALSE") && suggestion.contains("SSL_CERT_FILE"), "{suggestion}");
    let unknown = Stub::start_tls(fine());
    let (message, suggestion) = error(&Run::new(Some(OF_AUTHORITY)), &unknown.place);
    assert!(message.contains("not signed by an authority that this machine trusts"), "{message}");
    assert!(suggestion.contains("SSL_CERT_FILE"), "{suggestion}");
    // The suggested remedy works: a trusted file with the certificate of the server.
    let output =
        Run::new(Some(super::stub::SELF_SIGNED)).summarizer(&format!("https://{}/v1", unknown.place), &[]);
    assert_eq!(output.code, 0, "{}", output.all);
    let plain = Stub::start(fine());
    let (message, _) = error(&Run::new(Some(OF_AUTHORITY)), &plain.place);
    assert!(message.contains("it does not speak TLS"), "{message}");
}

// S10: a redirect is reported as one, with its target and without secrets.
#[test]
fn s10_a_redirect_says_where_to_and_what_to_do() {
    for status in [301, 302, 303, 307, 308] {
        let header = "location: https://me:pa55word@elsewhere.example/v2?key=s1gnature\r\n";
        let service = Stub::start(vec![Act::reply(status, header, "")]);
        let output = Run::new(None).summarizer(&service.url(), &[]);
        let error = &output.envelope["error"];
        assert_eq!((&error["code"], service.asked().len()), (&json!("E4001"), 1), "{}", output.all);
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("it redirects the request")
                && message.contains("`https://elsewhere.example/v2`"),
            "{message}"
        );
        let suggestion = error["suggestion"].as_str().unwrap();
        assert!(
            suggestion.contains("--base-url") && !suggestion.contains("name of the model"),
            "{suggestion}"
        );
        assert_hidden(&output.all, "the failure");
    }
}
