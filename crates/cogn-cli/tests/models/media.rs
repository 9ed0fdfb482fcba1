//! Images on their way to a service: `cogn run image-analyzer` with two files, in every wire format. Checks the
//! received body: upright images, no location data, the right order.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cognitive_testkit::{Act, FakeModel, Home, good_answer, stream_reply};
use image::{DynamicImage, GenericImageView as _, ImageFormat, Rgb, RgbImage};
use serde_json::{Value, json};

use crate::{answering, home};

/// A location in the metadata of a photo, as cameras write it.
const SECRET: &[u8] = b"52N13E-SECRET-PLACE";

fn answer() -> Value {
    json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "Two pictures." },
            "data": { "rationale": "Seen.", "analysis": { "description": "Colours." } } })
}

/// Returns an image: its left half is red, its right half blue.
fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let colour = |x, _| if x < width / 2 { Rgb([255, 0, 0]) } else { Rgb([0, 0, 255]) };
    let mut bytes = std::io::Cursor::new(Vec::new());
    DynamicImage::from(RgbImage::from_fn(width, height, colour)).write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// Returns a photo of a camera that was held upright: rotated, with an orientation tag and a location.
fn photograph() -> Vec<u8> {
    let mut exif = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x03".to_vec();
    // ImageDescription at 50, Orientation 6 (a quarter turn clockwise), and the offset of the GPS data.
    exif.extend([0x01, 0x0e, 0, 2, 0, 0, 0, 19, 0, 0, 0, 50]);
    exif.extend([0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0]);
    exif.extend([0x88, 0x25, 0, 4, 0, 0, 0, 1, 0, 0, 0, 70]);
    exif.extend([0; 4]);
    exif.extend(SECRET);
    exif.push(0);
    exif.extend([0, 1, 0, 1, 0, 2, 0, 0, 0, 2, b'N', 0, 0, 0, 0, 0, 0, 0]);
    let jpeg = picture(64, 32, ImageFormat::Jpeg);
    let mut file = vec![0xff, 0xd8, 0xff, 0xe1];
    file.extend(u16::try_from(exif.len() + 2).unwrap().to_be_bytes());
    file.extend(exif);
    file.extend(&jpeg[2..]);
    file
}

pub(crate) fn put_pictures(home: &Home, folder: &str) {
    home.write(&format!("{folder}/photo.jpg"), photograph());
    home.write(&format!("{folder}/drawing.png"), picture(40, 20, ImageFormat::Png));
}

