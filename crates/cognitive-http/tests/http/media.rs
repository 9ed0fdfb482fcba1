//! Media over HTTP: uploads that belong to the client that announced them, files that stay on this machine, and body
//! limits that depend on the module.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use cognitive_contract::media::{AcceptedForm, Category, MediaLimits, MediaType, UploadStore};
use cognitive_contract::ports::Provider;
use cognitive_http::{ApiKey, ServerConfig};
use cognitive_library::{Library, ModuleCache};
use cognitive_media::{Documents, Media, UploadLimits, Uploads};
use cognitive_runtime::Host;
use cognitive_testkit::{FakeProvider, good_answer};
use serde_json::{Value, json};

use crate::support::{Server, client, json_of, roomy};

pub(crate) const ANN: &str = "ann-has-a-long-key";
pub(crate) const BOB: &str = "bob-has-a-long-key";

/// One pixel.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub(crate) fn png() -> Vec<u8> {
    let digit = |letter: u8| match letter {
        b'A'..=b'Z' => u32::from(letter - b'A'),
        b'a'..=b'z' => u32::from(letter - b'a') + 26,
        b'0'..=b'9' => u32::from(letter - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for letter in PNG.bytes().filter(|letter| *letter != b'=') {
        bits = bits << 6 | digit(letter);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap());
        }
    }
    bytes
}

struct World {
    server: Server,
    eyes: Arc<FakeProvider>,
    /// Elapsed seconds.
    clock: Arc<AtomicU64>,
}

async fn world(keys: &[(&str, &str)]) -> World {
    world_with(keys, roomy()).await
}

async fn world_with(keys: &[(&str, &str)], mut config: ServerConfig) -> World {
    let folder = tempfile::tempdir().unwrap();
    for (name, modalities) in [("look", "[text, image]"), ("read", "[text]")] {
        let module = folder.path().join("cognitive/modules").join(name);
        std::fs::create_dir_all(&module).unwrap();
        let manifest = format!(
            "name: {name}\nversion: 1.0.0\nresponsibility: Look\ntier: decision\nmodalities: {{input: {modalities}}}\n"
        );
        std::fs::write(module.join("module.yaml"), manifest).unwrap();
        std::fs::write(module.join("prompt.md"), "Look.").unwrap();
        std::fs::write(
            module.join("schema.json"),
            r#"{"input": {"type": "object"}, "data": {"type": "object"}}"#,
        )
        .unwrap();
    }
    let clock = Arc::new(AtomicU64::new(0));
    let ticks = Arc::clone(&clock);
    let now =
        move || SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + ticks.load(Ordering::SeqCst));
    let uploads = Uploads::open(folder.path().join("uploads"), UploadLimits::default(), now).unwrap();
    let png = AcceptedForm::from_types(&[MediaType::Png]);
    let eyes = FakeProvider::with_reply(good_answer(&json!({ "rationale": "r" })));
    let eyes = Arc::new(eyes.with(|eyes| eyes.takes = Some((Category::Image, png))));
    let module_cache = Arc::new(ModuleCache::new(Library::new(folder.path(), None, &[])));
    let mut host = Host::new(module_cache, Arc::clone(&eyes) as Arc<dyn Provider>);
    let media = Media::new(Documents::Here).with_uploads(uploads.clone());
    host.take_media(Arc::new(media), MediaLimits::default());
    config.uploads = Some(Arc::new(uploads) as Arc<dyn UploadStore>);
    config.keys = keys.iter().map(|(name, key)| ApiKey::new(name, key).unwrap()).collect();
    World { server: Server::with_host(folder, host, config).await, eyes, clock }
}

impl World {
    async fn send(&self, method: &str, path: &str, key: &str, body: Vec<u8>) -> (u16, Value) {
        let kind = if method == "PUT" { "image/png" } else { "application/json" };
        let request = client()
            .request(method.parse().unwrap(), self.server.url(path))
            .header("content-type", kind)
            .header("authorization", format!("Bearer {key}"))
            .body(body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), json_of(response).await)
    }

    async fn post(&self, path: &str, key: &str, body: Value) -> (u16, Value) {
        self.send("POST", path, key, body.to_string().into_bytes()).await
    }

    async fn announce(&self, key: &str, size: usize) -> Value {
        let wish = json!({ "filename": "a.png", "media_type": "image/png", "size_bytes": size });
        let (status, announced) = self.post("/v1/media/upload-url", key, wish).await;
        assert_eq!(status, 200, "{announced}");
        announced
    }
}

