//! Data that must not reach a model, a message, a record or another address: passwords and signatures in media
//! addresses, local folders, the key in any form, and answers of other users. Also errors on the way to the service
//! that must name their cause: proxies, certificates, redirects.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cognitive_testkit::{Act, FakeModel, Home, SELF_SIGNED, good_answer, piece, stream_reply};
use serde_json::{Value, json};

use super::media::{media_server, put_pictures};
use crate::{KEY, answering, good, home, summarizer};

/// The secrets in the addresses of these tests.
const HIDDEN: [&str; 5] = ["alice", "pa55word", "X-Amz-Signature", "s1gnature", "fr4gment"];

/// Returns a signed address, as object stores create it.
fn signed(web: &FakeModel) -> String {
    format!("http://alice:pa55word@{}/x.png?X-Amz-Signature=s1gnature#fr4gment", web.address)
}

fn plain_answer() -> Value {
    good_answer(&json!({ "rationale": "r" }))
}

/// Writes a module into the working folder of a run.
fn module(run: &Home, name: &str, more: &str, files: &[(&str, &str)]) {
    let manifest = format!("name: {name}\nversion: 1.0.0\nresponsibility: Look\ntier: decision\n{more}\n");
    let schema =
        json!({ "input": { "type": "object" }, "data": { "type": "object", "required": ["rationale"] } });
    run.module(name, &manifest, "Look at it.\n", &schema);
    for (file, text) in files {
        run.write(&format!("cognitive/modules/{name}/{file}"), text);
    }
}

/// Creates a user who may fetch from this server, and whose audit stores inputs.
fn looking(web: &FakeModel) -> Home {
    let run = home();
    run.user_config(&format!(
        "media: {{trusted_origins: ['http://{}']}}\naudit: {{payloads: true}}\n",
        web.address
    ));
    run
}

fn told(service: &FakeModel) -> String {
    service.raw_requests().concat()
}

/// Runs a module and returns everything that the service, the terminal and the audit got.
fn seen(run: &Home, service: &FakeModel, module: &str, input: &Value) -> (i32, String, String) {
    let input = input.to_string();
    let place = service.url();
    let args = ["run", module, "--input", &input, "--receipt", "--base-url", &place, "--model", "gpt-4o"];
    let output = run.cogn(&args);
    let books = run.cogn(&["audit", "export", "--jsonl"]).out;
    (output.exit(), told(service), format!("{}{books}", output.all()))
}

fn assert_hidden(text: &str, what: &str) {
    for secret in HIDDEN {
        assert!(!text.contains(secret), "{what} holds {secret}: {text}");
    }
}

const IMAGES: &str = "modalities: {input: [text, image]}";

// Wherever an item is in the input, the model reads its location without the credentials.
#[test]
fn a_model_reads_no_password_and_no_signature_of_a_media_address() {
    let web = media_server();
    let item = || json!({ "type": "url", "url": signed(&web), "media_type": "image/png" });
    for input in [json!({ "image": item() }), json!({ "deep": { "list": [[{ "in": item() }], "text"] } })] {
        let (run, service) = (looking(&web), answering(&plain_answer()));
        module(&run, "looker", IMAGES, &[]);
        let (code, sent, said) = seen(&run, &service, "looker", &input);
        assert_eq!(code, 0, "{said}");
        assert!(
            sent.contains(&format!("http://{}/x.png", web.address)) && sent.contains("data:image/png"),
            "{sent}"
        );
        assert_hidden(&sent, "the request");
        assert_hidden(&said, "the output or the books");
        let prompt = run.cogn(&["prompt", "looker", "--input", &input.to_string()]).expect_exit(0);
        assert_hidden(&prompt.all(), "the prompt");
    }
    assert!(
        web.raw_requests().iter().all(|asked| asked.contains("X-Amz-Signature=s1gnature")),
        "it was fetched as it is"
    );
}

// The same applies to a template that inserts the input itself.
#[test]
fn a_template_places_no_secret_either() {
    let web = media_server();
    let (run, service) = (looking(&web), answering(&plain_answer()));
    module(&run, "looker", IMAGES, &[("prompt.md", "Look at $INPUT and at ${input.image.url}.\n")]);
    let input = json!({ "image": { "type": "url", "url": signed(&web), "media_type": "image/png" } });
    let (code, sent, said) = seen(&run, &service, "looker", &input);
    assert_eq!(code, 0, "{said}");
    assert_hidden(&sent, "the request");
}

