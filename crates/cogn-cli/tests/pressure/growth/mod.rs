//! The cost of replies and schemas as they grow, in the real program as a process. Compares memory, and CPU time only
//! as the ratio of two sizes; wall time is not used. `benches/growth.rs` prints the full curves.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod material;

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

use material::{Written, branches, items, reply, required};

/// The cost of a process when it starts to print. Its output exceeds a pipe buffer, so it cannot have ended by then,
/// and only the output remains.
struct Cost {
    /// The peak memory in bytes.
    peak: usize,
    /// The CPU time in clock ticks.
    ticks: u64,
    out: String,
}

fn cost(home: &Path, args: &[&str]) -> Cost {
    let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
    command.args(args).current_dir(home).env_clear().env("HOME", home).env("COGN_OFFLINE", "1");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut out, mut first) = (child.stdout.take().unwrap(), [0]);
    out.read_exact(&mut first).unwrap();
    let of = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap();
    let status = of("status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
    // After the name in parentheses; fields 14 and 15 are user time and system time.
    let stat = of("stat");
    let ticks = stat.rsplit_once(')').unwrap().1.split_whitespace().skip(11).take(2);
    let ticks = ticks.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    let mut text = vec![first[0]];
    out.read_to_end(&mut text).unwrap();
    child.wait().unwrap();
    Cost { peak: peak * 1024, ticks, out: String::from_utf8(text).unwrap() }
}

fn run_saved(home: &Path, module: &str, reply: &str) -> Cost {
    cost(home, &["run", module, "--input", "{}", "--provider", "replay", "--reply", reply, "--receipt"])
}

/// The base memory of the program, in a test build.
const PROGRAM: usize = 48 << 20;

// Repairs, duplicate names and violations are stored only as far as they are shown, and the reply has one tree.
#[test]
fn a_broken_reply_costs_at_most_thirty_times_its_size() {
    let home = tempfile::tempdir().unwrap();
    let module = items(home.path());
    let size = 4_000_000;
    for written in Written::ALL {
        let file = home.path().join("reply");
        fs::File::create(&file).unwrap().write_all(reply(written, size).as_bytes()).unwrap();
        let reply = file.to_string_lossy();
        let found = run_saved(home.path(), &module, &reply);
        let per_byte = found.peak.saturating_sub(PROGRAM) / size;
        let beginning = &found.out[..found.out.len().min(300)];
        assert!(per_byte <= 30, "{written:?}: {per_byte} bytes for each, {} in all\n{beginning}", found.peak);
    }
}

/// The interval between measurements of processor time. The least is what the work costs; the rest is what other processes cost it, by
/// caches and cores that they share.
const MEASURES: usize = 2;

// Names are looked up and not searched for. Four times the members take about four times the time; sixteen times is what
// they took. The ratio of two processor times is the only honest measure of that from outside.
#[test]
fn four_times_the_required_members_take_about_four_times_the_time() {
    let home = tempfile::tempdir().unwrap();
    for target in ["openai", "grammar"] {
        let [few, many] = [2_500, 10_000].map(|count| {
            let module = required(home.path(), count);
            let measure = |_| {
                let found = cost(home.path(), &["lower", &module, "--target", target]);
                assert!(found.out.contains(&format!("member_{}", count - 1)));
                found.ticks.max(1)
            };
            (0..MEASURES).map(measure).min().unwrap()
        });
        assert!(many < few * 9, "{target}: {few} and {many} ticks");
    }
}

// Beyond a dozen, overlapping branches are not compared pairwise.
#[test]
fn five_hundred_overlapping_branches_cost_little_memory() {
    let home = tempfile::tempdir().unwrap();
    let module = branches(home.path(), 499);
    let found = cost(home.path(), &["lower", &module, "--target", "grammar"]);
    assert!(found.out.contains("member_498"));
    assert!(found.peak < 150 << 20, "{} bytes", found.peak);
}
