//! An untrusted folder, as it looks after a clone: its configuration, modules, tests and links try to get the user's
//! key, inputs and records. One stub plays the user's service, another the attacker. Regardless of the folder and the
//! command, the attacker receives nothing, and nothing outside the folder changes.

mod consent;
mod secrets;
mod table;
mod world;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;

use serde_json::Value;
use table::{Outcome, Variant};
use world::World;

/// The number of variants that run concurrently.
const AT_ONCE: usize = 4;

fn judge(variant: &Variant) -> Vec<String> {
    let world = World::new();
    let before = world.outside();
    let ended = world.play(variant);
    let mut wrong = Vec::new();
    let mut complain = |what: &str| wrong.push(format!("{}: {what}\n{}", variant.name, ended.said));
    let heard = world.thief_heard();
    if heard.iter().any(|text| world::holds_key(text)) {
        complain("the thief has the key");
    }
    if !heard.is_empty() {
        complain("the thief was asked");
    }
    if ended.code.is_none() {
        complain("it had to be ended");
    }
    if world::holds_key(&ended.said) {
        complain("the key was printed");
    }
    if world.outside() != before {
        complain("something outside the folder changed");
    }
    let as_expected = match variant.outcome {
        Outcome::Refused => ended.code != Some(0) && ended.said.contains("cogn trust"),
        Outcome::Works => ended.code == Some(0),
        Outcome::Fails => ended.code != Some(0),
        Outcome::Either => true,
    };
    if !as_expected {
        complain(&format!("expected {:?}, found exit code {:?}", variant.outcome, ended.code));
    }
    if let Some(text) = variant.says.as_ref().filter(|text| !ended.said.contains(*text)) {
        complain(&format!("it does not say `{text}`"));
    }
    wrong
}

// Sixty ways to ask for the key; all of them fail.
#[test]
fn no_folder_of_a_stranger_gets_a_key_an_input_or_a_record() {
    let variants = table::variants();
    assert!(variants.len() >= 60, "{}", variants.len());
    let share = variants.len().div_ceil(AT_ONCE);
    let wrong: Vec<String> = thread::scope(|scope| {
        let parts: Vec<_> = variants
            .chunks(share)
            .map(|part| scope.spawn(|| part.iter().flat_map(judge).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), variants.len(), wrong.join("\n\n"));
}

// `uv` and `pip` run code of their working directory, so they are not started in that folder.
#[test]
fn no_program_is_started_in_the_folder_of_a_stranger() {
    let world = World::new();
    let (tools, seen) = (world.out().join("bin"), world.out().join("seen"));
    fs::create_dir(&tools).unwrap();
    fs::write(tools.join("uv"), format!("#!/bin/sh\npwd > '{}'\nexit 1\n", seen.display())).unwrap();
    fs::set_permissions(tools.join("uv"), fs::Permissions::from_mode(0o755)).unwrap();
    let nowhere = "http://127.0.0.1:9";
    let env = [("COGN_OFFLINE", "0"), ("PATH", tools.to_str().unwrap()), ("HF_ENDPOINT", nowhere)];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let args = ["run", "summarizer", "--set", "text=x", "--provider", "embedded"].map(str::to_owned);
    let ended = world.cogn(&args, &env);
    let started_in = fs::read_to_string(&seen).unwrap_or_else(|error| panic!("{error}: {}", ended.said));
    let project = world.project().canonicalize().unwrap();
    assert!(!started_in.trim().starts_with(project.to_str().unwrap()), "{started_in}");
}

// A configuration that is a pipe does not block, in the project or at home; a long file is not
// read.
#[test]
fn a_configuration_that_is_a_pipe_or_has_no_end_is_refused_at_once() {
    let run = ["run", "summarizer", "--set", "text=x"].map(str::to_owned);
    for place in ["project/cognitive.yaml", "home/.cognitive/config.yaml"] {
        for kind in ["pipe", "endless", "long"] {
            let world = World::new();
            let path = world.project().join("..").join(place);
            match kind {
                "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
                "endless" => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
                _ => fs::write(&path, "#".repeat((1 << 20) + 1)).unwrap(),
            }
            let ended = world.cogn(&run, &[]);
            assert_eq!(ended.code, Some(1), "{}", ended.said);
            let envelope: Value = serde_json::from_str(&ended.out).unwrap();
            assert_eq!(envelope["error"]["details"]["kind"], "configuration", "{}", ended.said);
            let why =
                if kind == "long" { "is larger than the limit of 1 MiB" } else { "is not a regular file" };
            assert!(ended.said.contains(why), "{place}, {kind}: {}", ended.said);
        }
    }
}
