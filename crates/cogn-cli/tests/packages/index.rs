//! An index of static files on a plain web server; and indexes of the old format.

use std::fs;

use cognitive_contract::text::hex;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::place::Place;
use crate::web_server::WebServer;

/// Creates three versions with a signature, and a server with their index.
fn served(place: &Place, options: &serde_json::Value) -> WebServer {
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        place.packed("labels", version);
    }
    place.packed("other", "0.1.0");
    let folder = place.sibling("packages");
    fs::write(folder.join("registry.json"), options.to_string()).unwrap();
    place.json(&["registry", "build", folder.to_str().unwrap(), "--namespace", "acme", "--author", "Acme"]);
    let server = WebServer::new();
    server.serve_folder(&folder, "");
    server
}

#[test]
fn reg_006_009_names_and_ranges_are_looked_up_in_plain_files() {
    let place = Place::new();
    let server = served(&place, &json!({}));
    let url = server.url.as_str();
    let found = place.json(&["search", "--registry", url]);
    assert_eq!(found["modules"].as_array().unwrap().len(), 2);
    assert_eq!(place.json(&["search", "LABEL", "2.0.0", "--registry", url])["modules"][0]["name"], "labels");
    let versions = place.json(&["versions", "labels", "--registry", url]);
    assert_eq!(
        versions["versions"],
        json!([{ "version": "2.0.0" }, { "version": "1.1.0" }, { "version": "1.0.0" }])
    );

    place.json(&["add", "labels@^1.0.0", "--registry", url]);
    let locked = place.locked("labels");
    assert_eq!((&locked["version"], &locked["source"]), (&json!("1.1.0"), &json!("registry:labels@^1.0.0")));
    assert!(
        locked["resolved"].as_str().unwrap().starts_with(&format!("{url}/labels-1.1.0.tar.gz#sha256:")),
        "{locked}"
    );
    assert!(place.runs("labels"));
    // An update keeps the version range.
    assert_eq!(place.json(&["update", "labels", "--registry", url])["modules"][0]["outcome"], "unchanged");
    fs::remove_dir_all(place.path("cognitive")).unwrap();
    assert_eq!(
        place.json(&["add", "--locked"])["modules"][0]["outcome"],
        "added",
        "from where it was, without the index"
    );
    place.json(&["add", "labels", "--registry", &format!("{url}/index.json")]);
    assert_eq!(place.locked("labels")["version"], "2.0.0", "one file is an index, too");
    place.refused(
        &["add", "labels@^9", "--registry", url],
        "no version of `labels` in the index matches: `^9`",
    );
    place.refused(&["add", "nobody", "--registry", url], "");
    place.refused(&["add", "labels"], "no index is configured");
}

#[test]
fn reg_008_a_deprecated_package_warns() {
    let place = Place::new();
    let options = json!({ "deprecated": { "labels": { "at": "2026-01-01T00:00:00Z", "successor": "other", "reason": "other is better" } } });
    let server = served(&place, &options);
    let said = place.run(&["add", "labels", "--registry", &server.url]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.err.contains("`labels` is deprecated since 2026-01-01T00:00:00Z: other is better; use `other`"),
        "{}",
        said.err
    );
}

// REG-007: the old format names a source, here an archive on the same server.
#[test]
fn reg_007_an_index_of_the_old_form_is_read() {
    let place = Place::new();
    let server = WebServer::new();
    server.serve("/labels.tar.gz", &fs::read(place.packed("labels", "1.0.0")).unwrap());
    let entry = |source: String| json!({ "description": "Labels.", "version": "1.0.0", "source": source, "tags": [], "author": "A" });
    let index = json!({ "modules": {
        "labels": entry(format!("{}/labels.tar.gz", server.url)),
        "thief": entry("/etc".to_owned()),
        "renamed": entry(format!("{}/labels.tar.gz", server.url)),
    }});
    server.serve("/old/index.json", index.to_string().as_bytes());
    let url = format!("{}/old/index.json", server.url);
    place.refused(&["add", "thief", "--registry", &url], "the index may not name this source");
    place.refused(
        &["add", "renamed", "--registry", &url],
        "the index has another package for `renamed`: `labels`",
    );
    place.json(&["add", "labels", "--registry", &url]);
    assert!(place.runs("labels"));
}