/// Every image of a body, with its path.
fn pictures(body: &Value) -> Vec<(String, DynamicImage, Vec<u8>)> {
    fn collect(body: &Value, place: &str, found: &mut Vec<(String, DynamicImage, Vec<u8>)>) {
        match body {
            Value::Object(members) => {
                members.iter().for_each(|(name, value)| collect(value, &format!("{place}/{name}"), found));
            }
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(at, value)| collect(value, &format!("{place}/{at}"), found));
            }
            Value::String(text) => {
                let text = text.split_once(";base64,").map_or(text.as_str(), |(_, data)| data);
                let bytes = STANDARD.decode(text).ok();
                let image = bytes.and_then(|bytes| Some((image::load_from_memory(&bytes).ok()?, bytes)));
                found.extend(image.map(|(image, bytes)| (place.to_owned(), image, bytes)));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(body, "", &mut found);
    found
}

/// Returns the streamed answer of each service.
fn scripts() -> Vec<(&'static str, &'static str, Act, [&'static str; 2])> {
    let text = answer().to_string();
    let anthropic = [
        json!({ "type": "message_start", "message": { "model": "m", "content": [], "usage": { "input_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 1 } }),
        json!({ "type": "message_stop" }),
    ];
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let anthropic: String = anthropic.iter().map(event).collect();
    let candidate =
        json!({ "content": { "parts": [{ "text": text }], "role": "model" }, "finishReason": "STOP" });
    let gemini = format!("data: {}\n\n", json!({ "candidates": [candidate], "modelVersion": "m" }));
    let message = json!({ "role": "assistant", "content": text });
    let ollama = format!(
        "{}\n{}\n",
        json!({ "model": "m", "message": message, "done": false }),
        json!({ "model": "m", "message": { "role": "assistant", "content": "" }, "done": true, "done_reason": "stop" })
    );
    let lines = Act::reply(200, "content-type: application/x-ndjson\r\n", ollama);
    vec![
        (
            "openai",
            "/v1",
            Act::stream(stream_reply(&answer())),
            ["/messages/1/content/1/image_url/url", "/messages/1/content/3/image_url/url"],
        ),
        (
            "anthropic",
            "",
            Act::stream(anthropic),
            ["/messages/0/content/1/source/data", "/messages/0/content/3/source/data"],
        ),
        (
            "gemini",
            "",
            Act::stream(gemini),
            ["/contents/0/parts/1/inlineData/data", "/contents/0/parts/3/inlineData/data"],
        ),
        ("ollama", "", lines, ["/messages/1/images/0", "/messages/1/images/1"]),
    ]
}

// SEC-004, S-30, MEDIA-001, MEDIA-012, MEDIA-022, PROMPT-001, REPAIR-013: in every wire format, sync and streaming.
#[test]
fn sec_004_two_pictures_reach_every_service_upright_and_without_a_place() {
    for (provider, path, act, places) in scripts() {
        for stream in [false, true] {
            let (run, service) = (home(), FakeModel::script(vec![act.clone()]));
            put_pictures(&run, ".");
            let url = format!("http://{}{path}", service.address);
            let mut args = vec!["run", "image-analyzer", "--media", "photo.jpg", "--media", "drawing.png"];
            args.extend(["--provider", provider, "--base-url", &url, "--model", "gpt-4o"]);
            args.extend(stream.then_some("--stream"));
            let output = run.cogn(&args).expect_exit(0);
            let [asked] = &service.requests()[..] else { panic!("{provider} was asked once") };
            let (body, found) = (&asked.body, pictures(&asked.body));
            let at: Vec<&str> = found.iter().map(|(place, ..)| place.as_str()).collect();
            assert_eq!(at, places, "{provider}");
            let (photo, drawing) = (&found[0].1, &found[1].1);
            assert_eq!((photo.dimensions(), drawing.dimensions()), ((32, 64), (40, 20)), "{provider}");
            let top = photo.get_pixel(16, 8);
            assert!(top[0] > 200 && top[2] < 60, "{provider}: what was on the left is above, {top:?}");
            for (_, _, bytes) in &found {
                let has = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
                assert!(!has(SECRET) && !has(b"Exif"), "{provider} learns where it was taken");
            }
            let text = body.to_string();
            assert!(text.contains("Image 0: /images/0 (image/jpeg)"), "{provider}");
            assert!(text.contains("Image 1: /images/1 (image/png)"), "{provider}");
            assert!(!text.contains("$MEDIA_INPUTS"), "{provider}");
            if !stream {
                let processed = &output.json["meta"]["media_processed"];
                assert_eq!(processed[0]["status"], "converted", "{provider}: {processed}");
                assert_eq!(processed[1]["status"], "ok", "{provider}: {processed}");
            }
        }
    }
}

/// `image-analyzer` with a case of its own, whose picture is a file.
fn tested_module(home: &Home) {
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules/image-analyzer");
    for name in ["prompt.md", "schema.json"] {
        home.write(&format!("image-analyzer/{name}"), fs::read(bundled.join(name)).unwrap());
    }
    let manifest = fs::read_to_string(bundled.join("module.yaml")).unwrap();
    let (manifest, _) = manifest.split_once("\ntests:").unwrap();
    home.write("image-analyzer/module.yaml", manifest);
    put_pictures(home, "image-analyzer");
    let input = json!({ "prompt": "What is it?", "images": [{ "type": "file", "path": "photo.jpg" }] });
    let expected = r#"{ "ok": true, "_contains": { "analysis.description": ["Colours"] } }"#;
    home.write("image-analyzer/tests/photo.input.json", input.to_string());
    home.write("image-analyzer/tests/photo.expected.json", expected);
}

// A case with media is run as `cogn run` runs its input; a recorded reply needs neither the service nor the picture.
#[test]
fn a_golden_test_with_media_is_run_live_recorded_and_replayed() {
    let (run, service) = (home(), answering(&answer()));
    tested_module(&run);
    let asked = ["--provider", "openai", "--base-url", &service.url(), "--model", "gpt-4o"];
    for how in ["--live", "--record"] {
        run.cogn(&[&["test", "./image-analyzer", how], &asked[..]].concat()).expect_exit(0);
        let requests = service.requests();
        let body = &requests.last().unwrap().body;
        let [(_, picture, bytes)] = &pictures(body)[..] else { panic!("{how}: one picture is sent: {body}") };
        assert_eq!(picture.dimensions(), (32, 64), "{how}: upright");
        assert!(!bytes.windows(SECRET.len()).any(|window| window == SECRET), "{how}: without its notes");
    }
    assert_eq!(service.raw_requests().len(), 2);
    fs::remove_file(run.folder().join("image-analyzer/photo.jpg")).unwrap();
    run.cogn(&["test", "./image-analyzer"]).expect_exit(0);
    assert_eq!(service.raw_requests().len(), 2);
}

#[test]
fn the_configuration_of_media_holds_for_golden_tests_too() {
    let (run, service) = (home(), answering(&answer()));
    tested_module(&run);
    run.user_config("media: {keep_metadata: true}\n");
    let asked = ["--provider", "openai", "--base-url", &service.url(), "--model", "gpt-4o"];
    run.cogn(&[&["test", "./image-analyzer", "--live"], &asked[..]].concat()).expect_exit(0);
    let found = pictures(&service.requests()[0].body);
    assert!(found[0].2.windows(SECRET.len()).any(|window| window == SECRET), "the notes are kept");
    run.user_config("media: {max_size_mb: 0}\n");
    let refused = run.cogn(&[&["test", "./image-analyzer", "--live"], &asked[..]].concat());
    assert!(refused.exit() != 0 && refused.all().contains("`media.max_size_mb`"), "{}", refused.all());
}

// MEDIA-021: how many items there may be is said by the module's schema, and judged before any of them is looked at.
#[test]
fn media_021_the_schema_says_how_many_media_there_may_be() {
    let (run, service) = (home(), answering(&answer()));
    for count in [0, 11] {
        let item = json!({ "type": "url", "url": "https://example.com/a.png" });
        let input = json!({ "images": vec![item; count] }).to_string();
        let more = ["--input", &input, "--provider", "openai"];
        let error = &crate::ask(&run, "image-analyzer", &service.url(), &more).json["error"];
        assert_eq!(error["code"], "E1001", "{count}: {error}");
        assert_eq!(error["details"]["violations"][0]["path"], "/images", "{count}: {error}");
    }
    assert!(service.raw_requests().is_empty());
}

/// Starts a media server with one image, which counts requests.
pub(crate) fn media_server() -> FakeModel {
    let png = picture(40, 20, ImageFormat::Png);
    FakeModel::script(vec![Act::reply(200, "content-type: image/png\r\n", png)])
}

// MEDIA-008: a retry sends the same image again, and the image was fetched only once.
#[test]
fn media_008_a_picture_is_fetched_once_however_often_the_service_is_asked() {
    let web = media_server();
    let service =
        FakeModel::script(vec![Act::error(503, "overloaded", "later"), Act::stream(stream_reply(&answer()))]);
    let run = home();
    let config = format!("media:\n  trusted_origins: [\"http://{}\"]\n", web.address);
    run.user_config(&config);
    let url = format!("http://{}/a.png", web.address);
    run.cogn(&["run", "image-analyzer", "--media", &url, "--base-url", &service.url(), "--model", "gpt-4o"])
        .expect_exit(0);
    assert_eq!((service.raw_requests().len(), web.raw_requests().len()), (2, 1));
    let sent: Vec<usize> = service.requests().iter().map(|asked| pictures(&asked.body).len()).collect();
    assert_eq!(sent, [1, 1]);
}

// MEDIA-009, SEC-001, MEDIA-011: an internal address is not fetched, and no model is called.
#[test]
fn sec_001_an_address_of_this_machine_is_not_fetched() {
    let (web, service, run) = (media_server(), FakeModel::script(vec![Act::stream("")]), home());
    run.user_config("media: {allow_http: true}\n");
    let url = format!("http://{}/a.png", web.address);
    let args = ["run", "image-analyzer", "--media", &url, "--base-url", &service.url(), "--model", "gpt-4o"];
    let output = run.cogn(&args);
    assert_eq!(output.json["error"]["code"], "E1012", "{}", output.all());
    assert_eq!((service.raw_requests().len(), web.raw_requests().len()), (0, 0));
}

// MEDIA-002: for a v2.2 module it is an ordinary link.
#[test]
fn media_002_a_module_without_modalities_fetches_nothing() {
    let (web, run) = (media_server(), home());
    run.simple_module("links", &json!({}));
    let service = answering(&good_answer(&json!({ "rationale": "r" })));
    let input =
        json!({ "link": { "type": "url", "url": format!("http://{}/a.png", web.address) } }).to_string();
    run.cogn(&["run", "links", "--input", &input, "--base-url", &service.url(), "--model", "gpt-4o"])
        .expect_exit(0);
    assert!(web.raw_requests().is_empty() && service.raw_requests()[0].contains("/a.png"));
}

// MEDIA-015: a service that cannot read documents gets the text; a separate process has read it.
#[test]
fn media_015_a_document_is_read_for_a_service_that_cannot() {
    let run = home();
    let pdf = "JVBERi0xLjQKMSAwIG9iago8PC9UeXBlL0NhdGFsb2cvUGFnZXMgMiAwIFI+PgplbmRvYmoKMiAwIG9iago8PC9UeXBlL1BhZ2VzL0tpZHNbMyAwIFJdL0NvdW50IDE+PgplbmRvYmoKMyAwIG9iago8PC9UeXBlL1BhZ2UvUGFyZW50IDIgMCBSL01lZGlhQm94WzAgMCA3MiA3Ml0vQ29udGVudHMgNCAwIFIvUmVzb3VyY2VzPDwvRm9udDw8L0YxIDUgMCBSPj4+Pj4+CmVuZG9iago0IDAgb2JqCjw8L0xlbmd0aCA0MT4+CnN0cmVhbQpCVCAvRjEgMTIgVGYgNSA0MCBUZCAoaGVsbG8gcGRmKSBUaiBFVCAgIAplbmRzdHJlYW0KZW5kb2JqCjUgMCBvYmoKPDwvVHlwZS9Gb250L1N1YnR5cGUvVHlwZTEvQmFzZUZvbnQvSGVsdmV0aWNhPj4KZW5kb2JqCnhyZWYKMCA2CjAwMDAwMDAwMDAgNjU1MzUgZiAKMDAwMDAwMDAwOSAwMDAwMCBuIAowMDAwMDAwMDU0IDAwMDAwIG4gCjAwMDAwMDAxMDUgMDAwMDAgbiAKMDAwMDAwMDIxNSAwMDAwMCBuIAowMDAwMDAwMzA0IDAwMDAwIG4gCnRyYWlsZXIKPDwvU2l6ZSA2L1Jvb3QgMSAwIFI+PgpzdGFydHhyZWYKMzY3CiUlRU9GCg==";
    run.write("a.pdf", STANDARD.decode(pdf).unwrap());
    let item = json!({ "type": "object", "required": ["type"], "properties": { "type": { "enum": ["file", "url"] } } });
    let schema = json!({ "input": { "type": "object", "properties": { "paper": item } }, "data": { "type": "object", "required": ["rationale"] } });
    let manifest = "name: reader\nversion: 1.0.0\nresponsibility: Read\ntier: decision\nmodalities: {input: [text, document]}\n";
    run.module("reader", manifest, "Read it.", &schema);
    let good = good_answer(&json!({ "rationale": "r" }));
    let line = json!({ "model": "m", "message": { "role": "assistant", "content": good.to_string() }, "done": true, "done_reason": "stop" });
    let service = FakeModel::script(vec![Act::reply(
        200,
        "content-type: application/x-ndjson\r\n",
        format!("{line}\n"),
    )]);
    let url = format!("http://{}", service.address);
    let more = ["--media", "a.pdf", "--provider", "ollama"];
    let output = crate::ask(&run, "reader", &url, &more).expect_exit(0);
    assert_eq!(output.json["meta"]["media_processed"][0]["status"], "text");
    assert!(service.raw_requests()[0].contains("hello pdf"), "{}", service.raw_requests()[0]);
}

#[test]
fn inspect_says_what_a_file_is_and_what_each_provider_gets() {
    let run = home();
    put_pictures(&run, ".");
    let output = run.cogn(&["media", "inspect", "photo.jpg", "--json"]).expect_exit(0);
    let found = &output.json;
    assert_eq!(found["media_type"], "image/jpeg");
    assert_eq!(found["dimensions"], json!({ "width": 32, "height": 64 }));
    assert_eq!((&found["turned"], &found["metadata"]), (&json!(true), &json!(true)));
    let gets = |name: &str| {
        let all = found["providers"].as_array().unwrap();
        all.iter().find(|each| each["provider"] == name).map(|each| each["gets"].clone())
    };
    assert_eq!(gets("anthropic"), Some(json!("converted")), "{found}");
    assert!(run.cogn(&["media", "inspect", "drawing.png"]).out.contains("40×20"));
    assert_eq!(run.cogn(&["media", "inspect", "nothing.png"]).exit(), 1);
}

// The line of a row keeps its input, so that the row shares it with its run.
#[test]
fn a_batch_that_keeps_its_inputs_sends_the_bytes_of_images() {
    let (run, service) = (home(), answering(&answer()));
    let (pixels, place) = (STANDARD.encode(picture(40, 20, ImageFormat::Png)), service.url());
    let image = json!({ "type": "base64", "media_type": "image/png", "data": pixels });
    run.write("rows.jsonl", format!("{}\n", json!({ "images": [image] })));
    for (output, more) in [("plain.jsonl", &[][..]), ("whole.jsonl", &["--with-input"])] {
        let usual = ["batch", "image-analyzer", "rows.jsonl", "--output", output, "--base-url", &place];
        let finished = run.cogn(&[&usual[..], &["--model", "stub"], more].concat());
        assert_eq!(finished.code, Some(0), "{}", finished.all());
        let asked = service.requests().pop().unwrap();
        assert_eq!(pictures(&asked.body).len(), 1, "{output}: {}", asked.body);
        let line: Value = serde_json::from_str(&run.read(output)).unwrap();
        assert_eq!(line.pointer("/input/images/0/data").is_some(), !more.is_empty(), "{line}");
    }
}