fn reference(announced: &Value) -> Value {
    json!({ "image": { "type": "upload_ref", "upload_id": announced["upload_id"], "media_type": "image/png" } })
}

// EXT-MEDIA: announced, sent, used; by its owner only.
#[tokio::test]
async fn ext_media_an_upload_is_sent_ahead_and_used_by_its_owner_alone() {
    let world = world(&[("ann", ANN), ("bob", BOB)]).await;
    let announced = world.announce(ANN, png().len()).await;
    assert_eq!(announced["method"], "PUT");
    assert_eq!(announced["headers"]["Content-Type"], "image/png");
    assert_eq!(announced["expires_at"], "2027-01-15T09:00:00Z");
    assert_eq!(announced["max_size_bytes"], png().len());
    let place = announced["upload_url"].as_str().unwrap();
    let (status, early) = world.post("/api/run/look", ANN, reference(&announced)).await;
    assert_eq!((status, &early["error"]["code"]), (404, &json!("E1019")), "not there yet: {early}");
    let (status, theirs) = world.send("PUT", place, BOB, png()).await;
    assert_eq!((status, &theirs["error"]["code"]), (404, &json!("E1019")));
    let (status, sent) = world.send("PUT", place, ANN, png()).await;
    assert_eq!((status, &sent["status"]), (200, &json!("complete")), "{sent}");
    let (status, theirs) = world.post("/api/run/look", BOB, reference(&announced)).await;
    assert_eq!((status, &theirs["error"]["code"]), (404, &json!("E1019")));
    assert!(world.eyes.calls().is_empty());
    let (status, mine) = world.post("/api/run/look", ANN, reference(&announced)).await;
    assert_eq!(status, 200, "{mine}");
    assert_eq!(mine["meta"]["media_processed"][0]["bytes"], png().len());
    assert_eq!(&world.eyes.calls()[0].media[0].base64[..], PNG.as_bytes());
    world.clock.store(7_200, Ordering::SeqCst);
    let (status, late) = world.post("/api/run/look", ANN, reference(&announced)).await;
    assert_eq!((status, &late["error"]["code"]), (410, &json!("E1018")));
}

fn with_checksum(algorithm: &str, value: &str) -> Value {
    let checksum = json!({ "algorithm": algorithm, "value": value });
    json!({ "filename": "a", "media_type": "image/png", "size_bytes": 1, "checksum": checksum })
}

// EXT-MEDIA, SEC-002: not more bytes than announced, not fewer, and no type that no module accepts.
#[tokio::test]
async fn ext_media_an_upload_that_is_not_what_was_announced_is_refused() {
    let world = world(&[("ann", ANN)]).await;
    for (size, status, code) in [(10, 413, "E1011"), (png().len() + 1, 400, "E1013")] {
        let announced = world.announce(ANN, size).await;
        let place = announced["upload_url"].as_str().unwrap();
        let (found, refused) = world.send("PUT", place, ANN, png()).await;
        assert_eq!((found, &refused["error"]["code"]), (status, &json!(code)), "{refused}");
        let (_, used) = world.post("/api/run/look", ANN, reference(&announced)).await;
        assert_eq!(used["error"]["code"], "E1019");
    }
    for (wish, code) in [
        (json!({ "filename": "a", "media_type": "text/html", "size_bytes": 1 }), "E1010"),
        (json!({ "filename": "a", "media_type": "image/png", "size_bytes": 30 << 20 }), "E1011"),
        (json!({ "filename": "a" }), "E1001"),
        (json!({ "filename": "a", "media_type": "image/png", "size_bytes": 0 }), "E1001"),
        // A checksum that cannot be computed would never be verified.
        (with_checksum("sha512", &"0".repeat(128)), "E1001"),
        (with_checksum("crc32", "not hex"), "E1001"),
    ] {
        let (_, refused) = world.post("/v1/media/upload-url", ANN, wish).await;
        assert_eq!(refused["error"]["code"], code, "{refused}");
    }
    let (status, nobody) = world.post("/v1/media/upload-url", "a-key-that-is-not-one", json!({})).await;
    assert_eq!(status, 401, "{nobody}");
}

