//! Interoperability with other clients: each side pulls what the other pushed, byte for byte. `skopeo` copies images
//! to a folder and back, `oras` pushes and pulls files.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use cognitive_testkit::{Lack, REGISTRY_PASSWORD, REGISTRY_USER, TestRegistry, skip};
use serde_json::Value;

use crate::registry::real::{client, layer, push};
use crate::registry::stub::{digest, run};

/// Runs a program, which must succeed.
fn good(command: &mut Command) {
    // Isolated from the proxy, configuration and login of the current user.
    let home = env::temp_dir();
    let kept = ["PATH", "LD_LIBRARY_PATH"].map(|name| (name, env::var_os(name).unwrap_or_default()));
    let command = command.env_clear().envs(kept).env("HOME", home).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{command:?}: {said:?}");
}

fn runs(program: &OsStr, argument: &[&str]) -> bool {
    let mut command = Command::new(program);
    let status = command.args(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn skopeo() -> Option<OsString> {
    let program = env::var_os("COGN_TEST_SKOPEO").unwrap_or_else(|| "skopeo".into());
    let found = runs(&program, &["--version"]).then_some(program);
    if found.is_none() {
        skip(Lack::OciClients);
    }
    found
}

fn python() -> Option<PathBuf> {
    let pythons = env::var_os("COGN_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let found = env::split_paths(&pythons).find(|python| runs(python.as_os_str(), &["-c", "import oras"]));
    if found.is_none() {
        skip(Lack::OciClients);
    }
    found
}

/// A folder that is removed after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("cogn-oci-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Reads a blob of an image layout.
fn blob(layout: &Path, digest: &str) -> Vec<u8> {
    fs::read(layout.join("blobs").join(digest.replace(':', "/"))).unwrap()
}

#[test]
fn skopeo_pulls_what_we_push_and_we_pull_what_it_pushes() {
    let Some(skopeo) = skopeo() else { return };
    let Some(registry) = TestRegistry::with_login() else { return };
    let folder = Folder::new("skopeo");
    let password = cognitive_net::Secret::new(REGISTRY_PASSWORD).unwrap();
    let login = cognitive_net::registry::Credentials::basic(REGISTRY_USER, password);
    let (client, layer) = (client(&registry.host, Some(login)), layer());
    let manifest = run(push(&client, "team/ours", "1.0.0", &layer));
    let copy = |from: String, to: String, side: &str| {
        good(
            Command::new(&skopeo)
                .args(["--insecure-policy", "--tmpdir"])
                .arg(&folder.0)
                .args(["copy", "--preserve-digests"])
                .arg(format!("--{side}-tls-verify=false"))
                .arg(format!("--{side}-creds={REGISTRY_USER}:{REGISTRY_PASSWORD}"))
                .args([from, to]),
        );
    };
    let layout = folder.at("layout");
    let local = format!("oci:{}:x", layout.display());
    copy(format!("docker://{}/team/ours:1.0.0", registry.host), local.clone(), "src");
    assert_eq!(blob(&layout, &digest(&manifest)), manifest);
    assert_eq!(blob(&layout, &digest(&layer)), layer);
    copy(local, format!("docker://{}/team/theirs:2.0.0", registry.host), "dest");
    run(async {
        let found = client.manifest("team/theirs", "2.0.0").await.unwrap();
        assert_eq!(found.bytes, manifest);
        assert_eq!(client.blob("team/theirs", &digest(&layer), layer.len() as u64).await.unwrap(), layer);
        assert_eq!(client.tags("team/theirs").await.unwrap(), ["2.0.0"]);
    });
}

/// A script that pushes or pulls a file in the current folder.
const ORAS: &str = r#"
import sys
import oras.client
verb, target = sys.argv[1:]
client = oras.client.OrasClient(insecure=True)
if verb == "push":
    client.push(files=["layer.bin:application/vnd.cognitive.module.v1.tar+gzip"], target=target)
else:
    for name in client.pull(target=target, outdir="pulled"):
        print(name)
"#;

#[test]
fn oras_pulls_what_we_push_and_we_pull_what_it_pushes() {
    let Some(python) = python() else { return };
    let Some(registry) = TestRegistry::open() else { return };
    let folder = Folder::new("oras");
    let (client, layer) = (client(&registry.host, None), layer());
    fs::write(folder.at("layer.bin"), &layer).unwrap();
    let oras = |verb: &str, target: &str| {
        let target = format!("{}/{target}", registry.host);
        good(Command::new(&python).current_dir(&folder.0).args(["-c", ORAS, verb, &target]));
    };
    oras("push", "team/theirs:2.0.0");
    run(async {
        let manifest = client.manifest("team/theirs", "2.0.0").await.unwrap();
        let manifest: Value = serde_json::from_slice(&manifest.bytes).unwrap();
        let part = &manifest["layers"][0];
        let (found, size) = (part["digest"].as_str().unwrap(), part["size"].as_u64().unwrap());
        assert_eq!(client.blob("team/theirs", found, size).await.unwrap(), layer);
    });
    run(push(&client, "team/ours", "1.0.0", &layer));
    oras("pull", "team/ours:1.0.0");
    // `oras` names a layer without a title by its digest.
    let pulled: Vec<PathBuf> =
        fs::read_dir(folder.at("pulled")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(pulled.len(), 1, "{pulled:?}");
    assert_eq!(fs::read(&pulled[0]).unwrap(), layer);
}
