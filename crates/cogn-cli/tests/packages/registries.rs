//! A real OCI registry: publish, add by tag and by digest, update, remove; with a login, and with third-party clients.

use std::fs;
use std::process::Command;

use cognitive_testkit::{Lack, REGISTRY_PASSWORD, REGISTRY_USER, TestRegistry, skip};
use serde_json::json;

use crate::place::Place;

#[test]
fn a_package_goes_through_a_registry_and_comes_back_the_same() {
    let Some(registry) = TestRegistry::open() else { return };
    let place = Place::new();
    let repository = format!("oci://{}/acme/labels", registry.host);
    let one = place.json(&["publish", &place.module("labels", "1.0.0"), &repository]);
    assert_eq!(one["tag"], format!("{repository}:1.0.0"));
    let reference = one["reference"].as_str().unwrap();

    // By tag, by digest, and without either: the newest version.
    place.json(&["add", &format!("{repository}:1.0.0")]);
    let locked = place.locked("labels");
    assert_eq!((&locked["resolved"], &locked["sha256"]), (&json!(reference), &one["sha256"]));
    assert_eq!(place.json(&["add", reference])["modules"][0]["outcome"], "unchanged");
    place.json(&["publish", &place.module("labels", "1.10.0"), &repository]);
    place.json(&["publish", &place.module("labels", "1.9.0"), &repository]);
    assert_eq!(place.json(&["versions", &repository])["versions"][0]["version"], "1.10.0");
    place.json(&["add", &repository]);
    assert_eq!(place.locked("labels")["version"], "1.10.0");
    assert!(place.runs("labels"));

    // An update follows a moved tag; the lock file keeps the installed digest.
    place.json(&["publish", &place.module("labels", "1.0.0"), &format!("{repository}:stable")]);
    place.json(&["add", &format!("{repository}:stable")]);
    place.refused(
        &["publish", &place.module("labels", "2.0.0"), &format!("{repository}:stable")],
        "belongs to another package",
    );
    place.json(&["publish", &place.module("labels", "2.0.0"), &format!("{repository}:stable"), "--force"]);
    fs::remove_dir_all(place.path("cognitive")).unwrap();
    place.json(&["add", "--locked"]);
    assert_eq!(place.locked("labels")["version"], "1.0.0");
    assert_eq!(place.json(&["update", "labels"])["modules"][0]["previous"], "1.0.0");
    assert_eq!(place.locked("labels")["version"], "2.0.0");
    place.json(&["remove", "labels"]);
    place.refused(&["add", &format!("{repository}:nowhere")], "nowhere");
    place.refused(&["add", &format!("oci://{}/acme/absent", registry.host)], "absent");
}

#[test]
fn publishing_twice_changes_nothing_and_reserved_names_are_refused() {
    let Some(registry) = TestRegistry::open() else { return };
    let place = Place::new();
    let repository = format!("oci://{}/labels", registry.host);
    let first = place.json(&["publish", &place.module("labels", "1.0.0"), &repository]);
    assert_eq!(
        place.json(&["publish", &place.module("labels", "1.0.0"), &repository])["reference"],
        first["reference"]
    );
    place.refused(
        &["publish", &place.module("core-labels", "1.0.0"), &repository],
        "are reserved: `core-labels`",
    );
    place.refused(
        &["publish", &place.module("labels", "1.0.0+build"), &repository],
        "the version cannot be a tag",
    );
    place.refused(
        &["publish", &place.module("labels", "1.0.0"), "https://example.com/x"],
        "cannot publish to",
    );
    let dry = place.json(&["publish", &place.module("labels", "3.0.0"), &repository, "--dry-run"]);
    assert!(dry["reference"].as_str().unwrap().contains("@sha256:"));
    assert!(!place.json(&["versions", &repository]).to_string().contains("3.0.0"));
}

#[test]
fn signed_packages_carry_their_signature_in_the_manifest() {
    let Some(registry) = TestRegistry::open() else { return };
    let place = Place::new();
    let (key, repository) =
        (place.sibling("key").display().to_string(), format!("oci://{}/labels", registry.host));
    place.json(&["sign", "--generate", &key]);
    place.json(&["publish", &place.module("labels", "1.0.0"), &repository, "--secret-key", &key]);
    place.json(&["publish", &place.module("labels", "1.1.0"), &repository]);
    let public = format!("{key}.pub");
    place.json(&["add", &format!("{repository}:1.0.0"), "--key", &public]);
    assert!(place.locked("labels")["signed_by"].is_string());
    place.refused(&["add", &format!("{repository}:1.1.0"), "--key", &public], "the package is not signed");
    place.refused(&["add", &format!("{repository}:1.1.0")], "was signed by");
    // The next version of the same signer needs no `--key`; that of another one is refused.
    place.json(&["publish", &place.module("labels", "1.2.0"), &repository, "--secret-key", &key]);
    let signer = place.locked("labels")["signed_by"].clone();
    place.json(&["add", &format!("{repository}:1.2.0")]);
    assert_eq!(place.locked("labels")["signed_by"], signer);
    let other = place.sibling("other").display().to_string();
    place.json(&["sign", "--generate", &other]);
    place.json(&["publish", &place.module("labels", "1.3.0"), &repository, "--secret-key", &other]);
    place.refused(&["add", &format!("{repository}:1.3.0")], "");
    assert_eq!(place.locked("labels")["signed_by"], signer);
}

