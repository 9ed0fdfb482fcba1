//! `--media-out` overwrites, merges and discards nothing.

use cognitive_testkit::Home;
use serde_json::{Value, json};

use super::support::{answering, names, place, run};

fn medium(text: &str) -> Value {
    json!({ "type": "base64", "media_type": "image/png", "data": text })
}

/// Returns the path at a pointer of the data, and the contents of that file.
fn file(place: &Home, envelope: &Value, pointer: &str) -> (String, String) {
    let path = envelope["data"].pointer(pointer).unwrap()["path"].as_str().unwrap().to_owned();
    let text = place.read(&path);
    (path, text)
}

#[test]
fn members_whose_names_meet_get_files_of_their_own() {
    let place = place();
    // `one`, `two` and `three` in base64.
    answering(
        &place,
        &json!({ "a": { "b": medium("b25l") }, "a-b": medium("dHdv"), "a_b": medium("dGhyZWU=") }),
    );
    let output = place.cogn(&run(&["--media-out", "pictures"])).expect_exit(0);
    let envelope = output.envelope();
    let found = ["/a/b", "/a-b", "/a_b"].map(|pointer| file(&place, &envelope, pointer));
    assert_eq!(found.clone().map(|(_, text)| text), ["one", "two", "three"]);
    assert_eq!(names(&place.path("pictures")), ["a-b-2.png", "a-b-3.png", "a-b.png"]);
}

#[test]
fn a_second_run_leaves_the_files_of_the_first() {
    let place = place();
    answering(&place, &json!({ "a": medium("b25l") }));
    let first = place.cogn(&run(&["--media-out", "pictures"])).envelope();
    answering(&place, &json!({ "a": medium("dHdv") }));
    let second = place.cogn(&run(&["--media-out", "pictures"])).envelope();
    assert_eq!(file(&place, &first, "/a"), ("pictures/a.png".to_owned(), "one".to_owned()));
    assert_eq!(file(&place, &second, "/a"), ("pictures/a-2.png".to_owned(), "two".to_owned()));
}

#[test]
fn media_that_cannot_be_written_stay_in_the_envelope() {
    let place = place();
    answering(&place, &json!({ "a": medium("b25l") }));
    place.write("taken", "");
    let output = place.cogn(&run(&["--media-out", "taken", "--output", "e.json"])).expect_exit(1);
    assert!(output.err.contains("error: cannot write `/data/a` to a file"), "{}", output.err);
    let envelope = output.envelope();
    assert_eq!(envelope["data"]["a"], medium("b25l"));
    assert_eq!(envelope["meta"]["warnings"][0]["code"], "MEDIA", "{envelope}");
    let kept: Value = serde_json::from_str(&place.read("e.json")).unwrap();
    assert_eq!(kept, envelope);
}

#[test]
fn one_medium_of_a_model_that_is_no_base64_spoils_no_other() {
    let place = place();
    let long = "n".repeat(300);
    answering(&place, &json!({ "a": medium("?"), "b": medium("b25l"), long.clone(): medium("dHdv") }));
    let output = place.cogn(&run(&["--media-out", "pictures"]));
    let envelope = output.envelope();
    assert_eq!(output.code, Some(1), "one of them could not be written");
    assert_eq!(envelope["data"]["a"], medium("?"));
    assert_eq!(file(&place, &envelope, "/b").1, "one");
    assert_eq!(file(&place, &envelope, &format!("/{long}")).1, "two", "a long name is cut");
}
