//! `cogn train` as a process: the learning effect of labelled cases on a small model, and the refusals.

use std::fs;
use std::path::Path;

use cognitive_testkit::{Home, ProcessOutput};
use serde_json::json;

use crate::home;

/// An arbitrary rule that the model cannot know in advance: animals go left, vehicles right.
const LEFT: &str = "horse,cow,sheep,goat,dog,cat,lion,tiger,bear,wolf,fox,rabbit,mouse,eagle,swan,duck,goose,hen,pig,donkey,camel,zebra,elephant,monkey,snake,frog,whale,shark,salmon,bee";
const RIGHT: &str = "car,truck,bus,tram,train,bicycle,motorcycle,scooter,van,taxi,ambulance,tractor,plane,helicopter,ship,boat,ferry,canoe,yacht,submarine,rocket,wagon,lorry,jeep,limousine,tanker,glider,sled,cable car,fire engine";
/// Items that were not among the cases.
const UNSEEN_LEFT: &str = "deer,parrot,squirrel,trout";
const UNSEEN_RIGHT: &str = "minibus,locomotive,speedboat,airliner";

fn text(thing: &str, number: usize) -> String {
    match number % 3 {
        0 => format!("They brought a {thing} this morning."),
        1 => format!("Where shall the {thing} go?"),
        // Texts of several lines are cases like any other.
        _ => format!("A {thing} is standing\nin the yard.\n\nSo they say."),
    }
}

fn with_module() -> Home {
    let home = home();
    let schema = json!({
        "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
        "data": {
            "type": "object", "required": ["rationale", "room"], "additionalProperties": false,
            "properties": {
                "rationale": { "type": "string", "maxLength": 80, "x-say": "It goes to the {room}." },
                "room": {
                    "enum": ["left", "right", "attic"],
                    "x-decide": { "about": "text", "by": [{ "ask": "What is this about?", "say": "This is about a" }] },
                },
            },
        },
    });
    let manifest = "name: rooms\nversion: 1.0.0\ntier: decision\nresponsibility: Say where a thing goes.\n";
    home.module("./rooms", manifest, "Say into which `room` the thing in the text goes.\n", &schema);
    let case = |(number, (thing, room)): (usize, (&str, &str))| {
        json!({ "input": { "text": text(thing, number) }, "expect": { "room": room } }).to_string()
    };
    let rooms = |left: &'static str, right: &'static str| {
        let of = |things: &'static str, room| things.split(',').map(move |thing| (thing, room));
        (of(left, "left"), of(right, "right"))
    };
    let (left, right) = rooms(LEFT, RIGHT);
    let all = left.zip(right).flat_map(|(one, other)| [one, other]);
    // A value that is too rare to be recognised does not keep the others from being learned.
    let rare = std::iter::once(("piano", "attic"));
    home.write("cases.jsonl", all.chain(rare).enumerate().map(case).collect::<Vec<_>>().join("\n"));
    let (left, right) = rooms(UNSEEN_LEFT, UNSEEN_RIGHT);
    home.write("unseen.jsonl", left.chain(right).enumerate().map(case).collect::<Vec<_>>().join("\n"));
    home
}

fn cogn(home: &Home, words: &[&str], weights: &Path) -> ProcessOutput {
    home.run(words, &[("COGN_MODEL", weights.to_str().unwrap())], "")
}

fn right(home: &Home, weights: &Path) -> u64 {
    let words = ["eval", "./rooms", "--cases", "unseen.jsonl", "--provider", "embedded", "--json"];
    let report = cogn(home, &words, weights).json;
    assert_eq!(report["valid"]["right"], 8, "{report}");
    report["accuracy"]["right"].as_u64().unwrap()
}

#[test]
fn a_small_model_learns_what_it_could_not_know() {
    let Some(weights) = cognitive_testkit::weights() else { return };
    let home = with_module();
    let before = right(&home, &weights);
    let train = ["train", "./rooms", "--cases", "cases.jsonl", "--provider", "embedded", "--json"];
    let output = cogn(&home, &train, &weights);
    assert!(output.code == Some(0), "{}", output.err);
    let report = &output.json;
    assert_eq!(report["learned"]["room"]["cases"], 61, "{report}");
    let classes = report["classes"]["room"].as_array().unwrap();
    let of: Vec<_> = classes.iter().map(|each| (each["class"].as_str().unwrap(), &each["cases"])).collect();
    assert_eq!(of, [("attic", &json!(1)), ("left", &json!(30)), ("right", &json!(30))]);
    assert!(classes[1]["right"].as_u64() > Some(24) && classes[2]["right"].as_u64() > Some(24), "{report}");
    assert!(report["learned"]["room"]["right_unseen"].as_u64() > Some(50), "{report}");
    let after = right(&home, &weights);
    assert!(after >= 7 && after > before + 1, "it cannot know where things go: {before}, then {after}");
    // Training again gives the same result, and the module stays valid.
    let file = home.path(report["file"].as_str().unwrap());
    let first = fs::read(&file).unwrap();
    assert!(cogn(&home, &train, &weights).code == Some(0));
    assert_eq!(fs::read(&file).unwrap(), first);
    assert!(home.cogn(&["validate", "./rooms"]).code == Some(0));
    // Too few cases leave the earlier result unchanged.
    let few = cogn(&home, &[&train[..], &["--limit", "29"]].concat(), &weights).expect_exit(1);
    assert!(few.err.contains("training failed: `room`: too few cases: 29, at least 30"), "{}", few.err);
    assert_eq!(fs::read(&file).unwrap(), first);
    // The result is not lost if its file cannot be written.
    let nowhere = [&train[..], &["--output", "cases.jsonl/below.json"]].concat();
    let output = cogn(&home, &nowhere, &weights);
    let kept = &output.err;
    assert_eq!(output.code, Some(1), "{kept}");
    let kept = kept.split_once("the training result was saved to `").unwrap().1;
    let kept = Path::new(kept.split_once('`').unwrap().0);
    assert_eq!(fs::read(kept).unwrap(), first);
    fs::remove_file(kept).unwrap();
}

