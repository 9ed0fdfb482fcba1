//! Secrets in every setting that can have one: no command prints them, however it ends.

use serde_json::Value;

const SETTINGS: &str = "provider: openai
base_url: 'https://user:PLANTED-1@127.0.0.1:9/v1?token=PLANTED-2'
audit: {path: 'postgres://cogn:PLANTED-3@127.0.0.1:9/cogn?password=PLANTED-4&connect_timeout=1'}
serve: {shared: 'redis://:PLANTED-5@127.0.0.1:9', otlp: 'http://user:PLANTED-6@127.0.0.1:9'}
timeout: 1
";

const VARIABLES: [(&str, &str); 6] = [
    ("OPENAI_API_KEY", "sk-proj-PLANTED-7-0123456789abcdef"),
    ("COGNITIVE_API_KEY", "PLANTED-8-0123456789abcdef"),
    ("COGNITIVE_DB_PASSWORD", "PLANTED-9"),
    ("COGN_SERVE_SHARED_PASSWORD", "PLANTED-10"),
    ("HTTPS_PROXY", "http://user:PLANTED-11@127.0.0.1:9"),
    ("HTTP_PROXY", "http://user:PLANTED-12@127.0.0.1:9"),
];

const COMMANDS: [&str; 24] = [
    "doctor",
    "doctor --json",
    "doctor --verbose",
    "trust",
    "trust --json",
    "run summarizer --set text=a",
    "run summarizer --set text=a --receipt --verbose",
    "run summarizer --set text=a --stream",
    "prompt summarizer --set text=a",
    "lower summarizer",
    "capabilities",
    "prices",
    "model list",
    "list --json",
    "audit list",
    "audit verify",
    "audit head --json",
    "audit stats",
    "context list",
    "review list",
    "store backup backup.db",
    "test summarizer --live",
    "serve --port 0",
    "serve --check",
];

#[test]
fn no_command_prints_a_secret_of_a_setting_or_a_variable() {
    let home = crate::home();
    home.write("home/.cognitive/config.yaml", SETTINGS);
    // The same file as a project's, untrusted, and trusted.
    for place in ["home/.cognitive/config.yaml", "project/cognitive.yaml"] {
        home.write("project/.keep", "");
        home.write(place, SETTINGS);
        for words in COMMANDS {
            let words: Vec<&str> = words.split(' ').collect();
            let mut command = home.command(&words, &VARIABLES);
            command.current_dir(home.path("project")).env("HOME", home.path("home"));
            command.stdin(std::process::Stdio::null());
            let output = command.output().unwrap();
            let said =
                [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let said = said.concat();
            assert!(!said.contains("PLANTED"), "{words:?} with {place}:\n{said}");
            assert!(!said.contains("panicked"), "{words:?}:\n{said}");
        }
    }
    let doctor =
        home.command(&["doctor", "--json"], &VARIABLES).current_dir(home.path("project")).output().unwrap();
    assert!(serde_json::from_slice::<Value>(&doctor.stdout).is_ok(), "the check has not gone blind");
}
