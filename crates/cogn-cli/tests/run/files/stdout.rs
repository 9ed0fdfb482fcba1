//! Output that stdout does not accept is not lost, and the exit code reports it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use cognitive_testkit::{Act, FakeModel, Then, piece};
use serde_json::{Value, json};

use super::support::{answering, full, kept, output, place, run, run_full, temporary};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn an_answer_that_stdout_does_not_take_is_kept() {
    let place = place();
    answering(&place, &json!({ "answer": 42 }));
    for form in [&[][..], &["--view"], &["--stream"], &["--stream=text"], &["--pretty"]] {
        let output = run_full(&place, &run(form)).expect_exit(1);
        assert!(output.err.contains("error: cannot write to stdout: No space left"), "{}", output.err);
        let kept = kept(&place);
        assert_eq!(kept.len(), 1, "{form:?}: {}", output.err);
        assert_eq!(parsed(&kept[0])["data"]["answer"], 42, "{form:?}");
        for name in super::support::names(&temporary(&place)) {
            assert!(output.err.contains(&format!("{name}`")), "{form:?}: {}", output.err);
            std::fs::remove_file(temporary(&place).join(name)).unwrap();
        }
    }
}

#[test]
fn an_answer_goes_to_the_file_where_stdout_fails_and_to_stdout_where_the_file_fails() {
    let place = place();
    answering(&place, &json!({ "answer": 42 }));
    let full = run_full(&place, &run(&["--output", "e.json"])).expect_exit(1);
    assert!(full.err.contains("it is in `e.json`"), "{}", full.err);
    assert_eq!(parsed(&place.read("e.json"))["data"]["answer"], 42);
    let nowhere = place.cogn(&run(&["--output", "no/e.json"]));
    assert_eq!((nowhere.code, &nowhere.envelope()["data"]["answer"]), (Some(1), &json!(42)));
    assert!(nowhere.err.contains("hint: The envelope is on stdout"), "{}", nowhere.err);
    assert!(kept(&place).is_empty());
    // A card is not the whole envelope.
    let card = place.cogn(&run(&["--output", "no/e.json", "--view"]));
    assert_eq!((card.code, kept(&place).len()), (Some(1), 1), "{}", card.err);
}

#[test]
fn an_answer_that_nothing_takes_is_on_stderr() {
    let place = place();
    answering(&place, &json!({ "answer": 42 }));
    let mut command = place.command(&run(&["--output", "no/e.json"]), &[]);
    let output = output(command.env("TMPDIR", "/no/such/folder").stdout(full())).expect_exit(1);
    let envelope = output.err.lines().find(|line| line.starts_with('{'));
    assert_eq!(parsed(envelope.unwrap_or_default())["data"]["answer"], 42, "{}", output.err);
}

#[test]
fn every_command_says_that_stdout_took_nothing() {
    let place = place();
    answering(&place, &json!({}));
    assert_eq!(place.cogn(&run(&[])).code, Some(0));
    for args in [
        &["audit", "export", "--jsonl"][..],
        &["audit", "list"],
        &["list"],
        &["list", "--json"],
        &["info", "./m"],
        &["validate", "./m"],
        &["test", "summarizer"],
        &["explain", "E1000"],
        &["schema", "envelope"],
        &["model", "list"],
        &["doctor"],
        &["capabilities"],
        &["completions", "bash"],
        &["prompt", "./m", "--input", "{}"],
        &["--help"],
        &["--version"],
    ] {
        let output = run_full(&place, args).expect_exit(1);
        assert!(output.err.contains("error: cannot write to stdout: "), "{args:?}: {}", output.err);
    }
}

#[test]
fn a_reader_that_went_away_is_no_error_and_nothing_is_said() {
    let place = place();
    answering(&place, &json!({ "answer": "x".repeat(1 << 20) }));
    for args in [&["schema", "module"][..], &run(&[])] {
        // The reader is gone before the program starts: what it prints could fit into the pipe before a reader that leaves later.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = place.command(args, &[]).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.as_str()), (Some(141), ""), "{args:?}");
    }
    assert!(kept(&place).is_empty());
}

#[test]
fn a_stream_whose_reader_went_away_ends_the_call_and_is_recorded_as_cancelled() {
    let place = place();
    answering(&place, &json!({}));
    let event = piece(r#"{"ok": true, "data": {"rationale": "It is"#, None);
    let service = FakeModel::script(vec![Act::stream(event).then(Then::Silence)]);
    let args = ["run", "./m", "--input", "{}", "--stream", "--provider", "openai", "--model", "stub"];
    let mut command = place
        .command(&[&args[..], &["--base-url", &service.url()]].concat(), &[("OPENAI_API_KEY", "sk-test")]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    assert!(first.contains("streaming"), "{first}");
    // The call is under way before its reader leaves.
    service.wait_for(1);
    drop(reader);
    // The service sends nothing more, so no write can detect it.
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(141), ""));
    assert_eq!(service.wait_for_left(1).len(), 1);
    let rows = place.cogn(&["audit", "list", "--json"]).envelope();
    assert_eq!(rows[0]["code"], "E2010", "{rows}");
}
