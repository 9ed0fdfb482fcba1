//! A real registry, `docker-registry`, with and without a login: pushed content is pulled back byte for byte.

use cognitive_net::registry::{Credentials, OciClient};
use cognitive_net::{Proxies, Secret};
use cognitive_testkit::{REGISTRY_PASSWORD, REGISTRY_USER, TestRegistry};

use crate::registry::stub::{digest, error_of, run};

/// Types that all registries accept, even those that refuse unknown media types.
pub(crate) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const LAYER: &str = "application/vnd.cognitive.module.v1.tar+gzip";
const REPOSITORY: &str = "team/text-classifier";

pub(crate) fn client(host: &str, credentials: Option<Credentials>) -> OciClient {
    OciClient::new(host, credentials, false).unwrap().with_proxies(Proxies::None)
}

fn tester(password: &str) -> Credentials {
    Credentials::basic(REGISTRY_USER, Secret::new(password).unwrap())
}

/// Returns bytes that are not text and fill several packets.
pub(crate) fn layer() -> Vec<u8> {
    (0..3_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Returns a manifest of a config and a layer.
pub(crate) fn manifest(config: &[u8], layer: &[u8]) -> Vec<u8> {
    let part = |kind: &str, bytes: &[u8]| serde_json::json!({ "mediaType": kind, "digest": digest(bytes), "size": bytes.len() });
    let value = serde_json::json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": part(CONFIG, config),
        "layers": [part(LAYER, layer)],
    });
    serde_json::to_vec(&value).unwrap()
}

/// Pushes a package of one layer and returns the bytes of its manifest.
pub(crate) async fn push(client: &OciClient, repository: &str, tag: &str, layer: &[u8]) -> Vec<u8> {
    let config = br#"{"architecture":"unknown","os":"unknown","rootfs":{"type":"layers","diff_ids":[]}}"#;
    assert_eq!(client.put_blob(repository, config).await.unwrap(), digest(config));
    assert_eq!(client.put_blob(repository, layer).await.unwrap(), digest(layer));
    let manifest = manifest(config, layer);
    assert_eq!(client.put_manifest(repository, tag, MANIFEST, &manifest).await.unwrap(), digest(&manifest));
    manifest
}

async fn round_trip(client: &OciClient) {
    let layer = layer();
    assert!(!client.has_blob(REPOSITORY, &digest(&layer)).await.unwrap());
    let manifest = push(client, REPOSITORY, "1.0.0", &layer).await;
    assert!(client.has_blob(REPOSITORY, &digest(&layer)).await.unwrap());
    for reference in ["1.0.0", &digest(&manifest)] {
        let found = client.manifest(REPOSITORY, reference).await.unwrap();
        assert_eq!((found.bytes.as_slice(), found.digest), (manifest.as_slice(), digest(&manifest)));
        assert_eq!(found.media_type, MANIFEST);
    }
    assert_eq!(client.blob(REPOSITORY, &digest(&layer), layer.len() as u64).await.unwrap(), layer);
    // A second push uploads no blob, and another tag is a separate name.
    push(client, REPOSITORY, "1.0.1", &layer).await;
    assert_eq!(client.tags(REPOSITORY).await.unwrap(), ["1.0.0", "1.0.1"]);
    // An empty blob is valid too.
    client.put_blob(REPOSITORY, b"").await.unwrap();
    assert_eq!(client.blob(REPOSITORY, &digest(b""), 0).await.unwrap(), b"");
}

#[test]
fn what_is_pushed_is_pulled_by_tag_and_by_digest() {
    let Some(registry) = TestRegistry::open() else { return };
    run(round_trip(&client(&registry.host, None)));
    // Unneeded credentials do no harm.
    run(async {
        let client = client(&registry.host, Some(tester(REGISTRY_PASSWORD)));
        assert_eq!(client.tags(REPOSITORY).await.unwrap().len(), 2);
    });
}

#[test]
fn a_registry_with_a_login() {
    let Some(registry) = TestRegistry::with_login() else { return };
    run(async {
        round_trip(&client(&registry.host, Some(tester(REGISTRY_PASSWORD)))).await;
        for (login, words) in [(None, "requires a login"), (Some(tester("wrong")), "rejects the login")] {
            let client = client(&registry.host, login);
            let error = error_of(client.manifest(REPOSITORY, "1.0.0").await);
            let message = format!("the registry {words}: `{}/{REPOSITORY}:1.0.0`", registry.host);
            assert_eq!((&error["code"], &error["message"]), (&"E4007".into(), &message.into()));
            assert!(
                error_of(client.put_blob(REPOSITORY, b"x").await)["message"]
                    .as_str()
                    .unwrap()
                    .contains(words)
            );
        }
    });
}

#[test]
fn what_is_not_there_is_said() {
    let Some(registry) = TestRegistry::open() else { return };
    run(async {
        let client = client(&registry.host, None);
        let missing = digest(b"nobody pushed this");
        for outcome in [
            client.manifest(REPOSITORY, "9.9.9").await.map(drop),
            client.manifest(REPOSITORY, &missing).await.map(drop),
            client.blob(REPOSITORY, &missing, 1).await.map(drop),
            client.tags(REPOSITORY).await.map(drop),
        ] {
            let error = error_of(outcome);
            assert_eq!(error["code"], "E1006");
            let message = error["message"].as_str().unwrap();
            let expected =
                format!("the registry has no such repository or tag: `{}/{REPOSITORY}", registry.host);
            assert!(message.starts_with(&expected), "{message}");
        }
        // The registry refuses a manifest that names a missing blob, with its own message.
        let manifest = manifest(b"no config", b"no layer");
        let error = error_of(client.put_manifest(REPOSITORY, "1.0.0", MANIFEST, &manifest).await);
        assert_eq!(error["details"]["status"], 400);
        assert!(
            error["message"].as_str().unwrap().contains("answered 400, MANIFEST_BLOB_UNKNOWN"),
            "{error}"
        );
    });
}
