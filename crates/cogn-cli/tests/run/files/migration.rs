//! `cogn migrate --all` changes only the module folder.

use std::fs;
use std::os::unix::fs::symlink;

use cognitive_testkit::Home;

use super::support::{names, place};

const OLD: &str = "---\nname: old\nversion: 1.0.0\nresponsibility: Answer a question\nexcludes: [guessing]\n---\n# Old\n\nAnswer the question.\n";
const SCHEMA: &str = r#"{"input": {"type": "object"}, "output": {"type": "object", "properties": {"result": {"type": "string"}}}}"#;

fn old(place: &Home, folder: &str) {
    place.write(&format!("{folder}/MODULE.md"), OLD).write(&format!("{folder}/schema.json"), SCHEMA);
}

#[test]
fn all_modules_are_those_in_the_folder_and_no_link_leads_out_of_it() {
    let place = place();
    old(&place, "cognitive/modules/inside");
    old(&place, "elsewhere/victim");
    symlink("../../elsewhere/victim", place.path("cognitive/modules/link")).unwrap();
    let all = place.cogn(&["migrate", "--all"]).expect_exit(0);
    assert!(all.out.contains("inside: migrated v1 → v2.2"), "{}", all.out);
    assert!(all.out.contains("link: skipped"), "{}", all.out);
    assert!(all.err.contains("`link` is a link to `"), "{}", all.err);
    assert_eq!(names(&place.path("elsewhere")), ["victim"]);
    assert_eq!(names(&place.path("elsewhere/victim")), ["MODULE.md", "schema.json"]);
    let json = place.json(&["migrate", "--all", "--json"]);
    let link = json.as_array().unwrap().iter().find(|each| each["module"] == "link").unwrap();
    let real = fs::canonicalize(place.path("elsewhere/victim")).unwrap();
    assert_eq!((&link["ok"], link["left_alone"].as_str()), (&serde_json::json!(true), real.to_str()));
    // An explicitly named link is followed.
    assert_eq!(place.cogn(&["migrate", "link"]).code, Some(0));
    assert!(names(&place.path("elsewhere/victim")).contains(&"module.yaml".to_owned()));
}
