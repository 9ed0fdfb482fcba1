//! A process that a test starts has default signal dispositions, also where the test itself was started with ignored ones.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

/// Says to the second process of this test what it is for.
const INNER: &str = "COGN_TEST_SIGNALS";

/// Numbers and names of the signals that a shell can ignore for its children.
const SIGNALS: [(i32, &str); 5] = [(1, "HUP"), (2, "INT"), (3, "QUIT"), (15, "TERM"), (13, "PIPE")];

#[test]
fn a_child_of_a_test_under_nohup_is_ended_by_signals() {
    if std::env::var_os(INNER).is_some() {
        return each_signal_ends_a_child();
    }
    let mut nohup = Command::new("sh");
    nohup
        .args(["-c", "trap '' HUP INT QUIT TERM PIPE; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap());
    nohup.args(["--exact", "a_child_of_a_test_under_nohup_is_ended_by_signals"]).env(INNER, "1");
    let output = nohup.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

fn each_signal_ends_a_child() {
    // Without the helper the shell goes on: it cannot even trap what it was started without.
    for (number, name) in SIGNALS {
        let script = format!("ulimit -c 0; kill -{name} $$; echo it goes on");
        let output = cognitive_testkit::command("sh").args(["-c", &script]).output().unwrap();
        assert_eq!((output.status.signal(), output.stdout.as_slice()), (Some(number), &b""[..]), "{name}");
    }
    // This process goes on ignoring what it was told to ignore.
    for (_, name) in SIGNALS {
        let script = format!("kill -{name} $PPID");
        assert!(cognitive_testkit::command("sh").args(["-c", &script]).status().unwrap().success());
    }
}