#[test]
fn what_cannot_be_trained_is_refused_before_anything_is_read() {
    let home = with_module();
    let refused = |words: &[&str], code: i32, why: &str| {
        let output = home.cogn(words);
        assert_eq!(output.code, Some(code), "{words:?}: {}", output.err);
        assert!(output.err.contains(why), "{words:?}: {}", output.err);
    };
    refused(&["train", "./rooms", "--cases", "nowhere.jsonl"], 2, "nowhere.jsonl");
    refused(
        &["train", "./rooms", "--cases", "cases.jsonl", "--half", "x"],
        2,
        "has no case of the half: `x`",
    );
    refused(&["train", "text-classifier", "--cases", "cases.jsonl"], 1, "Name a file with `--output`");
    refused(
        &["train", "./rooms", "--cases", "cases.jsonl", "--provider", "ollama", "--model", "m"],
        1,
        "only a model that runs in this process can be trained",
    );
    home.write("odd.jsonl", r#"{"input": {"texts": 1}, "expect": {"room": "left"}}"#);
    refused(&["train", "./rooms", "--cases", "odd.jsonl"], 1, "invalid input of case `1`");
    assert!(!home.path("rooms/trained").exists());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(home.folder(), home.path("rooms/trained")).unwrap();
        refused(&["train", "./rooms", "--cases", "cases.jsonl"], 1, "is a link");
    }
}

/// The tickets of a newcomer, written before the cases of `docs/first-module.md`.
const TICKETS: [(&str, &str); 20] = [
    ("billing", "I was charged twice this month."),
    ("billing", "Please refund my last invoice."),
    ("billing", "My credit card was declined but I was billed."),
    ("technical", "The app crashes when I open settings."),
    ("technical", "I cannot log in, it says error 500."),
    ("technical", "The export button does nothing."),
    ("sales", "How much do ten seats cost?"),
    ("sales", "Can I get a quote for the enterprise plan?"),
    ("sales", "Do you offer a discount for schools?"),
    ("billing", "The invoice shows the wrong VAT number."),
    ("billing", "Why did the price of my subscription go up on the last bill?"),
    ("billing", "I cancelled in May and you still took money from my account."),
    ("billing", "My receipt for the annual payment is missing."),
    ("technical", "Your API returns a timeout since this morning."),
    ("technical", "The page stays blank in Firefox."),
    ("technical", "The mail for resetting my password never arrives."),
    ("technical", "Uploading a photo fails with an unknown error."),
    ("sales", "We would like to see a demo for our team of forty."),
    ("sales", "What is the difference between the Basic and the Pro plan?"),
    ("sales", "Is it cheaper if we order for two years at once?"),
];

/// The claim of `docs/first-module.md`: thirty cases make the module of `cogn init` useful with the smallest model.
#[test]
fn thirty_cases_teach_the_module_of_init_to_sort_tickets() {
    let Some(weights) = cognitive_testkit::weights() else { return };
    let home = home();
    home.cogn(&["init", "ticket-triage"]).expect_exit(0);
    let page = include_str!("../../../../docs/first-module.md");
    let (_, cases) = page.split_once("file=tickets.jsonl\n").unwrap();
    home.write("tickets.jsonl", cases.split_once("```").unwrap().0);
    let case = |(team, text): &(&str, &str)| {
        json!({ "input": { "text": text }, "expect": { "team": team } }).to_string()
    };
    home.write("twenty.jsonl", TICKETS.iter().map(case).collect::<Vec<_>>().join("\n"));
    let right = || {
        let words = ["eval", "ticket-triage", "--cases", "twenty.jsonl", "--provider", "embedded", "--json"];
        let report = cogn(&home, &words, &weights).json;
        assert_eq!(report["valid"]["right"], 20, "{report}");
        report["accuracy"]["right"].as_u64().unwrap()
    };
    let before = right();
    let train = ["train", "ticket-triage", "--cases", "tickets.jsonl", "--provider", "embedded"];
    let learned = cogn(&home, &train, &weights).expect_exit(0);
    learned.assert_stdout(&["billing", "RIGHT WHILE UNSEEN"]);
    let after = right();
    assert!(after >= 16 && after >= before, "{before}, then {after}");
    // The reason is made of the decision, and not of the words that describe the format.
    let words = ["run", "ticket-triage", "--set", "text=Please refund me.", "--provider", "embedded"];
    let data = cogn(&home, &words, &weights).expect_exit(0).envelope()["data"].clone();
    let (reason, team) = (data["rationale"].as_str().unwrap(), data["team"].as_str().unwrap());
    assert!(reason.starts_with("As the model judges the ticket") && reason.contains(team), "{data}");
}
