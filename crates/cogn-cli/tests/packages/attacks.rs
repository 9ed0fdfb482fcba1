//! Hostile archives and servers. Each is refused with a reason, and the files outside are unchanged (`Place::refused`
//! compares them). `cognitive-packages` tests the archives in detail; here they pass through the whole program.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::place::{Place, module_files};
use crate::web_server::WebServer;

/// A tar archive written entry by entry, in ways that no library allows.
struct HostileTar(Vec<u8>);

impl HostileTar {
    fn new() -> Self {
        let mut tar = Self(Vec::new());
        for (path, text) in module_files("labels", "1.0.0") {
            tar.entry(&format!("labels/{path}"), b'0', text.as_bytes());
        }
        tar
    }

    fn entry(&mut self, path: &str, kind: u8, bytes: &[u8]) {
        self.header(path, kind, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
    }

    fn header(&mut self, path: &str, kind: u8, size: u64) {
        let mut header = [0_u8; 512];
        let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
        put(0, path.as_bytes());
        put(100, b"0000644\0");
        put(124, format!("{size:011o}\0").as_bytes());
        put(156, &[kind]);
        put(157, b"/etc/passwd");
        put(257, b"ustar\x0000");
        put(148, b"        ");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0.extend_from_slice(&header);
    }

    fn write(mut self, path: &Path) {
        self.0.resize(self.0.len() + 1_024, 0);
        let mut gzip =
            flate2::write::GzEncoder::new(fs::File::create(path).unwrap(), flate2::Compression::fast());
        gzip.write_all(&self.0).unwrap();
        gzip.finish().unwrap();
    }
}

#[test]
fn sec_021_hostile_archives_are_refused_whole() {
    let place = Place::new();
    let archive = place.sibling("hostile.tar.gz");
    let long = format!("labels/{}", "d/".repeat(40));
    for (path, kind, words) in [
        ("labels/../../../home/precious", b'0', "its path leaves the folder"),
        ("../home/precious", b'0', "its path leaves the folder"),
        ("/etc/cron.d/x", b'0', "its path is absolute"),
        ("labels/link", b'2', "it is a link"),
        ("labels/hard", b'1', "it is a link"),
        ("labels/null", b'3', "it is not a regular file"),
        ("labels/sda", b'4', "it is not a regular file"),
        ("labels/pipe", b'6', "it is not a regular file"),
        ("labels/MODULE.YAML", b'0', "on some systems its name is equal to that of another"),
        ("labels/module.yaml", b'0', "the archive contains it twice"),
        ("labels/nul.txt", b'0', "its name is reserved for a device on some systems"),
        ("other/file", b'0', "one folder at its top"),
        (&long, b'0', "nested too deeply"),
    ] {
        let mut tar = HostileTar::new();
        tar.entry(path, kind, b"evil");
        tar.write(&archive);
        place.refused(&["add", archive.to_str().unwrap()], words);
    }
    // Ten gigabytes of zeros, but only in the header.
    let mut tar = HostileTar::new();
    tar.header("labels/zeros", b'0', 8 << 30);
    tar.write(&archive);
    place.refused(&["add", archive.to_str().unwrap()], "at most 50 MiB in total");
}

#[test]
fn modules_with_names_that_are_none_are_refused() {
    let place = Place::new();
    for name in ["../x", "con", "a/b", ".hidden"] {
        let folder = place.sibling("evil");
        fs::create_dir_all(folder.join("tests")).unwrap();
        for (path, text) in module_files(name, "1.0.0") {
            fs::write(folder.join(path), text).unwrap();
        }
        place.refused(&["add", folder.to_str().unwrap()], "");
    }
    for source in ["../x", "registry:../x", "registry:con", &"a".repeat(4_000)] {
        place.refused(&["add", source], "");
    }
}

#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_a_module_or_of_the_lock_file_leads_nowhere() {
    let place = Place::new();
    let archive = place.packed("labels", "1.0.0");
    fs::create_dir_all(place.path("cognitive/modules")).unwrap();
    fs::create_dir(place.sibling("victim")).unwrap();
    fs::write(place.sibling("victim/file"), "mine").unwrap();
    std::os::unix::fs::symlink(place.sibling("victim"), place.path("cognitive/modules/labels")).unwrap();
    place.refused(&["add", &archive], "");
    place.refused(&["add", "--force", &archive], "a link or a file has its name");
}

/// Prepares a registry on this machine with fixed answers.
fn registry(server: &WebServer) -> String {
    server.serve("/v2/", b"{}");
    format!("oci://{}/labels:1.0.0", server.url.strip_prefix("http://").unwrap())
}