// An index leads to no address that the user could not have meant: only to its own server, or to public ones with TLS.
#[test]
fn an_index_of_the_old_form_leads_to_no_address_inside() {
    let place = Place::new();
    let (server, inside) = (WebServer::new(), WebServer::new());
    let archive = fs::read(place.packed("labels", "1.0.0")).unwrap();
    inside.serve("/labels.tar.gz", &archive);
    let port = inside.url.rsplit_once(':').unwrap().1;
    let pinned = format!("{}/labels.tar.gz#sha256:{}", inside.url, hex(&Sha256::digest(&archive)));
    let index = format!("{}/index.json", server.url);
    for (source, words) in [
        (format!("{}/labels.tar.gz", inside.url), "scheme is not allowed"),
        (pinned, "scheme is not allowed"),
        (format!("oci://127.0.0.1:{port}/acme/labels:1.0.0"), "address is not public"),
        (format!("oci://localhost:{port}/acme/labels:1.0.0"), "address is not public"),
        (format!("git+file://{}#path=m", place.sibling("repository").display()), "the index may not name"),
        (format!("git+ssh://127.0.0.1:{port}/x.git"), "the index may not name"),
        (format!("git+https://127.0.0.1:{port}/x.git"), "the index may not name"),
    ] {
        let entry = json!({ "description": "Labels.", "version": "1.0.0", "source": source, "tags": [] });
        server.serve("/index.json", json!({ "modules": { "labels": entry } }).to_string().as_bytes());
        let said = place.refused(&["add", "labels", "--registry", &index], "");
        assert!(said.err.contains(words), "{source}: {}", said.err);
    }
    assert_eq!(inside.asked(), [""; 0]);
}

// A lock file is taken from others with the project: it neither renames a package nor makes the program wait.
#[test]
fn a_strange_lock_file_is_refused_and_installs_nothing() {
    let place = Place::new();
    let archive = place.packed("labels", "1.0.0");
    place.json(&["add", archive.as_str()]);
    let lock = place.path("cognitive.lock");
    let renamed = fs::read_to_string(&lock).unwrap().replace("\"labels\": {", "\"summarizer\": {");
    fs::write(&lock, renamed).unwrap();
    fs::remove_dir_all(place.path("cognitive")).unwrap();
    place.refused(&["add"], "the lock file has another package for `summarizer`: `labels`");
    #[cfg(unix)]
    {
        fs::remove_file(&lock).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&lock).status().unwrap().success());
        let said = place.run(&["add"]);
        assert!(said.code == Some(1) && said.err.contains("it is not a regular file"), "{said:?}");
    }
}

#[test]
fn an_archive_on_the_web_is_added_with_its_hash_and_kept_by_it() {
    let place = Place::new();
    let server = WebServer::new();
    let archive = fs::read(place.packed("labels", "1.0.0")).unwrap();
    server.serve("/labels.tar.gz", &archive);
    let url = format!("{}/labels.tar.gz", server.url);
    let wrong = format!("{url}#sha256:{}", "0".repeat(64));
    place.refused(&["add", &wrong], "the package has the wrong hash");
    place.json(&["add", &url]);
    fs::remove_dir_all(place.path("cognitive")).unwrap();
    server.serve("/labels.tar.gz", &fs::read(place.packed("labels", "2.0.0")).unwrap());
    place.refused(&["add"], "the package has the wrong hash");
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn reg_004_a_folder_of_a_repository_comes_from_a_github_of_ones_own() {
    let place = Place::new();
    let folder = place.sibling("repository");
    for (path, text) in crate::place::module_files("labels", "1.0.0") {
        let path = folder.join("repo-1/modules/labels").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let archive = place.sibling("repo.tar.gz");
    let packed = std::process::Command::new("tar")
        .args(["-czf", archive.to_str().unwrap(), "-C"])
        .arg(&folder)
        .arg("repo-1")
        .status();
    assert!(packed.unwrap().success());
    let server = WebServer::new();
    server.serve("/owner/repo/archive/v1.tar.gz", &fs::read(archive).unwrap());
    let said = place
        .command(&["add", "github:owner/repo/modules/labels@v1"])
        .env("COGN_GITHUB_URL", &server.url)
        .output()
        .unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(place.locked("labels")["source"], "github:owner/repo/modules/labels@v1");
    assert!(place.runs("labels"));
}

// The published schema of entries, if the specification is next to the checkout. This project also has level 4
// (REG-011), but none of its entries uses it.
#[test]
fn reg_001_what_is_built_is_valid_under_the_published_schema() {
    let schema = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/spec/schemas/registry-entry.schema.json");
    let Ok(schema) = fs::read_to_string(schema) else {
        return cognitive_testkit::skip(cognitive_testkit::Lack::Shared);
    };
    let judge = jsonschema::options()
        .should_validate_formats(true)
        .build(&serde_json::from_str(&schema).unwrap())
        .unwrap();
    let place = Place::new();
    let options = json!({ "url": "https://example.com/packages",
        "deprecated": { "other": { "at": "2026-01-01T00:00:00Z", "successor": "labels", "reason": "labels is better" } } });
    let _server = served(&place, &options);
    let index = fs::read_to_string(place.sibling("packages/index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    for name in ["labels", "other"] {
        let entry = &index["modules"][name];
        let faults: Vec<String> = judge.iter_errors(entry).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{name}: {faults:?}");
    }
}