// The model reads only the name of a file.
#[test]
fn a_model_reads_no_folder_of_this_machine() {
    let (run, service) = (home(), answering(&plain_answer()));
    put_pictures(&run, ".");
    run.user_config("audit: {payloads: true}\n");
    module(&run, "looker", IMAGES, &[]);
    let home = run.folder().canonicalize().unwrap();
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

// Worked examples, context, a composition and its parts.
#[test]
fn examples_context_and_compositions_hide_the_same() {
    let web = media_server();
    let item = json!({ "type": "url", "url": signed(&web), "media_type": "image/png" });
    let answers = || answering(&plain_answer());

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
    assert_eq!((code, service.raw_requests().len()), (0, 3), "{said}");
    assert_hidden(&sent, "a composition");
    assert_hidden(&said, "what is said of a composition");
}

// A failure contains no secret either.
#[test]
fn an_address_that_cannot_be_fetched_is_not_repeated_with_its_secrets() {
    let gone = FakeModel::script(vec![Act::reply(404, "", "alice pa55word")]);
    let (run, service) = (looking(&gone), FakeModel::script(vec![Act::stream("")]));
    module(&run, "looker", IMAGES, &[]);
    let item = json!({ "image": { "type": "url", "url": signed(&gone), "media_type": "image/png" } });
    let (code, sent, said) = seen(&run, &service, "looker", &item);
    assert_eq!((code, sent.as_str()), (1, ""), "{said}");
    assert_hidden(&said, "the failure");
}

// A cached answer is valid only for its provider, address and model.
#[test]
fn a_kept_answer_is_not_that_of_another_address_or_model() {
    let run = home();
    let emits =
        "context: {emits: [{type: analysis_cache, ttl: 3600, key_pattern: '${module}:${input_hash}'}]}";
    module(&run, "cached", emits, &[]);
    let service = || answering(&plain_answer());
    let (one, other) = (service(), service());
    let ask = |place: &str, model: &str| {
        let args = ["run", "cached", "--input", "{\"q\":1}", "--base-url", place, "--model", model];
        let output = run.cogn(&args).expect_exit(0);
        output.all().contains("CACHED")
    };
    assert!(!ask(&one.url(), "m"));
    assert!(ask(&one.url(), "m"), "the same question to the same one");
    assert!(!ask(&other.url(), "m"), "another address");
    assert!(!ask(&one.url(), "n"), "another model");
    let with_secret = one.url().replace("http://", "http://me:pa55word@") + "?k=1";
    assert!(ask(&with_secret, "m"), "a password makes it nobody else");
    assert_eq!((one.raw_requests().len(), other.raw_requests().len()), (2, 1));
    for entry in fs::read_dir(run.folder().join(".cognitive")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("pa55word"), "no secret is kept");
    }
}

// An error that contains the key in any form.
#[test]
fn an_error_of_a_service_shows_the_key_in_no_form() {
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
        let service = FakeModel::script(vec![Act::error(400, "x", &format!("Unknown client <{form}>"))]);
        let run = home();
        let output = summarizer(&run, &service.url(), &["--receipt"]);
        let books = run.cogn(&["audit", "export", "--jsonl"]).out;
        for text in [&output.all(), &books] {
            assert!(!text.contains(&form) && text.contains("[redacted]"), "{form}: {text}");
        }
    }
}

// A gateway that echoes the request must not leak the key into the answer.
#[test]
fn a_key_inside_an_answer_is_taken_out_also_between_two_pieces() {
    let mut answer = good();
    answer["data"]["summary"] = json!(format!("Your key is {KEY}."));
    let text = answer.to_string();
    let middle = text.find(KEY).unwrap() + 7;
    let body = piece(&text[..middle], None)
        + &piece(&text[middle..], None)
        + &piece("", Some("stop"))
        + "data: [DONE]\n\n";
    let service = FakeModel::script(vec![Act::stream(body)]);
    let run = home();
    for more in [&[][..], &["--stream"], &["--stream=text"]] {
        let output = summarizer(&run, &service.url(), more).expect_exit(0);
        assert!(!output.all().contains(KEY) && !output.all().contains("very-secret"), "{}", output.all());
    }
    let output = summarizer(&run, &service.url(), &[]);
    assert_eq!(output.json["data"]["summary"], "Your key is [redacted].");
}