#[test]
fn a_registry_that_lies_is_not_believed() {
    let place = Place::new();
    let server = WebServer::new();
    let source = registry(&server);
    let good = fs::read(place.packed("labels", "1.0.0")).unwrap();
    let other = fs::read(place.packed("labels", "2.0.0")).unwrap();
    let manifest = |digest: &str, size: usize| {
        let text = format!(
            r#"{{"schemaVersion": 2, "layers": [{{"mediaType": "application/vnd.cognitive.module.v1.tar+gzip", "digest": "{digest}", "size": {size}}}]}}"#
        );
        server.serve("/v2/labels/manifests/1.0.0", text.as_bytes());
    };
    let digest = format!("sha256:{}", cognitive_packages::sha256(&good));
    let blob = format!("/v2/labels/blobs/{digest}");

    // A different package under this digest, with its own length and with the right length.
    manifest(&digest, good.len());
    server.serve(&blob, &other);
    place.refused(&["add", &source], "");
    let mut bent = good.clone();
    *bent.last_mut().unwrap() ^= 1;
    server.serve(&blob, &bent);
    place.refused(&["add", &source], "");
    // Shorter and longer than the manifest states.
    server.serve(&blob, &good);
    manifest(&digest, good.len() + 1);
    place.refused(&["add", &source], "");
    manifest(&digest, good.len() - 1);
    place.refused(&["add", &source], "");
    manifest("sha256:../../../etc/passwd", good.len());
    place.refused(&["add", &source], "has no module package there");
    manifest(&digest, 1 << 40);
    place.refused(&["add", &source], "larger than 50 MiB");
    // Internal targets: another port of this machine, the metadata service of a cloud, a file.
    let inside = WebServer::new();
    inside.serve("/secret", &good);
    for target in [
        format!("{}/secret", inside.url),
        "http://169.254.169.254/latest".to_owned(),
        "file:///etc/passwd".to_owned(),
    ] {
        manifest(&digest, good.len());
        server.redirect(&blob, &target);
        place.refused(&["add", &source], "");
    }
    assert!(inside.asked().is_empty(), "nobody goes where a registry points inside");
    // It is allowed if the user trusts it: the storage of an internal registry.
    manifest(&digest, good.len());
    server.redirect(&blob, &format!("{}/secret", inside.url));
    let trusting = place
        .command(&["add", &source, "--dry-run"])
        .env("COGN_REGISTRY_TRUST", &inside.url)
        .output()
        .unwrap();
    assert!(trusting.status.success(), "{}", String::from_utf8_lossy(&trusting.stderr));
    let mistyped =
        place.command(&["add", &source]).env("COGN_REGISTRY_TRUST", "somewhere/else").output().unwrap();
    assert!(
        String::from_utf8_lossy(&mistyped.stderr)
            .contains("invalid origin in `COGN_REGISTRY_TRUST`: `somewhere/else`")
    );
    // The same registry with honest answers.
    server.serve(&blob, &good);
    place.json(&["add", &source]);
    assert!(place.runs("labels"));
}

#[test]
fn an_index_cannot_lead_inside() {
    let place = Place::new();
    let (server, inside) = (WebServer::new(), WebServer::new());
    let archive = fs::read(place.packed("labels", "1.0.0")).unwrap();
    inside.serve("/labels.tar.gz", &archive);
    let entry = |tarball: &str| {
        format!(
            r#"[{{"identity": {{"name": "labels", "namespace": "a", "version": "1.0.0", "spec_version": "2.2"}},
            "metadata": {{"description": "d", "author": "a", "tier": "decision"}}, "dependencies": {{"runtime_min": "2.2.0", "modules": []}},
            "distribution": {{"tarball": "{tarball}", "checksum": "sha256:{}"}}}}]"#,
            cognitive_packages::sha256(&archive)
        )
    };
    for tarball in [
        format!("{}/labels.tar.gz", inside.url),
        "file:///etc/passwd".to_owned(),
        "http://10.0.0.1/x".to_owned(),
    ] {
        server.serve("/v1/modules/labels/versions/index.json", entry(&tarball).as_bytes());
        place.refused(&["add", "labels", "--registry", &server.url], "");
    }
    server.redirect("/labels.tar.gz", &format!("{}/labels.tar.gz", inside.url));
    server.serve("/v1/modules/labels/versions/index.json", entry("labels.tar.gz").as_bytes());
    place.refused(&["add", "labels", "--registry", &server.url], "");
    assert!(inside.asked().is_empty());
}
