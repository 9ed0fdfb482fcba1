//! Output files that users name: an existing device, pipe or link is never replaced.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Command;

use cognitive_testkit::Home;
use serde_json::json;

use super::support::{answering, names, place, run};

/// Every command that writes a file that users name, without its last argument.
const WRITERS: [&[&str]; 4] = [
    &["test", "summarizer", "--junit"],
    &[
        "eval",
        "./m",
        "--cases",
        "cases",
        "--provider",
        "ollama",
        "--model",
        "x",
        "--base-url",
        "http://127.0.0.1:1",
        "--out",
    ],
    &["verify", "summarizer", "--output"],
    &["run", "./m", "--input", "{}", "--reply", "reply", "--output"],
];

fn with_cases() -> Home {
    let place = place();
    answering(&place, &json!({}));
    place.write("cases", r#"{"input": {}, "expect": {"ok": true}}"#);
    place
}

fn write(place: &Home, writer: &[&str], name: &str) {
    let output = place.cogn(&[writer, &[name]].concat());
    assert!(!output.err.contains("cannot write"), "{writer:?}: {}", output.err);
}

#[test]
fn a_pipe_is_written_and_stays_a_pipe() {
    let place = with_cases();
    for writer in WRITERS {
        let pipe = place.path("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Open for both reading and writing, so that neither side blocks.
        let mut reader = File::options().read(true).write(true).open(&pipe).unwrap();
        write(&place, writer, "pipe");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "{writer:?}");
        // If the command wrote nothing, only this is in the pipe.
        reader.write_all(b"nothing").unwrap();
        let mut first = [0; 7];
        reader.read_exact(&mut first).unwrap();
        assert_ne!(&first, b"nothing", "{writer:?}");
        fs::remove_file(&pipe).unwrap();
    }
}

/// Only root can create or replace a device; for other users the pipe tests the same.
#[test]
fn a_device_stays_a_device() {
    let place = with_cases();
    let device = place.path("null");
    if Command::new("mknod").arg(&device).args(["c", "1", "3"]).output().unwrap().status.success() {
        for writer in WRITERS {
            write(&place, writer, "null");
            assert!(fs::symlink_metadata(&device).unwrap().file_type().is_char_device(), "{writer:?}");
        }
    }
}

#[test]
fn a_link_is_written_through_also_where_nothing_is_behind_it() {
    let place = with_cases();
    for writer in WRITERS {
        for target in ["there", "not-yet"] {
            let (link, target) = (place.path("link"), place.path(target));
            if target.ends_with("there") {
                fs::write(&target, "old").unwrap();
            }
            symlink(target.file_name().unwrap(), &link).unwrap();
            write(&place, writer, "link");
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "{writer:?}");
            let text = fs::read_to_string(&target).unwrap();
            assert!(text != "old" && !text.is_empty(), "{writer:?}");
            fs::remove_file(&link).unwrap();
            fs::remove_file(&target).unwrap();
        }
    }
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let place = with_cases();
    fs::create_dir(place.path("out")).unwrap();
    let path = place.path("out/e.json");
    fs::write(&path, "old").unwrap();
    let held = File::open(&path).unwrap();
    assert_eq!(place.cogn(&run(&["--output", "out/e.json"])).code, Some(0));
    assert_eq!(std::io::read_to_string(held).unwrap(), "old", "whoever reads it sees the old one to its end");
    assert!(fs::read_to_string(&path).unwrap().starts_with('{'));
    assert_eq!(names(Path::new(&place.path("out"))), ["e.json"], "nothing else is left");
}
