//! Output that stdout does not accept is not lost, and the exit code reports it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use crate::support::{Place, output, run};

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn m2_an_answer_that_stdout_does_not_take_is_kept() {
    let place = Place::new();
    place.answering(&json!({ "answer": 42 }));
    for form in [&[][..], &["--view"], &["--stream"], &["--stream=text"], &["--pretty"]] {
        let output = place.run_full(&run(form));
        assert_eq!(output.code, Some(1), "{form:?}: {}", output.err);
        assert!(output.err.contains("error: cannot write to stdout: No space left"), "{}", output.err);
        let kept = place.kept();
        assert_eq!(kept.len(), 1, "{form:?}: {}", output.err);
        assert_eq!(parsed(&kept[0])["data"]["answer"], 42, "{form:?}");
        for name in crate::support::names(&place.temporary()) {
            assert!(output.err.contains(&format!("{name}`")), "{form:?}: {}", output.err);
            std::fs::remove_file(place.temporary().join(name)).unwrap();
        }
    }
}

#[test]
fn m2_an_answer_goes_to_the_file_where_stdout_fails_and_to_stdout_where_the_file_fails() {
    let place = Place::new();
    place.answering(&json!({ "answer": 42 }));
    let full = place.run_full(&run(&["--output", "e.json"]));
    assert_eq!(full.code, Some(1));
    assert!(full.err.contains("it is in `e.json`"), "{}", full.err);
    assert_eq!(parsed(&std::fs::read_to_string(place.path("e.json")).unwrap())["data"]["answer"], 42);
    let nowhere = place.run(&run(&["--output", "no/e.json"]));
    assert_eq!((nowhere.code, &nowhere.envelope()["data"]["answer"]), (Some(1), &json!(42)));
    assert!(nowhere.err.contains("hint: The envelope is on stdout"), "{}", nowhere.err);
    assert!(place.kept().is_empty());
    // A card is not the whole envelope.
    let card = place.run(&run(&["--output", "no/e.json", "--view"]));
    assert_eq!((card.code, place.kept().len()), (Some(1), 1), "{}", card.err);
}

#[test]
fn m2_an_answer_that_nothing_takes_is_on_stderr() {
    let place = Place::new();
    place.answering(&json!({ "answer": 42 }));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = place.cogn(&run(&["--output", "no/e.json"]));
    let output = output(command.env("TMPDIR", "/no/such/folder").stdout(full));
    assert_eq!(output.code, Some(1));
    let envelope = output.err.lines().find(|line| line.starts_with('{'));
    assert_eq!(parsed(envelope.unwrap_or_default())["data"]["answer"], 42, "{}", output.err);
}

#[test]
fn m2_every_command_says_that_stdout_took_nothing() {
    let place = Place::new();
    place.answering(&json!({}));
    assert_eq!(place.run(&run(&[])).code, Some(0));
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
        let output = place.run_full(args);
        assert_eq!(output.code, Some(1), "{args:?}: {}", output.err);
        assert!(output.err.contains("error: cannot write to stdout: "), "{args:?}: {}", output.err);
    }
}

#[test]
fn m2_a_reader_that_went_away_is_no_error_and_nothing_is_said() {
    let place = Place::new();
    place.answering(&json!({ "answer": "x".repeat(1 << 20) }));
    for args in [&["schema", "module"][..], &run(&[])] {
        // The reader is gone before the program starts: what it prints could fit into the pipe before a reader that leaves later.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = place.cogn(args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.as_str()), (Some(141), ""), "{args:?}");
    }
    assert!(place.kept().is_empty());
}

/// A service that starts an answer, waits until its client disconnects, and reports that.
fn endless() -> (String, std::sync::mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let (tell, left) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).unwrap() > 2 {
            length = line
                .to_lowercase()
                .strip_prefix("content-length: ")
                .map_or(length, |text| text.trim().parse().unwrap());
            line.clear();
        }
        reader.read_exact(&mut vec![0; length]).unwrap();
        let delta = json!({ "content": r#"{"ok": true, "data": {"rationale": "It is"# });
        let event =
            json!({ "model": "stub", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 1000000\r\n\r\n";
        stream.write_all(format!("{head}data: {event}\n\n").as_bytes()).unwrap();
        while reader.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        let _ = tell.send(());
    });
    (base, left)
}

#[test]
fn l_a_stream_whose_reader_went_away_ends_the_call_and_is_recorded_as_cancelled() {
    let place = Place::new();
    place.answering(&json!({}));
    let (base, left) = endless();
    let args = ["run", "./m", "--input", "{}", "--stream", "--provider", "openai", "--model", "stub"];
    let mut child = place
        .cogn(&[&args[..], &["--base-url", &base]].concat())
        .env("OPENAI_API_KEY", "sk-test")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("streaming"), "{first}");
    // The reader is gone here. The service sends nothing more, so no write can detect it.
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(141), ""));
    left.recv().unwrap();
    let rows = place.run(&["audit", "list", "--json"]).envelope();
    assert_eq!(rows[0]["code"], "E2010", "{rows}");
}
