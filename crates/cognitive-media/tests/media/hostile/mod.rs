//! Hostile files: hundreds of them, each with its expected answer, within 200 MB of memory and 2 s of CPU time. They
//! run one after the other in a separate process, so that the measured memory is theirs.

mod bombs;
mod broken;
mod disguised;

use std::process::Command;

use bytes::Bytes;
use cognitive_contract::media::{AcceptedForm, Category, MediaLimits, MediaSource as _, MediaType, judge};

use crate::support::{code, media};

/// A file, its claimed type, and the expected answer. Several answers are separated by `|` where libraries may differ.
pub struct Case {
    name: String,
    kind: MediaType,
    answer: &'static str,
    form: AcceptedForm,
    make: Box<dyn Fn() -> Vec<u8>>,
}

pub fn case(
    name: impl Into<String>,
    kind: MediaType,
    answer: &'static str,
    make: impl Fn() -> Vec<u8> + 'static,
) -> Case {
    let form = AcceptedForm::from_types(&[MediaType::Jpeg]).with_longest_side(512);
    Case { name: name.into(), kind, answer, form, make: Box::new(make) }
}

impl Case {
    /// Selects a provider that states no size limit for pictures.
    pub fn for_anybody(mut self) -> Self {
        self.form = AcceptedForm::from_types(&[MediaType::Jpeg]);
        self
    }
}

fn corpus() -> Vec<Case> {
    let mut cases = disguised::cases();
    cases.extend(broken::cases());
    cases.extend(bombs::cases());
    cases
}

/// Runs all operations on an item: examine, check the limits, then convert or read.
async fn take(bytes: Vec<u8>, kind: MediaType, form: &AcceptedForm) -> &'static str {
    let (media, bytes) = (media(), Bytes::from(bytes));
    let facts = match media.examine(bytes.clone(), kind).await {
        Ok(facts) => facts,
        failed => return code(failed),
    };
    if let Err(failure) = judge(&facts, &MediaLimits::default()) {
        return failure.code().number();
    }
    match kind.category() {
        Category::Image => code(media.fit(bytes, &facts, Some(form)).await),
        Category::Document => code(media.fit(bytes, &facts, None).await),
        Category::Audio | Category::Video => "ok",
    }
}

// S-32, SEC-003: no hostile file passes for another type, and none exhausts the machine.
#[test]
fn the_whole_corpus_is_answered_within_its_bounds() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::run_the_corpus", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success(), "{out}\n{err}");
}

#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn run_the_corpus() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cases = corpus();
    assert!(cases.len() >= 300, "{}", cases.len());
    let (mut wrong, mut worst) = (Vec::new(), ((0, ""), (0, "")));
    for case in &cases {
        let bytes = (case.make)();
        let length = bytes.len() as u64;
        let before = usage::start();
        let answer = runtime.block_on(take(bytes, case.kind, &case.form));
        let (kilobytes, milliseconds) = usage::since(before);
        let megabytes = (kilobytes + length / 1_000) / 1_000;
        worst = (worst.0.max((megabytes, &case.name)), worst.1.max((milliseconds, &case.name)));
        if !case.answer.split('|').any(|right| right == answer) || megabytes > 200 || milliseconds > 2_000 {
            let Case { name, kind, answer: right, .. } = case;
            wrong.push(format!("{name} ({kind}): {answer}, not {right}; {megabytes} MB, {milliseconds} ms"));
        }
    }
    println!("{} files, the worst in MB and in ms of computing: {worst:?}", cases.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// The resources that the process used since `start`: the peak memory in kilobytes above the start, and the CPU time in
/// milliseconds, including finished children.
#[cfg(target_os = "linux")]
mod usage {
    use std::fs;

    pub fn start() -> (u64, u64) {
        // Resets the peak to the current use, which includes the prepared files and free memory of the allocator.
        fs::write("/proc/self/clear_refs", "5").unwrap();
        (kilobytes("VmRSS:"), milliseconds())
    }

    pub fn since(before: (u64, u64)) -> (u64, u64) {
        (kilobytes("VmHWM:").saturating_sub(before.0), milliseconds() - before.1)
    }

    fn kilobytes(field: &str) -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let value = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        value.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn milliseconds() -> u64 {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        // The CPU time of the process and its children, in hundredths of a second.
        fields[11..15].iter().map(|field| field.parse::<u64>().unwrap()).sum::<u64>() * 10
    }
}

#[cfg(not(target_os = "linux"))]
mod usage {
    pub fn start() -> (u64, u64) {
        (0, 0)
    }

    pub fn since(_: (u64, u64)) -> (u64, u64) {
        (0, 0)
    }
}
