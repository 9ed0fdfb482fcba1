//! Tools that hang, print endless output or leave child processes behind; and processes that wait for each other.

use std::fs::{self, File};
use std::io::Read;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::support::World;

#[cfg(feature = "local")]
#[test]
fn a_tool_that_hangs_or_talks_without_end_is_ended() {
    for does in ["exec sleep 600\n", "yes >&2\n", "yes >&2 & yes >&2 & wait\n"] {
        let world = World::new();
        world.tool("uv", does);
        let output = world.run(&["run", "text-classifier", "--set", "text=x", "--timeout", "1"], &[]);
        assert_eq!(output.code, 1, "{}", output.err);
        let error = &serde_json::from_str::<Value>(&output.out).unwrap()["error"];
        let source = &error["details"]["sources"][0];
        assert_eq!(
            (error["code"].as_str(), source["source"].as_str()),
            (Some("E4001"), Some("uv")),
            "{error}"
        );
        assert!(source["reason"].as_str().unwrap().starts_with("it took longer than "), "{error}");
    }
}

#[test]
fn a_signal_ends_the_tool_and_all_that_it_started() {
    for signal in ["-TERM", "-HUP", "-INT"] {
        let world = World::new();
        let started = world.dir.path().join("started");
        assert!(Command::new("mkfifo").arg(&started).status().unwrap().success());
        // A child process of the tool holds the pipe open while it runs.
        let does = format!("(echo yes; exec sleep 600) > '{}' &\nwait\n", started.display());
        world.tool("uv", &does);
        let child = world
            .cogn(&["model", "pull"], &[])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = File::open(&started).unwrap();
        let mut said = [0; 4];
        pipe.read_exact(&mut said).unwrap();
        let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(130), 0), "{signal}");
        let mut rest = String::new();
        pipe.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "{signal}: it is gone");
    }
}

#[test]
fn whoever_waits_for_another_process_says_so_and_gives_up() {
    let world = World::new();
    let lock = world.file().with_extension("gguf.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let held = File::create(&lock).unwrap();
    fs::write(&lock, "123").unwrap();
    held.lock().unwrap();
    let output = world.run(&["model", "pull", "--timeout", "1"], &[]);
    assert_eq!(output.code, 1, "{}", output.err);
    assert!(output.err.contains("another process (123) is downloading the weights"), "{}", output.err);
    assert!(output.err.contains("for more than 1000 ms"), "{}", output.err);
}
