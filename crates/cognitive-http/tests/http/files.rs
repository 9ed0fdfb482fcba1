//! Media of answers at temporary URLs: access, expiry, and items that cannot be stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use cognitive_contract::media::UploadStore;
use cognitive_http::{ApiKey, ServerConfig};
use cognitive_library::{Library, ModuleCache};
use cognitive_media::{UploadLimits, Uploads};
use cognitive_runtime::Host;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::media::{ANN, BOB, PNG, png};
use crate::streams::{hear, say};
use crate::support::{Script, Server, client, events, json_of, roomy};

struct Studio {
    server: Server,
    /// Elapsed seconds.
    clock: Arc<AtomicU64>,
}

/// A server with one module, `paint`, which answers with these members of `data`.
async fn studio(pictures: &Value, limits: Option<UploadLimits>) -> Studio {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("cognitive/modules/paint");
    std::fs::create_dir_all(&module).unwrap();
    let manifest = "name: paint\nversion: 1.0.0\nresponsibility: Paint\ntier: exploration\n\
                    modalities: {input: [text], output: [text, image]}\nresponse: {mode: both}\n";
    std::fs::write(module.join("module.yaml"), manifest).unwrap();
    std::fs::write(module.join("prompt.md"), "Paint.").unwrap();
    let schema = r#"{"input": {"type": "object"}, "data": {"type": "object"}}"#;
    std::fs::write(module.join("schema.json"), schema).unwrap();
    let mut data = json!({ "rationale": "It is blue." });
    data.as_object_mut().unwrap().extend(pictures.as_object().unwrap().clone());
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
    let script = Script::free(&[&json!({ "ok": true, "meta": meta, "data": data }).to_string()]);
    let clock = Arc::new(AtomicU64::new(1_800_000_000));
    let ticks = Arc::clone(&clock);
    let now = move || SystemTime::UNIX_EPOCH + Duration::from_secs(ticks.load(Ordering::SeqCst));
    let mut config: ServerConfig = roomy();
    config.keys = [("ann", ANN), ("bob", BOB)].map(|(name, key)| ApiKey::new(name, key).unwrap()).into();
    config.uploads = limits.map(|limits| {
        let uploads = Uploads::open(folder.path().join("uploads"), limits, now).unwrap();
        Arc::new(uploads) as Arc<dyn UploadStore>
    });
    let module_cache = Arc::new(ModuleCache::new(Library::new(folder.path(), None, &[])));
    let server = Server::with_host(folder, Host::new(module_cache, script), config).await;
    Studio { server, clock }
}

impl Studio {
    fn request(&self, method: &str, path: &str, key: &str) -> reqwest::RequestBuilder {
        let request = client().request(method.parse().unwrap(), self.server.url(path));
        request.header("authorization", format!("Bearer {key}"))
    }

    async fn paint(&self, accept: &str, options: Value) -> reqwest::Response {
        let body = json!({ "input": { "what": "a square" }, "_options": options });
        let request = self.request("POST", "/api/run/paint", ANN);
        let request = request.header("content-type", "application/json").header("accept", accept);
        request.body(body.to_string()).send().await.unwrap()
    }

    /// Returns the whole answer for a client that requests URLs.
    async fn painted(&self) -> Value {
        json_of(self.paint("application/json", json!({ "media_out": "url" })).await).await
    }

    async fn refusal(&self, path: &str, key: &str) -> (u16, Value) {
        let response = self.request("GET", path, key).send().await.unwrap();
        (response.status().as_u16(), json_of(response).await["error"]["code"].clone())
    }
}

fn picture() -> Value {
    json!({ "type": "base64", "media_type": "image/png", "data": PNG, "width": 1, "height": 1 })
}

/// Returns the media that stayed in an answer although URLs were requested, with the reasons.
fn stayed(answer: &Value) -> Vec<String> {
    let warnings = answer["meta"]["warnings"].as_array().into_iter().flatten();
    let of_media = |warning: &Value| {
        let (place, _) = warning["message"].as_str()?.strip_prefix('`')?.split_once("` stays base64: ")?;
        Some(format!("{} {place}", warning["code"].as_str()?))
    };
    warnings.filter_map(of_media).collect()
}