#[test]
fn the_login_comes_from_docker_podman_a_helper_or_the_environment_and_is_never_shown() {
    let Some(registry) = TestRegistry::with_login() else { return };
    let place = Place::new();
    let repository = format!("oci://{}/labels", registry.host);
    let module = place.module("labels", "1.0.0");
    let said = place.refused(&["publish", &module, &repository], "");
    assert!(said.err.contains("docker login"), "{}", said.err);
    let with = |variables: &[(&str, &str)]| {
        let output = place
            .command(&["publish", &module, &repository])
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains(REGISTRY_PASSWORD), "{said}");
        (output.status.code(), said)
    };
    let (user, password) =
        (("COGN_REGISTRY_USER", REGISTRY_USER), ("COGN_REGISTRY_PASSWORD", REGISTRY_PASSWORD));
    let host = ("COGN_REGISTRY_HOST", registry.host.as_str());
    assert_eq!(with(&[host, user, ("COGN_REGISTRY_PASSWORD", "wrong")]).0, Some(1));
    assert_eq!(with(&[host, user, password]).0, Some(0));
    // A lock file may name any host; the login is sent only to its own host.
    assert_eq!(with(&[("COGN_REGISTRY_HOST", "ghcr.io"), user, password]).0, Some(1));
    let (code, said) = with(&[user, password]);
    assert!(code == Some(1) && said.contains("has a login without a registry"), "{said}");

    // `docker login` writes the same file.
    let auth = base64_of(&format!("{REGISTRY_USER}:{REGISTRY_PASSWORD}"));
    let config = json!({ "auths": { registry.host.as_str(): { "auth": auth } } });
    let podman = place.sibling("auth.json");
    fs::write(&podman, config.to_string()).unwrap();
    assert_eq!(with(&[("REGISTRY_AUTH_FILE", podman.to_str().unwrap())]).0, Some(0));
    fs::create_dir(place.sibling("home/.docker")).unwrap();
    fs::write(place.sibling("home/.docker/config.json"), config.to_string()).unwrap();
    place.json(&["add", &repository]);
    assert!(place.runs("labels"));
}

#[cfg(unix)]
#[test]
fn a_helper_that_keeps_logins_is_asked() {
    use std::os::unix::fs::PermissionsExt as _;

    let Some(registry) = TestRegistry::with_login() else { return };
    let place = Place::new();
    let (bin, config) = (place.sibling("bin"), place.sibling("home/.docker"));
    fs::create_dir(&bin).unwrap();
    fs::create_dir(&config).unwrap();
    let helper = bin.join("docker-credential-ours");
    let script = format!(
        "#!/bin/sh\nread host\n[ \"$1 $host\" = \"get {}\" ] || exit 1\nprintf '{{\"Username\": \"{REGISTRY_USER}\", \"Secret\": \"{REGISTRY_PASSWORD}\"}}'\n",
        registry.host
    );
    fs::write(&helper, script).unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(config.join("config.json"), json!({ "credsStore": "ours" }).to_string()).unwrap();
    let path = std::env::join_paths(
        [bin].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let repository = format!("oci://{}/labels", registry.host);
    let output = place
        .command(&["publish", &place.module("labels", "1.0.0"), &repository])
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

// Other tools can copy our packages, and we can add the copies.
#[test]
fn skopeo_copies_a_package_to_another_place() {
    let skopeo = std::env::var_os("COGN_TEST_SKOPEO").unwrap_or_else(|| "skopeo".into());
    if !Command::new(&skopeo).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return skip(Lack::OciClients);
    }
    let Some(registry) = TestRegistry::open() else { return };
    let place = Place::new();
    let published = place.json(&[
        "publish",
        &place.module("labels", "1.0.0"),
        &format!("oci://{}/labels", registry.host),
    ]);
    let copied = Command::new(&skopeo)
        .args([
            "--insecure-policy",
            "copy",
            "--preserve-digests",
            "--src-tls-verify=false",
            "--dest-tls-verify=false",
        ])
        .arg(format!("docker://{}/labels:1.0.0", registry.host))
        .arg(format!("docker://{}/mirror/labels:1.0.0", registry.host))
        .env("HOME", place.sibling("home"))
        .output()
        .unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    place.json(&["add", &format!("oci://{}/mirror/labels", registry.host)]);
    let digest = |text: &serde_json::Value| text.as_str().unwrap().split_once('@').unwrap().1.to_owned();
    assert_eq!(digest(&place.locked("labels")["resolved"]), digest(&published["reference"]));
}

fn base64_of(text: &str) -> String {
    use base64::Engine as _;

    base64::engine::general_purpose::STANDARD.encode(text)
}