// SEC-010, C-42: callers cannot reach files of this machine, whatever their names are.
#[tokio::test]
async fn sec_010_a_file_of_this_machine_is_refused() {
    let world = world(&[]).await;
    let inside = world.server.folder.path().join("secret.png");
    std::fs::write(&inside, png()).unwrap();
    for path in ["/etc/passwd", inside.to_str().unwrap(), "prompt.md", "../secret.png"] {
        let body = json!({ "image": { "type": "file", "path": path } });
        let (status, refused) = world.post("/api/run/look", "", body).await;
        assert_eq!((status, &refused["error"]["code"]), (403, &json!("E4007")), "{path}: {refused}");
    }
    assert!(world.eyes.calls().is_empty());
}

// S-28: a body as large as its module accepts.
#[tokio::test]
async fn a_module_with_pictures_takes_a_larger_body() {
    let world = world(&[]).await;
    let body = json!({ "image": { "type": "base64", "media_type": "image/png", "data": PNG }, "note": "x".repeat(3 << 20) });
    let (status, seen) = world.post("/api/run/look", "", body.clone()).await;
    assert_eq!(status, 200, "{}", seen["error"]);
    let (status, refused) = world.post("/api/run/read", "", body.clone()).await;
    assert_eq!((status, &refused["error"]["code"]), (413, &json!("E1005")));
    // If the body names the module, the largest limit of all modules applies first, then that of the named one.
    let in_body = |name: &str| json!({ "module": name, "input": body });
    let (status, seen) = world.post("/run", "", in_body("look")).await;
    assert_eq!(status, 200, "{}", seen["error"]);
    let (status, refused) = world.post("/run", "", in_body("read")).await;
    assert_eq!((status, &refused["error"]["code"]), (413, &json!("E1005")));
    let (status, refused) = world.post("/run", "", in_body("no-such-module")).await;
    assert_eq!((status, &refused["error"]["code"]), (413, &json!("E1005")));
}

// S-28: many large bodies are not held in memory at once; small ones are not counted.
#[tokio::test]
async fn large_bodies_share_a_memory_and_small_ones_need_none() {
    let mut config = roomy();
    config.large_bodies = 2 << 20;
    let world = world_with(&[], config).await;
    let image = json!({ "type": "base64", "media_type": "image/png", "data": PNG });
    let (status, refused) =
        world.post("/api/run/look", "", json!({ "image": image, "note": "x".repeat(3 << 20) })).await;
    assert_eq!((status, &refused["error"]["code"]), (429, &json!("E4002")));
    let (status, seen) = world.post("/api/run/look", "", json!({ "image": image })).await;
    assert_eq!(status, 200, "{}", seen["error"]);
}

// CAP-002, CAP-003: the server declares the media of its provider, which accepts images but no audio.
#[tokio::test]
async fn cap_003_the_server_declares_its_media_and_describes_its_uploads() {
    let world = world(&[]).await;
    let declared = json_of(client().get(world.server.url("/capabilities")).send().await.unwrap()).await;
    assert_eq!(
        declared["capabilities"]["multimodal"],
        json!({ "input": ["image", "document"], "output": [] })
    );
    assert_eq!(declared["capabilities"]["max_media_size_mb"], 100.0);
    let described = json_of(client().get(world.server.url("/openapi.json")).send().await.unwrap()).await;
    assert!(described["paths"]["/v1/media/uploads/{id}"]["put"]["requestBody"].is_object());
    let schema = "/components/schemas/UploadRequest/required";
    assert_eq!(described.pointer(schema), Some(&json!(["filename", "media_type", "size_bytes"])));
}