// MEDIA-017, MEDIA-019: a URL with its expiry replaces the bytes; everything else stays.
#[tokio::test]
async fn media_019_a_client_gets_addresses_instead_of_base64_and_its_bytes_there() {
    let studio = studio(&json!({ "images": [picture()] }), Some(UploadLimits::default())).await;
    let as_given = json_of(studio.paint("application/json", json!({})).await).await;
    assert_eq!(as_given["data"]["images"][0], picture(), "nobody asked for an address: {as_given}");
    let answer = studio.painted().await;
    let image = &answer["data"]["images"][0];
    let place = image["url"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let expected = json!({
        "type": "url", "media_type": "image/png", "width": 1, "height": 1,
        "url": place, "expires_at": "2027-01-15T09:00:00Z"
    });
    assert_eq!(image, &expected);
    assert!(place.starts_with("/v1/media/files/") && stayed(&answer).is_empty(), "{answer}");
    let file = studio.request("GET", place, ANN).send().await.unwrap();
    assert_eq!(file.status(), 200);
    for (name, value) in [
        ("content-type", "image/png"),
        ("x-content-type-options", "nosniff"),
        ("content-disposition", "inline; filename=\"images-0.png\""),
        ("content-length", &png().len().to_string()),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(file.headers()[name], value, "{name}");
    }
    assert_eq!(file.bytes().await.unwrap(), png());
    let head = studio.request("HEAD", place, ANN).send().await.unwrap();
    assert_eq!(
        (head.status().as_u16(), &head.headers()["content-type"]),
        (200, &"image/png".parse().unwrap())
    );
}

#[tokio::test]
async fn media_019_an_address_is_its_owners_alone_and_ends() {
    let studio = studio(&json!({ "image": picture() }), Some(UploadLimits::default())).await;
    let answer = studio.painted().await;
    let place = answer["data"]["image"]["url"].as_str().unwrap();
    assert_eq!(studio.refusal(place, BOB).await, (404, json!("E1019")));
    assert_eq!(
        studio.refusal("/v1/media/files/0123456789abcdef0123456789abcdef", ANN).await,
        (404, json!("E1019"))
    );
    assert_eq!(studio.refusal("/v1/media/files/..%2f..%2fetc%2fpasswd", ANN).await, (404, json!("E1019")));
    assert_eq!(studio.refusal(place, "a-key-that-is-not-one").await.0, 401);
    studio.clock.fetch_add(3_599, Ordering::SeqCst);
    assert_eq!(studio.request("GET", place, ANN).send().await.unwrap().status(), 200);
    studio.clock.fetch_add(1, Ordering::SeqCst);
    assert_eq!(studio.refusal(place, ANN).await, (410, json!("E1018")));
    assert_eq!(studio.refusal(place, BOB).await, (404, json!("E1019")), "not even that it was there");
}

// The last chunk of a stream has the same content as a sync answer.
#[tokio::test]
async fn media_019_the_last_chunk_of_a_stream_has_addresses() {
    let studio = studio(&json!({ "image": picture() }), Some(UploadLimits::default())).await;
    let response = studio.paint("text/event-stream", json!({ "media_out": "url" })).await;
    let events = events(&response.text().await.unwrap());
    let last = events.last().unwrap();
    assert_eq!((last.name.as_str(), &last.data["final"]), ("final", &json!(true)));
    let image = &last.data["data"]["image"];
    assert_eq!(
        (&image["type"], &image["data"], &image["expires_at"]),
        (&json!("url"), &Value::Null, &json!("2027-01-15T09:00:00Z"))
    );
    let file = studio.request("GET", image["url"].as_str().unwrap(), ANN).send().await.unwrap();
    assert_eq!(file.bytes().await.unwrap(), png());
}

// Over a socket too, where sync answers arrive as the last chunk.
#[tokio::test]
async fn media_019_a_socket_gets_addresses_as_well() {
    let studio = studio(&json!({ "image": picture() }), Some(UploadLimits::default())).await;
    let mut request = format!("ws://{}/ws", studio.server.address).into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {ANN}").parse().unwrap());
    let mut socket = tokio_tungstenite::connect_async(request).await.unwrap().0;
    say(
        &mut socket,
        &json!({ "type": "run", "module": "paint", "input": {}, "options": { "media_out": "url" } }),
    )
    .await;
    let last = loop {
        let chunk = hear(&mut socket).await;
        if chunk.get("final").is_some() || chunk.get("error").is_some() {
            break chunk;
        }
    };
    let place = last["data"]["image"]["url"].as_str().unwrap_or_else(|| panic!("{last}"));
    let file = studio.request("GET", place, ANN).send().await.unwrap();
    assert_eq!(file.bytes().await.unwrap(), png());
}

// An item that cannot be stored is not lost: it stays in place, and `meta.warnings` says why.
#[tokio::test]
async fn media_that_cannot_be_kept_stay_base64_with_a_warning() {
    let mut one = UploadLimits::default();
    one.uploads_per_owner = 1;
    let pictures = json!({ "b": picture(), "c": picture() });
    let crowded = studio(&pictures, Some(one)).await.painted().await;
    assert_eq!((&crowded["data"]["b"]["type"], &crowded["data"]["c"]), (&json!("url"), &picture()));
    assert_eq!(stayed(&crowded), ["E4002 /data/c"]);
    let without = studio(&json!({ "c": picture() }), None).await;
    let answer = without.painted().await;
    assert_eq!((&answer["data"]["c"], stayed(&answer)), (&picture(), vec!["E4011 /data/c".to_owned()]));
    assert_eq!(without.refusal("/v1/media/files/a", ANN).await, (404, json!("E1019")));
    let broken = studio(&json!({ "c": picture() }), Some(UploadLimits::default())).await;
    std::fs::remove_dir_all(broken.server.folder.path().join("uploads")).unwrap();
    let answer = broken.painted().await;
    assert_eq!((&answer["data"]["c"], stayed(&answer)), (&picture(), vec!["E4000 /data/c".to_owned()]));
}

#[tokio::test]
async fn media_019_an_unknown_form_is_refused_and_the_address_is_described() {
    let studio = studio(&json!({ "image": picture() }), Some(UploadLimits::default())).await;
    let response = studio.paint("application/json", json!({ "media_out": "folder" })).await;
    assert_eq!(
        (response.status().as_u16(), &json_of(response).await["error"]["code"]),
        (400, &json!("E1001"))
    );
    let described = json_of(studio.request("GET", "/openapi.json", ANN).send().await.unwrap()).await;
    let get = &described["paths"]["/v1/media/files/{id}"]["get"];
    assert!(get["responses"]["200"]["content"]["image/png"].is_object(), "{get}");
    assert_eq!(get["parameters"][0]["name"], "id");
}
