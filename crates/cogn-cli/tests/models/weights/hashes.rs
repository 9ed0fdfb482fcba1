//! Unexpected weights are detected before they compute an answer, and receipts name the weights that answered.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::Value;

use super::support::{KNOWN, WEIGHTS, World, nowhere};

/// Unpacks a package whose file is a link to the outside, with unusual permissions.
const BRINGS_A_LINK: &str = "mkdir -p \"$target/tiny\"\nprintf 'GGUF and the weights' > \"$(dirname \"$0\")/cached\"\nchmod 6777 \"$(dirname \"$0\")/cached\"\nln -s \"$(dirname \"$0\")/cached\" \"$target/tiny/weights.gguf\"\n";
/// Unpacks a package whose file is a hard link.
const BRINGS_A_SECOND_NAME: &str = "mkdir -p \"$target/tiny\"\nprintf 'GGUF and the weights' > \"$(dirname \"$0\")/cached\"\nchmod 6777 \"$(dirname \"$0\")/cached\"\nln \"$(dirname \"$0\")/cached\" \"$target/tiny/weights.gguf\"\n";

#[test]
fn whatever_a_tool_left_the_weights_are_a_plain_file_of_ours() {
    for brings in [BRINGS_A_LINK, BRINGS_A_SECOND_NAME] {
        let world = World::new();
        world.tool("uv", brings);
        let path = world.pull(&nowhere()).0.unwrap().path;
        let meta = fs::symlink_metadata(&path).unwrap();
        assert!(meta.is_file(), "{meta:?}");
        assert_eq!(format!("{:o}", meta.permissions().mode() & 0o7777), "644");
        // Later changes to the tool's own file do not affect ours.
        fs::write(world.tools().join("cached"), "something else").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), WEIGHTS);
        assert_eq!(world.left(), ["tiny.gguf", "tiny.gguf.from"]);
    }
}

#[test]
fn a_file_in_the_cache_is_judged_by_its_hash() {
    let world = World::new();
    world.leave(&world.place().file(), WEIGHTS);
    assert_eq!(world.place().check(&KNOWN), cognitive_setup::weights::WeightsState::Right);
    world.leave(&world.place().file(), &WEIGHTS.to_uppercase());
    assert!(matches!(world.place().check(&KNOWN), cognitive_setup::weights::WeightsState::Wrong(_)));
}

#[cfg(feature = "local")]
const ASK: [&str; 7] =
    ["run", "text-classifier", "--set", "text=What a wonderful day!", "--receipt", "--provider", "embedded"];

/// Overwrites 40,000 bytes in the middle, like a disk fault.
#[cfg(feature = "local")]
fn damage(path: &std::path::Path) {
    let mut file = File::options().read(true).write(true).open(path).unwrap();
    let mut bytes = vec![0; 40_000];
    file.seek(SeekFrom::Start(50_000_000)).unwrap();
    file.read_exact(&mut bytes).unwrap();
    for byte in &mut bytes {
        *byte ^= 0x10;
    }
    file.seek(SeekFrom::Start(50_000_000)).unwrap();
    file.write_all(&bytes).unwrap();
}

#[cfg(feature = "local")]
#[test]
fn damaged_weights_are_no_model_and_a_receipt_names_the_right_ones() {
    const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
    let Some(weights) = cognitive_testkit::weights() else { return };
    let world = World::new();
    fs::create_dir_all(world.file().parent().unwrap()).unwrap();
    symlink(&weights, world.file()).unwrap();
    let good = world.run(&ASK, &[]);
    let receipt = serde_json::from_str::<Value>(&good.out).unwrap()["meta"]["provenance"].clone();
    assert_eq!(receipt["sha256"]["weights"], SHA256, "{}", good.out);
    let records = world.run(&["audit", "export", "--jsonl"], &[]).out;
    let mut records = records.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let books = records.find(|record| record["event"] == "run").unwrap();
    assert_eq!(books["receipt"]["sha256"]["weights"], SHA256, "{books}");

    fs::remove_file(world.file()).unwrap();
    fs::copy(&weights, world.file()).unwrap();
    damage(&world.file());
    let damaged = world.run(&ASK, &[]);
    let error = &serde_json::from_str::<Value>(&damaged.out).unwrap()["error"];
    assert_eq!((damaged.code, error["code"].as_str()), (1, Some("E4001")), "{}", damaged.out);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("`cogn model pull [NAME]`") && message.contains("its sha256 is "), "{error}");
    let health: Value = serde_json::from_str(&world.run(&["doctor", "--json"], &[]).out).unwrap();
    assert_eq!(health["embedded"]["weights"], false, "{health}");

    // The same bytes as a user file: there is no expected hash, but the receipt has the actual one.
    let own = world.dir.path().join("own.gguf");
    fs::rename(world.file(), &own).unwrap();
    let named = [("COGN_MODEL", own.to_str().unwrap())];
    let answer: Value = serde_json::from_str(&world.run(&ASK, &named).out).unwrap();
    let listed: Value = serde_json::from_str(&world.run(&["model", "list", "--json"], &named).out).unwrap();
    let sha256 = listed[0]["sha256"].as_str().unwrap();
    assert!(sha256.len() == 64 && sha256 != SHA256, "{listed}");
    let receipt = &answer["meta"]["provenance"]["sha256"]["weights"];
    assert!(receipt == sha256 || answer["ok"] == false, "{answer}");
}