// A request that the service refuses reports the reason, and is not an internal error.
#[test]
fn a_refused_request_says_its_cause() {
    for status in [400, 418, 422] {
        let service = FakeModel::script(vec![Act::error(status, "odd", "No teapots here")]);
        let output = summarizer(&home(), &service.url(), &["--receipt"]);
        let error = &output.json["error"];
        assert_eq!(error["code"], "E4001", "{}", output.all());
        assert!(error["message"].as_str().unwrap().contains("No teapots here"), "{error}");
        assert_eq!(error["details"]["provider_message"], "No teapots here");
        assert_eq!(error["details"]["status"], status);
        let attempts = output.json["meta"]["provenance"]["attempts"].as_array().unwrap();
        assert_eq!(attempts.last().unwrap()["status"], status, "{}", output.all());
    }
}

// An invalid proxy variable is refused; the call does not bypass the configured proxy.
#[test]
fn a_variable_that_names_no_proxy_is_refused() {
    let run = home();
    let args =
        ["run", "summarizer", "--set", "text=a", "--base-url", "https://192.0.2.9/v1", "--timeout", "1"];
    for (variable, value) in [("HTTPS_PROXY", "::::"), ("https_proxy", "http://"), ("ALL_PROXY", "no proxy")]
    {
        let output = run.run(&args, &[(variable, value)], "");
        let error = &output.json["error"];
        assert_eq!((output.exit(), &error["code"]), (1, &json!("E4001")), "{}", output.all());
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{variable}` is not the address of a proxy")), "{message}");
    }
    // A proxy variable for other addresses is ignored.
    let service = answering(&good());
    let here = ["run", "summarizer", "--set", "text=a", "--base-url", &service.url(), "--model", "m"];
    assert_eq!(run.run(&here, &[("HTTPS_PROXY", "::::")], "").exit(), 0);
}

/// A certificate as `openssl req -x509` creates it: self-signed, and a certificate authority.
const OF_AUTHORITY: &str = cognitive_testkit::SELF_SIGNED_AUTHORITY;

/// A home that trusts this certificate instead of the system's.
fn trusting(file: &str) -> Home {
    home().with("SSL_CERT_FILE", file)
}

// The error has the cause, and a remedy that works.
#[test]
fn a_certificate_that_cannot_be_used_says_why_and_what_helps() {
    let fine = || vec![Act::stream(stream_reply(&good()))];
    let error = |run: &Home, place: &str| {
        let output = summarizer(run, &format!("https://{place}/v1"), &[]);
        assert_eq!(output.json["error"]["code"], "E4001", "{}", output.all());
        let text = |name: &str| output.json["error"][name].as_str().unwrap_or_default().to_owned();
        (text("message"), text("suggestion"))
    };
    let authority = FakeModel::script_tls(fine(), OF_AUTHORITY);
    let (message, suggestion) = error(&trusting(OF_AUTHORITY), &authority.address);
    assert!(message.contains("that of an authority (`CA:TRUE`)"), "{message}");
    assert!(suggestion.contains("CA:FALSE") && suggestion.contains("SSL_CERT_FILE"), "{suggestion}");
    let unknown = FakeModel::script_tls(fine(), SELF_SIGNED);
    let (message, suggestion) = error(&trusting(OF_AUTHORITY), &unknown.address);
    assert!(message.contains("not signed by an authority that this machine trusts"), "{message}");
    assert!(suggestion.contains("SSL_CERT_FILE"), "{suggestion}");
    // The suggested remedy works: a trusted file with the certificate of the server.

    summarizer(&trusting(SELF_SIGNED), &format!("https://{}/v1", unknown.address), &[]).expect_exit(0);
    let plain = FakeModel::script(fine());
    let (message, _) = error(&trusting(OF_AUTHORITY), &plain.address);
    assert!(message.contains("it does not speak TLS"), "{message}");
}

// A redirect is reported as one, with its target and without secrets.
#[test]
fn a_redirect_says_where_to_and_what_to_do() {
    for status in [301, 302, 303, 307, 308] {
        let header = "location: https://me:pa55word@elsewhere.example/v2?key=s1gnature\r\n";
        let service = FakeModel::script(vec![Act::reply(status, header, "")]);
        let output = summarizer(&home(), &service.url(), &[]);
        let error = &output.json["error"];
        assert_eq!((&error["code"], service.raw_requests().len()), (&json!("E4001"), 1), "{}", output.all());
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
        assert_hidden(&output.all(), "the failure");
    }
}
