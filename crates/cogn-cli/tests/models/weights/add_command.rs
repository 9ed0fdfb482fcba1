//! `cogn model add`: gives a user file a name. Only the added file answers under that name.

use std::fs;
#[cfg(feature = "local")]
use std::path::Path;

#[cfg(feature = "local")]
use serde_json::Value;

use super::support::World;

#[cfg(feature = "local")]
const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// Copies the real weights, so that the test can damage them.
#[cfg(feature = "local")]
fn own_copy(world: &World, weights: &Path) -> String {
    let own = world.dir.path().join("My-Model.gguf");
    fs::copy(weights, &own).unwrap();
    own.to_str().unwrap().to_owned()
}

#[cfg(feature = "local")]
fn ask(world: &World, model: &str) -> Value {
    let words =
        ["run", "text-classifier", "--set", "text=What a wonderful day!", "--receipt", "--model", model];
    serde_json::from_str(&world.run(&words, &[("COGN_OFFLINE", "1")]).out).unwrap()
}

#[cfg(feature = "local")]
#[test]
fn a_file_of_ones_own_answers_under_its_name_until_it_changes() {
    let Some(weights) = cognitive_testkit::weights() else { return };
    let world = World::new();
    let own = own_copy(&world, &weights);
    let added = world.run(&["model", "add", &own, "--name", "mine", "--json"], &[]);
    let row: Value = serde_json::from_str(&added.out).unwrap();
    assert_eq!(
        (added.code, &row["name"], &row["sha256"]),
        (0, &"mine".into(), &SHA256.into()),
        "{}",
        added.err
    );
    assert_eq!((&row["verified"], &row["from"]), (&true.into(), &own.as_str().into()));
    let answer = ask(&world, "embedded/mine");
    assert_eq!(
        (&answer["ok"], &answer["meta"]["model"]),
        (&true.into(), &"embedded/mine".into()),
        "{answer}"
    );
    assert_eq!(answer["meta"]["provenance"]["sha256"]["weights"], SHA256);
    let path = world.run(&["model", "path", "mine"], &[]);
    assert_eq!((path.code, path.out.trim()), (0, world.model_file("mine").to_str().unwrap()));
    assert_eq!(world.run(&["model", "verify", "mine"], &[]).code, 0);
    let list: Value = serde_json::from_str(&world.run(&["model", "list", "--json"], &[]).out).unwrap();
    assert_eq!((&list[3]["name"], &list[3]["verified"]), (&"mine".into(), &true.into()), "{list}");
    let again = world.run(&["model", "add", &own, "--name", "mine"], &[]);
    assert!(again.code == 1 && again.err.contains("`cogn model rm mine`"), "{}", again.err);

    // A change through either hard link invalidates the model.
    let mut bytes = fs::read(world.model_file("mine")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 40_000].fill(7);
    fs::write(world.model_file("mine"), bytes).unwrap();
    let answer = ask(&world, "mine");
    assert!(answer["error"]["message"].as_str().unwrap().contains("its sha256 is "), "{answer}");
    assert_eq!(world.run(&["model", "verify", "mine"], &[]).code, 1);
    fs::write(world.model_file("mine"), "GGUF").unwrap();
    let answer = ask(&world, "mine");
    assert!(answer["error"]["suggestion"].as_str().unwrap().contains("`cogn model rm mine`"), "{answer}");

    assert_eq!(world.run(&["model", "rm", "mine"], &[]).code, 0);
    assert!(Path::new(&own).exists(), "the file that was added is left alone");
    assert_eq!(world.run(&["model", "path", "mine"], &[]).code, 1);
    assert_eq!(ask(&world, "mine")["error"]["code"], "E4001");
}

/// All processes use the packed copy next to the file; deleting or damaging it does not change answers.
#[cfg(all(feature = "local", unix))]
#[test]
fn weights_are_packed_once_and_whatever_becomes_of_that_the_answer_is_the_same() {
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};

    let Some(weights) = cognitive_testkit::weights() else { return };
    let world = World::new();
    let own = own_copy(&world, &weights);
    assert_eq!(world.run(&["model", "add", &own, "--name", "mine"], &[]).code, 0);
    let packed = world.model_file("mine").with_extension("gguf.packed");
    let inode = || fs::metadata(&packed).unwrap().ino();
    assert!(!packed.exists());
    let data = ask(&world, "mine")["data"].clone();
    assert!(data.is_object());
    let first = inode();
    assert_eq!(ask(&world, "mine")["data"], data);
    assert_eq!(inode(), first, "nobody packs it again");
    // A corrupted byte in the middle.
    let file = fs::File::options().read(true).write(true).open(&packed).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 50_000_000).unwrap();
    file.write_all_at(&[!byte[0]], 50_000_000).unwrap();
    assert_eq!(ask(&world, "mine")["data"], data);
    assert_ne!(inode(), first, "it is packed anew");
    // A folder with this name prevents the file, so the weights are packed into memory.
    fs::remove_file(&packed).unwrap();
    fs::create_dir(&packed).unwrap();
    assert_eq!(ask(&world, "mine")["data"], data);
    fs::remove_dir(&packed).unwrap();
    assert_eq!(ask(&world, "mine")["data"], data);
    assert_eq!(world.run(&["model", "rm", "mine"], &[]).code, 0);
    assert!(!packed.exists());
}

#[cfg(feature = "local")]
#[test]
fn a_file_that_is_a_known_model_becomes_that_model() {
    let Some(weights) = cognitive_testkit::weights() else { return };
    let world = World::new();
    let own = own_copy(&world, &weights);
    let added = world.run(&["model", "add", &own], &[]);
    assert_eq!(added.code, 0, "{}", added.err);
    assert!(added.err.contains("smollm2: length and sha256 match"), "{}", added.err);
    assert_eq!(added.out.trim(), world.file().to_str().unwrap());
    assert_eq!(ask(&world, "smollm2")["meta"]["model"], "embedded/smollm2-135m-instruct-q4_1");
}

#[cfg(feature = "local")]
#[test]
fn what_the_engine_cannot_load_is_not_kept() {
    let world = World::new();
    let own = world.dir.path().join("own.gguf");
    fs::write(&own, "GGUF and no model").unwrap();
    let refused = world.run(&["model", "add", own.to_str().unwrap()], &[]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert!(refused.err.contains("the file cannot be used as a model: "), "{}", refused.err);
    assert_eq!(fs::read_dir(world.cache().join("cogn/models")).unwrap().count(), 0);
    assert!(own.exists());
}

#[test]
fn names_that_are_taken_or_lead_elsewhere_are_refused() {
    let world = World::new();
    let own = world.dir.path().join("A file.gguf");
    fs::write(&own, "GGUF").unwrap();
    let own = own.to_str().unwrap();
    for words in [
        &["model", "add", own][..],
        &["model", "add", own, "--name", "qwen-0.5b"],
        &["model", "add", own, "--name", "../x"],
        &["model", "add", own, "--name", "x.gguf"],
        &["model", "add", "/no/such/file.gguf"],
        &["model", "add", "/dev/null", "--name", "null"],
    ] {
        let refused = world.run(words, &[]);
        assert_eq!((refused.code, refused.out.as_str()), (1, ""), "{words:?}");
        assert!(refused.err.starts_with("error: "), "{words:?}: {}", refused.err);
        assert!(!world.cache().join("cogn").exists(), "{words:?}");
    }
}
