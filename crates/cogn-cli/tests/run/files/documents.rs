//! A second process of the same program reads documents, even if its file was moved or deleted. Images are refused for
//! their size and not for their colours, and refused ones are not converted.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cognitive_testkit::{Home, ProcessOutput};
use serde_json::{Value, json};

use super::support::{answering, place};

/// A document with one page and one line.
const PDF: &str = "JVBERi0xLjQKMSAwIG9iago8PC9UeXBlL0NhdGFsb2cvUGFnZXMgMiAwIFI+PgplbmRvYmoKMiAwIG9iago8PC9UeXBlL1BhZ2VzL0tpZHNbMyAwIFJdL0NvdW50IDE+PgplbmRvYmoKMyAwIG9iago8PC9UeXBlL1BhZ2UvUGFyZW50IDIgMCBSL01lZGlhQm94WzAgMCA3MiA3Ml0vQ29udGVudHMgNCAwIFIvUmVzb3VyY2VzPDwvRm9udDw8L0YxIDUgMCBSPj4+Pj4+CmVuZG9iago0IDAgb2JqCjw8L0xlbmd0aCA0MT4+CnN0cmVhbQpCVCAvRjEgMTIgVGYgNSA0MCBUZCAoaGVsbG8gcGRmKSBUaiBFVCAgIAplbmRzdHJlYW0KZW5kb2JqCjUgMCBvYmoKPDwvVHlwZS9Gb250L1N1YnR5cGUvVHlwZTEvQmFzZUZvbnQvSGVsdmV0aWNhPj4KZW5kb2JqCnhyZWYKMCA2CjAwMDAwMDAwMDAgNjU1MzUgZiAKMDAwMDAwMDAwOSAwMDAwMCBuIAowMDAwMDAwMDU0IDAwMDAwIG4gCjAwMDAwMDAxMDUgMDAwMDAgbiAKMDAwMDAwMDIxNSAwMDAwMCBuIAowMDAwMDAwMzA0IDAwMDAwIG4gCnRyYWlsZXIKPDwvU2l6ZSA2L1Jvb3QgMSAwIFI+PgpzdGFydHhyZWYKMzY3CiUlRU9GCg==";

#[cfg(target_os = "linux")]
#[test]
fn documents_are_read_after_the_program_was_moved_away_or_removed() {
    for removes in [true, false] {
        let place = place();
        answering(&place, &json!({}));
        place.write(
            "m/module.yaml",
            "name: m\nversion: 1.0.0\nresponsibility: Read\ntier: decision\nmodalities: {input: [text, document]}\n",
        );
        place.write("a.pdf", STANDARD.decode(PDF).unwrap());
        let program = place.path("program");
        let built = env!("CARGO_BIN_EXE_cogn");
        // `cp` writes the file: a child process of another test could inherit a handle opened here, and then the
        // program could not start.
        assert!(Command::new("/bin/cp").arg(built).arg(&program).status().unwrap().success());
        let mut command = Home::new(&program).command(&["run", "./m", "--reply", "reply"], &[]);
        command.current_dir(place.folder()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        // It waits for its input.
        if removes {
            fs::remove_file(&program).unwrap();
        } else {
            fs::rename(&program, place.path("another-name")).unwrap();
        }
        let paper = json!({ "paper": { "type": "file", "path": place.path("a.pdf").to_str() } });
        child.stdin.take().unwrap().write_all(paper.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let envelope = ProcessOutput::from(output).envelope();
        assert_eq!(envelope["ok"], true, "{envelope}");
        let validated = &envelope["meta"]["media_validation"]["validated"][0];
        assert_eq!(validated["pages"], 1, "{envelope}");
    }
}

fn inspected(place: &Home, name: &str, size: (u32, u32)) -> Value {
    image::RgbImage::new(size.0, size.1).save(place.path(name)).unwrap();
    place.cogn(&["media", "inspect", name, "--json"]).envelope()
}

#[test]
fn a_flat_diagram_of_6000_by_3000_is_no_bomb() {
    let found = inspected(&place(), "diagram.png", (6_000, 3_000));
    assert_eq!(found["valid"], true, "{found}");
    assert_eq!(found["providers"][0]["gets"], "converted", "{found}");
}

#[test]
fn media_inspect_converts_nothing_that_every_run_refuses() {
    let found = inspected(&place(), "wide.png", (8_193, 4));
    assert_eq!(found["problem"]["code"], "E1015", "{found}");
    for provider in found["providers"].as_array().unwrap() {
        assert_eq!((&provider["gets"], &provider["code"]), (&json!("nothing"), &json!("E1015")), "{found}");
    }
}
