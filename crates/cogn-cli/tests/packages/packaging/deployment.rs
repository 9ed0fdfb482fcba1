//! Checks the compose and Kubernetes files: options and variables exist in the program, ports and paths are those of
//! the server, the grace period covers the shutdown, versions are pinned, and no password is in plain text. A planted
//! mistake proves that each rule works.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use cognitive_testkit::{FakeModel, Lack, skip};
use regex::Regex;

use super::containers::{self, Container};
use super::{good, read, root, said};

const COMPOSE: &str = "packaging/compose/compose.yaml";
const FOLDER: &str = "packaging/kubernetes";

/// The facts about the programs.
struct Facts {
    variables: BTreeSet<String>,
    /// The help of `cogn serve` and `cogn deploy restate`, and the source of the worker's options.
    serve: String,
    deploy: String,
    worker: String,
    /// The maximum shutdown time of the programs.
    server_ends: u64,
    worker_ends: u64,
    restate: String,
}

fn seconds(path: &str, name: &str) -> u64 {
    let found = Regex::new(&format!(r"const {name}: Duration = Duration::from_secs\((\d+)\)")).unwrap();
    found.captures(&read(path)).unwrap_or_else(|| panic!("{path} has no {name}"))[1].parse().unwrap()
}

impl Facts {
    fn of_this_checkout() -> Self {
        let help = |words: &[&str]| {
            let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
            good(command.args(words).args(["--help"]).env("COLUMNS", "400"))
        };
        let serve = help(&["serve"]);
        let drain = Regex::new(r"(?s)--drain <SECONDS>.*?\[default: (\d+)\]").unwrap();
        let drain: u64 = drain.captures(&serve).unwrap()[1].parse().unwrap();
        let farewells = seconds("crates/cognitive-http/src/server.rs", "FAREWELL")
            + seconds("crates/cogn-cli/src/commands/serve.rs", "FAREWELL");
        let restate = Regex::new(r"@restatedev/restate-server@([\d.]+)").unwrap();
        let named = Regex::new(r#""([A-Z][A-Z0-9_]+)""#).unwrap();
        let sources =
            [read("crates/cognitive-setup/src/env_vars.rs"), read("crates/cognitive-net/src/kind.rs")]
                .concat();
        Self {
            variables: named.captures_iter(&sources).map(|found| found[1].to_owned()).collect(),
            serve,
            deploy: help(&["deploy", "restate"]),
            worker: read("crates/cogn-restate/src/main.rs"),
            server_ends: drain + farewells,
            worker_ends: seconds("crates/cogn-restate/src/socket.rs", "GRACE"),
            restate: restate.captures(&read(".ci/tools")).unwrap()[1].to_owned(),
        }
    }

    /// Returns all faults of a container.
    fn faults(&self, container: &Container) -> Vec<String> {
        let mut faults = Vec::new();
        let mut fault = |what: String| faults.push(format!("{}: {what}", container.place));
        let version = container.image.rsplit_once(':').map_or("", |(_, version)| version);
        let own = matches!(container.program(), "cogn" | "cogn-restate");
        if !Regex::new(r"^\d+(\.\d+)+(-alpine)?$").unwrap().is_match(version)
            || (own && version != env!("CARGO_PKG_VERSION"))
            || (container.program() == "restate" && version != self.restate)
        {
            fault(format!("the version of the image: {}", container.image));
        }
        for what in container.not_locked.iter().chain(&container.not_asked) {
            fault(format!("{what} is missing"));
        }
        if !container.bounded {
            fault("its memory has no limit".to_owned());
        }
        for variable in &container.variables {
            let secret =
                ["PASSWORD", "_KEY", "_AUTH", "TOKEN"].iter().any(|part| variable.name.contains(part));
            if secret && variable.value.is_some() {
                fault(format!("{} is in clear", variable.name));
            }
            if own && !self.variables.contains(&variable.name) {
                fault(format!("nothing reads {}", variable.name));
            }
            if container.program() == "cogn-restate"
                && (variable.name.starts_with("COGN_SERVE") || variable.name == "COGNITIVE_API_KEY")
            {
                fault(format!("the worker does not read {}", variable.name));
            }
        }
        faults.extend(self.faults_of_a_program(container));
        faults
    }

    fn faults_of_a_program(&self, container: &Container) -> Vec<String> {
        let mut faults = Vec::new();
        let mut fault = |what: String| faults.push(format!("{}: {what}", container.place));
        let first = container.words.first().map_or("", String::as_str);
        let (page, ends, port) = match (container.program(), first) {
            ("cogn", "serve") => (&self.serve, Some(self.server_ends), Some(8000)),
            ("cogn", "deploy") => (&self.deploy, None, None),
            ("cogn-restate", _) => (&self.worker, Some(self.worker_ends), Some(9080)),
            ("cogn", other) => return vec![format!("{}: no such command: {other}", container.place)],
            _ => return faults,
        };
        for option in container.words.iter().filter_map(|word| word.strip_prefix("--")) {
            let field = format!("\n    {}: ", option.replace('-', "_"));
            if !page.contains(&format!("--{option} "))
                && !page.contains(&field)
                && !page.contains(&format!("--{option}\n"))
            {
                fault(format!("no such option: --{option}"));
            }
        }
        // A small margin for the delivery of the signal.
        if let Some(ends) = ends
            && container.grace.unwrap_or(10) < container.pause + ends + 3
        {
            fault(format!("it may take {} s to end", container.pause + ends));
        }
        for given in container.ports.iter().chain(container.probes.iter().map(|(_, port)| port)) {
            if Some(*given) != port {
                fault(format!("it does not listen on {given}"));
            }
        }
        faults
    }
}

fn shipped() -> Vec<(String, String)> {
    let mut files: Vec<String> = fs::read_dir(root().join(FOLDER))
        .unwrap()
        .map(|entry| format!("{FOLDER}/{}", entry.unwrap().file_name().to_str().unwrap()))
        .collect();
    files.sort();
    files.push(COMPOSE.to_owned());
    files.into_iter().map(|path| (path.clone(), read(&path))).collect()
}

fn containers_of(path: &str, text: &str) -> Vec<Container> {
    if path == COMPOSE { containers::of_compose(text) } else { containers::of_kubernetes(path, text) }
}

/// Returns all faults of a file.
fn faults(facts: &Facts, path: &str, text: &str) -> Vec<String> {
    let containers = containers_of(path, text);
    let mut faults: Vec<String> = containers.iter().flat_map(|container| facts.faults(container)).collect();
    if Regex::new(r"://[^/@\s]*:[^/@\s]+@").unwrap().is_match(text) {
        faults.push(format!("{path}: an address has a password"));
    }
    faults
}

#[test]
fn the_files_say_nothing_that_is_not_so() {
    let facts = Facts::of_this_checkout();
    let files = shipped();
    let found: Vec<String> = files.iter().flat_map(|(path, text)| faults(&facts, path, text)).collect();
    assert!(found.is_empty(), "{found:#?}");
    let count: usize = files.iter().map(|(path, text)| containers_of(path, text).len()).sum();
    assert_eq!(count, 9 + 6, "services of compose and containers of Kubernetes");
}

// Each rule finds its mistake in a copy of the shipped file.
#[test]
fn a_planted_mistake_is_found() {
    let facts = Facts::of_this_checkout();
    let (server, worker, restate) = (
        "packaging/kubernetes/cogn.yaml",
        "packaging/kubernetes/worker.yaml",
        "packaging/kubernetes/restate.yaml",
    );
    let planted = [
        (COMPOSE, "COGN_SERVE_SHARED:", "COGN_SERVE_SHARE:", "nothing reads COGN_SERVE_SHARE"),
        (COMPOSE, "--per-address", "--per-adress", "no such option: --per-adress"),
        (COMPOSE, "${COGNITIVE_API_KEY:?is set in .env}", "hunter2", "COGNITIVE_API_KEY is in clear"),
        (COMPOSE, "cogn@postgres", "cogn:hunter2@postgres", "an address has a password"),
        (
            COMPOSE,
            "stop_grace_period: 30s\n  volumes",
            "stop_grace_period: 20s\n  volumes",
            "it may take 24 s to end",
        ),
        (COMPOSE, "redis:7.2.16-alpine", "redis:latest", "the version of the image"),
        (COMPOSE, concat!("cogn:", env!("CARGO_PKG_VERSION")), "cogn:0.0.0", "the version of the image"),
        (COMPOSE, "127.0.0.1:9070:9070", "9070:9070", "ports is missing"),
        (COMPOSE, "read_only: true", "read_only: false", "read_only is missing"),
        (server, "{path: /ready, port: http}", "{path: /ready, port: 9000}", "it does not listen on 9000"),
        (server, "containerPort: 8000", "containerPort: 80", "it does not listen on 80"),
        (
            server,
            "terminationGracePeriodSeconds: 40",
            "terminationGracePeriodSeconds: 30",
            "it may take 29 s to end",
        ),
        (server, "livenessProbe", "aliveProbe", "livenessProbe is missing"),
        (server, "runAsUser: 65532", "runAsUser: 0", "runAsNonRoot is missing"),
        (server, "limits: {cpu: \"2\", memory: 2Gi}", "limits: {}", "its memory has no limit"),
        (server, "args: [serve", "args: [server", "no such command: server"),
        (worker, "COGNITIVE_DB, ", "COGN_SERVE_SHARED, ", "the worker does not read COGN_SERVE_SHARED"),
        (worker, "--listen", "--listens", "no such option: --listens"),
        (worker, "enableServiceLinks: false", "enableServiceLinks: true", "enableServiceLinks is missing"),
        (restate, "restatedev/restate:", "restatedev/restate:9.", "the version of the image"),
    ];
    for (path, right, wrong, word) in planted {
        let text = read(path);
        assert!(text.contains(right), "{path} has no {right}");
        let found = faults(&facts, path, &text.replace(right, wrong));
        assert!(found.iter().any(|fault| fault.contains(word)), "{wrong} is not found: {found:?}");
    }
}

// Names in one file that must exist in another: services, password claims, resources.
#[test]
fn the_files_know_each_other() {
    let keys: BTreeSet<String> = read("packaging/compose/example.env")
        .lines()
        .filter_map(|line| line.strip_suffix('=').map(str::to_owned))
        .collect();
    let named = Regex::new(r"secretKeyRef: \{name: (\w+), key: (\w+)").unwrap();
    let asked = Regex::new(r"\$\{(\w+):\?").unwrap();
    let mut hosts = BTreeSet::new();
    for (path, text) in shipped() {
        for found in named.captures_iter(&text) {
            assert!(&found[1] == "cogn" && keys.contains(&found[2]), "{path}: {}", &found[0]);
        }
        for found in asked.captures_iter(&text) {
            assert!(keys.contains(&found[1]), "{path}: {}", &found[0]);
        }
        let documents = containers::documents(&text);
        let services = documents.iter().filter(|document| document["kind"] == "Service");
        hosts.extend(services.map(|service| containers::text(&service["metadata"]["name"])));
    }
    let addresses = Regex::new(r"(?:postgres://cogn@|redis://|http://)([\w-]+)[/:]").unwrap();
    let compose = containers::documents(&read(COMPOSE)).remove(0);
    for (path, text) in shipped() {
        for found in addresses.captures_iter(&text) {
            let known = if path == COMPOSE {
                compose["services"][&found[1]].is_object()
            } else {
                hosts.contains(&found[1])
            };
            assert!(known, "{path} names {}", &found[1]);
        }
    }
    let listed = containers::words(
        &containers::documents(&read("packaging/kubernetes/kustomization.yaml"))[0]["resources"],
    );
    for (path, _) in
        shipped().iter().filter(|(path, _)| path != COMPOSE && !path.ends_with("kustomization.yaml"))
    {
        assert!(listed.iter().any(|file| path.ends_with(file.as_str())), "{path} is not applied");
    }
    let (images, dockerfile) = (Regex::new(r"target: (\w+)").unwrap(), read("packaging/Dockerfile"));
    for found in images.captures_iter(&read(COMPOSE)) {
        assert!(dockerfile.contains(&format!(" AS {}\n", &found[1])), "no such image: {}", &found[1]);
    }
    let balancer = read("packaging/compose/balancer.conf");
    for name in ["cogn-1", "cogn-2", "cogn-3"] {
        assert!(balancer.contains(&format!("server {name}:8000 ")) && compose["services"][name].is_object());
    }
}

// Without this feature, a server address would be treated as a file name.
#[test]
fn a_worker_is_built_with_what_its_database_needs() {
    let features = read("crates/cogn-restate/Cargo.toml");
    let default = features.lines().find(|line| line.starts_with("default = ")).unwrap();
    assert!(default.contains(r#""postgres""#), "{default}");
    assert!(read("packaging/kubernetes/worker.yaml").contains("postgres://"));
}

// The paths of Kubernetes probes answer without a key and under the address of a pod.
#[test]
fn a_server_answers_what_probes_ask() {
    let home = tempfile::tempdir().unwrap();
    let service = FakeModel::script(Vec::new());
    let (_server, address) = super::nginx::serve(home.path(), &service, Some("0123456789abcdef"));
    let text = read("packaging/kubernetes/cogn.yaml");
    let probes = containers::of_kubernetes("cogn.yaml", &text).remove(0).probes;
    assert_eq!(probes.len(), 3);
    for (path, _) in probes {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: 10.1.2.3:8000\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    }
}

// A variable that Restate does not know would not change its reported settings.
#[test]
fn restate_reads_its_variables() {
    let Some(program) = std::env::var_os("COGN_TEST_RESTATE") else { return skip(Lack::Restate) };
    let settings = |variable: Option<(&str, &str)>| {
        let mut command = Command::new(&program);
        command.arg("--dump-config").env_clear().envs(variable);
        good(&mut command)
    };
    let usual = settings(None);
    let containers = containers::of_kubernetes("restate.yaml", &read("packaging/kubernetes/restate.yaml"));
    assert!(containers[0].variables.len() > 3);
    for variable in &containers[0].variables {
        let value = variable.value.as_deref().unwrap();
        assert_ne!(settings(Some((&variable.name, value))), usual, "{}", variable.name);
    }
    assert_eq!(settings(Some(("RESTATE_NO_SUCH_SETTING", "1"))), usual);
}

#[test]
fn docker_compose_takes_the_file_and_refuses_a_mistake() {
    if Command::new("docker-compose")
        .arg("version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_err()
    {
        return skip(Lack::Compose);
    }
    let folder = tempfile::tempdir().unwrap();
    let check = |text: &str, passwords: bool| {
        fs::write(folder.path().join("compose.yaml"), text).unwrap();
        let mut command = super::at_home("docker-compose", folder.path());
        command.args(["--file", "compose.yaml", "config", "--quiet"]);
        if passwords {
            command.envs(
                ["COGNITIVE_DB_PASSWORD", "COGN_SERVE_SHARED_PASSWORD", "COGNITIVE_API_KEY"]
                    .map(|name| (name, "x")),
            );
        }
        command.output().unwrap()
    };
    let shipped = read(COMPOSE);
    let taken = check(&shipped, true);
    assert!(taken.status.success(), "{}", said(&taken));
    let without = check(&shipped, false);
    assert!(!without.status.success() && said(&without).contains("is set in .env"), "{}", said(&without));
    let wrong = check(&shipped.replace("healthcheck:", "health_check:"), true);
    assert!(!wrong.status.success() && said(&wrong).contains("health_check"), "{}", said(&wrong));
}

#[test]
fn the_schemas_of_kubernetes_take_the_files_and_refuse_a_mistake() {
    let pythons = std::env::var_os("COGN_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let able = |python: &std::path::PathBuf| {
        let mut check = Command::new(python);
        check.args(["-c", "import kubernetes_validate"]).stderr(Stdio::null());
        check.status().is_ok_and(|status| status.success())
    };
    let Some(python) = std::env::split_paths(&pythons).find(able) else {
        return skip(Lack::KubernetesSchemas);
    };
    let folder = tempfile::tempdir().unwrap();
    let check = |text: &str| {
        let file = folder.path().join("file.yaml");
        fs::write(&file, text).unwrap();
        Command::new(&python).args(["-m", "kubernetes_validate", "--strict"]).arg(file).output().unwrap()
    };
    for (path, text) in shipped() {
        if path != COMPOSE && !path.ends_with("kustomization.yaml") {
            let taken = check(&text);
            assert!(taken.status.success() && !said(&taken).contains("WARN"), "{path}: {}", said(&taken));
        }
    }
    let server = read("packaging/kubernetes/cogn.yaml");
    let wrong = check(&server.replace("terminationGracePeriodSeconds", "terminationGraceSeconds"));
    assert!(!wrong.status.success(), "{}", said(&wrong));
}
