//! Several models: each is downloaded by name from its publisher's repository, and large ones only on request.

use std::fs;
use std::path::PathBuf;

use cognitive_setup::weights::KnownWeights;
use serde_json::Value;

use super::support::{BRINGS, Hub, KNOWN, WEIGHTS, World};

const HALF: &str = "qwen2.5-coder-0.5b-instruct-q4_k_m";
const ON_HUB: &str = "get /qwen/qwen2.5-coder-0.5b-instruct-gguf/resolve/\
                      ebb2015119c907b064c512bf053e945850b5875f/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf ";
const LARGE_ON_HUB: &str = "get /qwen/qwen2.5-coder-1.5b-instruct-gguf/resolve/\
                            f86cb2c1fa58255f8052cc32aeede1b7482d4361/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf ";

/// A model without a Python package, like those of other publishers.
const ON_HUB_ALONE: KnownWeights = KnownWeights { package: None, ..KNOWN };

impl World {
    pub(crate) fn model_file(&self, name: &str) -> PathBuf {
        self.cache().join(format!("cogn/models/{name}.gguf"))
    }
}

fn missing() -> Hub {
    Hub::start(vec![("404 Not Found\r\ncontent-length: 0", String::new())])
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_name_is_fetched_from_its_publisher_and_from_no_package() {
    for (name, asked) in [("qwen-0.5b", ON_HUB), (HALF, ON_HUB), ("embedded/qwen-1.5b", LARGE_ON_HUB)] {
        let world = World::new();
        world.tool("uv", BRINGS).tool("pip", BRINGS);
        let hub = missing();
        let output = world.run(&["model", "pull", name], &[("HF_ENDPOINT", &hub.url)]);
        assert_eq!((output.code, output.out.as_str()), (1, ""));
        let found = hub.asked();
        assert!(found[0].starts_with(asked), "{found:?}");
        assert!(world.calls().is_empty(), "{:?}", world.calls());
        let first = output.err.lines().next().unwrap();
        assert!(first.contains(" MB, licence Apache-2.0) into "), "the licence comes first: {first}");
        assert!(output.err.contains("no weights from 127.0.0.1"), "{}", output.err);
    }
    let unknown = World::new().run(&["model", "pull", "qwen-9b"], &[]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.err.contains("unknown embedded model: `qwen-9b`"), "{}", unknown.err);
    assert!(unknown.err.contains("smollm2, qwen-0.5b, qwen-1.5b"), "{}", unknown.err);
}

#[test]
fn a_download_that_was_cut_goes_on_in_the_next_command() {
    let world = World::new();
    let cut = Hub::start(vec![
        ("200 OK\r\ncontent-length: 491400064", "GGUF!".to_owned()),
        ("404 Not Found\r\ncontent-length: 0", String::new()),
    ]);
    assert_eq!(world.run(&["model", "pull", "qwen-0.5b"], &[("HF_ENDPOINT", &cut.url)]).code, 1);
    assert!(cut.asked()[1].contains("range: bytes=5-"));
    let hub = missing();
    assert_eq!(world.run(&["model", "pull", "qwen-0.5b"], &[("HF_ENDPOINT", &hub.url)]).code, 1);
    assert!(hub.asked()[0].contains("range: bytes=5-"));
    let part = world.model_file(HALF).with_extension("gguf.part");
    assert_eq!(fs::read(&part).unwrap(), b"GGUF!");
    assert_eq!(world.run(&["model", "rm", "qwen-0.5b"], &[]).code, 0);
    assert!(!part.exists());
}

#[test]
fn a_file_of_the_publisher_is_taken_up_judged_and_thrown_away_if_it_is_another() {
    let world = World::new();
    let rest = "206 Partial Content\r\ncontent-range: bytes 5-19/20\r\ncontent-length: 15";
    let hub = Hub::start(vec![
        ("200 OK\r\ncontent-length: 20", "GGUF ".to_owned()),
        (rest, "and the weights".to_owned()),
    ]);
    let pulled = world.pull_as(&ON_HUB_ALONE, &hub.url).0.unwrap();
    assert_eq!(fs::read_to_string(pulled.path).unwrap(), WEIGHTS);
    assert!(hub.asked()[1].contains("range: bytes=5-"));

    let world = World::new();
    let hub = Hub::start(vec![("200 OK\r\ncontent-length: 20", "GGUF and the WEIGHTS".to_owned())]);
    let (result, notes) = world.pull_as(&ON_HUB_ALONE, &hub.url);
    assert!(result.is_err() && world.left().is_empty(), "{:?}", world.left());
    assert!(notes.len() == 1 && notes[0].contains("its sha256 is "), "nobody else was asked: {notes:?}");
    hub.asked();
}

#[test]
fn the_list_shows_what_each_model_costs() {
    let world = World::new();
    let list = json(&world.run(&["model", "list", "--json"], &[]).out);
    let rows = list.as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!((&rows[1]["name"], &rows[1]["aliases"][0]), (&HALF.into(), &"qwen-0.5b".into()));
    assert_eq!(
        (rows[1]["bytes"].as_u64(), rows[2]["bytes"].as_u64()),
        (Some(491_400_064), Some(1_117_320_768))
    );
    for row in rows {
        assert_eq!((&row["licence"], &row["installed"]), (&"Apache-2.0".into(), &false.into()), "{row}");
        assert!(
            row["memory"].as_u64() > row["bytes"].as_u64() && row["context"].as_u64() >= Some(8_192),
            "{row}"
        );
    }
    let shown = world.run(&["model", "list"], &[("COLUMNS", "100")]).out;
    let line = shown.lines().find(|line| line.starts_with("qwen-0.5b ")).unwrap();
    for word in ["not here", "491 MB", "Apache-2.0", "32768"] {
        assert!(line.contains(word), "{word}: {line}");
    }
}

#[test]
fn path_and_verify_take_names() {
    let world = World::new();
    let path = world.run(&["model", "path", "qwen-1.5b"], &[]);
    assert_eq!((path.code, path.out.as_str()), (1, ""));
    assert!(path.err.contains("hint: Run `cogn model pull qwen-1.5b`"), "{}", path.err);
    let verify = world.run(&["model", "verify", "qwen-1.5b"], &[]);
    assert!(
        verify.code == 1 && verify.err.contains("hint: Run `cogn model pull qwen-1.5b`"),
        "{}",
        verify.err
    );
    world.leave(&world.model_file(HALF), "GGUF but short");
    let verify = world.run(&["model", "verify"], &[]);
    assert_eq!(verify.code, 1);
    assert!(verify.err.contains("it has 14 bytes instead of 491400064"), "{}", verify.err);
    assert!(!verify.err.contains("smollm2"), "what nobody has is not missed: {}", verify.err);
    let file = world.dir.path().join("own.gguf");
    fs::write(&file, "GGUF").unwrap();
    let rm = world.run(&["model", "rm", file.to_str().unwrap()], &[]);
    assert!(rm.code == 1 && file.exists(), "{}", rm.err);
}

#[cfg(feature = "local")]
mod runs {
    use super::*;

    fn run(world: &World, more: &[&str], environment: &[(&str, &str)]) -> (Value, String) {
        let mut args = vec!["run", "text-classifier", "--set", "text=x"];
        args.extend(more);
        let output = world.run(&args, environment);
        (json(&output.out), output.err)
    }

    #[test]
    fn a_run_that_names_a_model_fetches_it_unless_that_is_forbidden() {
        for how in [
            (&["--provider", "embedded", "--model", "qwen-0.5b"][..], &[][..]),
            (&["--model", "embedded/qwen-0.5b"], &[]),
            (&[], &[("LLM_MODEL", "embedded/qwen-0.5b")]),
        ] {
            let world = World::new();
            let hub = missing();
            let mut environment = how.1.to_vec();
            environment.push(("HF_ENDPOINT", &hub.url));
            let (envelope, said) = run(&world, how.0, &environment);
            assert!(hub.asked()[0].starts_with(ON_HUB));
            assert!(said.starts_with(&format!("fetching the embedded model {HALF} (491 MB, ")), "{said}");
            let error = &envelope["error"];
            assert_eq!((&error["code"], &error["details"]["sources"][1]), (&"E4001".into(), &Value::Null));
            assert!(
                error["message"]
                    .as_str()
                    .unwrap()
                    .starts_with("the embedded model `qwen-0.5b` has no weights")
            );
            assert!(error["suggestion"].as_str().unwrap().contains("`cogn model pull qwen-0.5b`"), "{error}");

            let mut forbidden = how.1.to_vec();
            forbidden.push(("COGN_OFFLINE", "1"));
            let (envelope, said) = run(&world, how.0, &forbidden);
            assert_eq!((envelope["error"]["code"].as_str(), said.as_str()), (Some("E4001"), ""));
            let message = envelope["error"]["message"].as_str().unwrap();
            assert!(message.contains("downloads are disabled"), "{message}");
        }
    }

    #[test]
    fn a_server_does_not_fetch_hundreds_of_megabytes_while_it_starts() {
        let world = World::new();
        let output = world.run(&["serve", "--port", "0", "--model", "embedded/qwen-0.5b"], &[]);
        assert_eq!(output.code, 1, "{}", output.err);
        assert!(output.err.contains("a server does not download 491 MB at startup"), "{}", output.err);
        assert!(output.err.contains("`cogn model pull qwen-0.5b`"), "{}", output.err);
        assert!(!world.cache().join("cogn").exists(), "nobody was asked");
    }

    #[test]
    fn a_default_model_counts_in_the_file_of_the_user_and_not_in_that_of_a_stranger() {
        let world = World::new();
        let home = world.dir.path().join("home");
        fs::create_dir(home.join(".cognitive")).unwrap();
        fs::write(home.join(".cognitive/config.yaml"), "default_model: qwen-1.5b\n").unwrap();
        let (envelope, _) = run(&world, &["--no-pull"], &[]);
        assert!(envelope["error"]["message"].as_str().unwrap().contains("`qwen-1.5b`"), "{envelope}");
        let health = json(&world.run(&["doctor", "--json"], &[]).out);
        assert_eq!(health["model"], "qwen2.5-coder-1.5b-instruct-q4_k_m");
        assert!(
            health["next"][0].as_str().unwrap().contains("`cogn model pull qwen-1.5b`"),
            "{}",
            health["next"]
        );

        let world = World::new();
        let home = world.dir.path().join("home");
        for (says, setting) in
            [("default_model: qwen-1.5b\n", "default_model"), ("model: embedded/qwen-1.5b\n", "model")]
        {
            fs::write(home.join("cognitive.yaml"), says).unwrap();
            let hub = missing();
            let (envelope, said) = run(&world, &[], &[("HF_ENDPOINT", &hub.url)]);
            assert!(hub.asked()[0].contains("/smollm2-135m-instruct.q4_1.gguf "), "{envelope}");
            assert!(said.contains(&format!("`{setting}`")) && said.contains("cogn trust"), "{said}");
            let (envelope, _) = run(&world, &["--no-pull"], &[("COGN_TRUST_PROJECT", "1")]);
            assert!(envelope["error"]["message"].as_str().unwrap().contains("`qwen-1.5b`"), "{envelope}");
        }
    }

    /// A sparse file of a length that exceeds the memory of every machine.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_does_not_fit_into_memory_is_refused_before_it_is_read() {
        let world = World::new();
        let file = world.dir.path().join("huge.gguf");
        fs::File::create(&file).unwrap().set_len(1 << 43).unwrap();
        let (envelope, said) = run(&world, &["--model", file.to_str().unwrap()], &[]);
        let error = &envelope["error"];
        assert_eq!((error["code"].as_str(), said.as_str()), (Some("E4001"), ""), "{envelope}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message
                .starts_with("not enough memory for the embedded model `huge`: at least 4398047 MB needed, ")
        );
        assert_eq!(error["details"]["memory"]["needed_bytes"], 1_u64 << 42);
        assert!(error["details"]["memory"]["available_bytes"].as_u64() > Some(0), "{error}");
        let hint = error["suggestion"].as_str().unwrap();
        assert!(hint.contains("close other programs") || hint.starts_with("Close other programs"), "{hint}");
        let added = world.run(&["model", "add", file.to_str().unwrap()], &[]);
        assert!(added.code == 1 && added.err.contains("not enough memory"), "{}", added.err);
    }
}
