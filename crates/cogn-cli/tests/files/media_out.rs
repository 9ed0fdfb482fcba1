//! `--media-out` overwrites, merges and discards nothing.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Place, names, run};

fn medium(text: &str) -> Value {
    json!({ "type": "base64", "media_type": "image/png", "data": text })
}

/// Returns the path at a pointer of the data, and the contents of that file.
fn file(place: &Place, envelope: &Value, pointer: &str) -> (String, String) {
    let path = envelope["data"].pointer(pointer).unwrap()["path"].as_str().unwrap().to_owned();
    let text = fs::read_to_string(place.path(&path)).unwrap();
    (path, text)
}

#[test]
fn m3_members_whose_names_meet_get_files_of_their_own() {
    let place = Place::new();
    // `one`, `two` and `three` in base64.
    place.answering(
        &json!({ "a": { "b": medium("b25l") }, "a-b": medium("dHdv"), "a_b": medium("dGhyZWU=") }),
    );
    let output = place.run(&run(&["--media-out", "pictures"]));
    assert_eq!(output.code, Some(0), "{}", output.err);
    let envelope = output.envelope();
    let found = ["/a/b", "/a-b", "/a_b"].map(|pointer| file(&place, &envelope, pointer));
    assert_eq!(found.clone().map(|(_, text)| text), ["one", "two", "three"]);
    assert_eq!(names(&place.path("pictures")), ["a-b-2.png", "a-b-3.png", "a-b.png"]);
}

#[test]
fn m3_a_second_run_leaves_the_files_of_the_first() {
    let place = Place::new();
    place.answering(&json!({ "a": medium("b25l") }));
    let first = place.run(&run(&["--media-out", "pictures"])).envelope();
    place.answering(&json!({ "a": medium("dHdv") }));
    let second = place.run(&run(&["--media-out", "pictures"])).envelope();
    assert_eq!(file(&place, &first, "/a"), ("pictures/a.png".to_owned(), "one".to_owned()));
    assert_eq!(file(&place, &second, "/a"), ("pictures/a-2.png".to_owned(), "two".to_owned()));
}

#[test]
fn m2_media_that_cannot_be_written_stay_in_the_envelope() {
    let place = Place::new();
    place.answering(&json!({ "a": medium("b25l") })).write("taken", "");
    let output = place.run(&run(&["--media-out", "taken", "--output", "e.json"]));
    assert_eq!(output.code, Some(1));
    assert!(output.err.contains("error: `/data/a` was not written to a file"), "{}", output.err);
    let envelope = output.envelope();
    assert_eq!(envelope["data"]["a"], medium("b25l"));
    assert_eq!(envelope["meta"]["warnings"][0]["code"], "MEDIA", "{envelope}");
    let kept: Value = serde_json::from_str(&fs::read_to_string(place.path("e.json")).unwrap()).unwrap();
    assert_eq!(kept, envelope);
}

#[test]
fn m2_one_medium_of_a_model_that_is_no_base64_spoils_no_other() {
    let place = Place::new();
    let long = "n".repeat(300);
    place.answering(&json!({ "a": medium("?"), "b": medium("b25l"), long.clone(): medium("dHdv") }));
    let output = place.run(&run(&["--media-out", "pictures"]));
    let envelope = output.envelope();
    assert_eq!(output.code, Some(1), "one of them could not be written");
    assert_eq!(envelope["data"]["a"], medium("?"));
    assert_eq!(file(&place, &envelope, "/b").1, "one");
    assert_eq!(file(&place, &envelope, &format!("/{long}")).1, "two", "a long name is cut");
}
