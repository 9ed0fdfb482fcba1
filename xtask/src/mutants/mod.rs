//! Mutation tests: changes a fixed sample of places in the rules of envelopes, and reports changes that no test notices.
//!
//! All mutants are compiled at once into a copy of the repository, each behind a switch, so that the crates are built
//! only once. The copy is `target/mutants`.

mod sites;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use serde_json::Value;
use sites::{ChosenMutants, MutationSite, sites, with_switches};

/// The crates whose tests judge.
const CRATES: [&str; 2] = ["cognitive-contract", "cognitive-runtime"];
/// The files that are changed, and folders of such files.
const SUBJECTS: [&str; 7] = [
    "crates/cognitive-contract/src/envelope.rs",
    "crates/cognitive-contract/src/meta.rs",
    "crates/cognitive-contract/src/repair.rs",
    "crates/cognitive-contract/src/risk.rs",
    "crates/cognitive-contract/src/tier.rs",
    "crates/cognitive-contract/src/wrap_v21.rs",
    "crates/cognitive-runtime/src/stages",
];
/// Mutants of a run without `--sample`.
const SAMPLE: usize = 150;
/// The seed of a run without `--seed`.
const SEED: u64 = 20_261_119;
/// Surviving mutants that change nothing that a test could see: the key, and below it the reason.
const EXPLAINED: &str = "xtask/mutants.txt";
/// Seconds that tests may take beyond ten times their usual time. A mutant can make a loop endless.
const PATIENCE: u64 = 60;
/// The usual time of the tests that judge a mutant first, in milliseconds. Each further group takes twice as long, so that
/// most mutants end in a second and a survivor needs few processes.
const FIRST_GROUP: u64 = 500;
/// The keys of mutants that do not compile, in the folder of the copy.
const BROKEN: &str = "broken.txt";
/// Rounds of compiling without mutants that do not compile. Each round hides the errors of later phases of the compiler.
const ROUNDS: usize = 12;

/// The module that is added to each crate: the number of the active mutant. It also records which places are reached.
const SWITCH: &str = r#"
#[allow(missing_docs, clippy::all, clippy::pedantic, clippy::restriction)]
pub mod mutant_switch {
    use std::io::Write as _;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    static ACTIVE: OnceLock<(usize, Option<String>)> = OnceLock::new();
    static SEEN: [AtomicBool; 8192] = [const { AtomicBool::new(false) }; 8192];

    pub fn at(first: usize) -> usize {
        let (active, trace) = ACTIVE.get_or_init(|| {
            let active = std::env::var("MUTANT").ok().and_then(|text| text.parse().ok());
            (active.unwrap_or(0), std::env::var("MUTANT_TRACE").ok())
        });
        if let Some(path) = trace && !SEEN[first % 8192].swap(true, Ordering::Relaxed) {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let _ = file.and_then(|mut file| file.write_all(format!("{first}\n").as_bytes()));
        }
        *active
    }
}
"#;

/// A file with its places.
struct MutationSubject {
    path: String,
    source: String,
    sites: Vec<MutationSite>,
}

/// A mutant by its place: the file, the site in it, and the choice at the site.
type MutantPlace = (usize, usize, usize);

/// A program of tests.
struct TestProgram {
    name: String,
    path: PathBuf,
    folder: PathBuf,
}

/// A test: the index of its program, its usual time, and the places that it reaches.
struct MeasuredTest {
    program: usize,
    name: String,
    usual: Duration,
    reached: BTreeSet<usize>,
}

/// Runs `cargo xtask mutants [--list] [--sample N] [--seed N] [--jobs N] [--skip PROGRAM,…] [--longest SECONDS]
/// [--only NUMBER,…]`. `--skip` leaves out programs of tests, `--longest` slow tests, and `--only` runs single mutants.
/// Returns the surviving mutants without a reason.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<Vec<String>, String> {
    let (mut sample, mut seed, mut jobs, mut list) = (SAMPLE, SEED, 1, false);
    let mut longest = Duration::MAX;
    let (mut skipped, mut only) = (BTreeSet::new(), BTreeSet::new());
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let mut number =
            || rest.next().and_then(|text| text.parse().ok()).ok_or(format!("{word} needs a number"));
        match *word {
            "--list" => list = true,
            "--skip" => skipped.extend(rest.next().into_iter().flat_map(|names| names.split(','))),
            "--only" => {
                let numbers = rest.next().into_iter().flat_map(|numbers| numbers.split(','));
                only.extend(numbers.filter_map(|number| number.parse::<usize>().ok()));
            }
            "--sample" => sample = usize::try_from(number()?).unwrap_or(usize::MAX),
            "--seed" => seed = number()?,
            "--longest" => longest = Duration::from_secs(number()?),
            "--jobs" => jobs = number()?.max(1),
            _ => return Err(format!("unknown option: {word}")),
        }
    }
    let subjects = subjects(root)?;
    let order = order(&subjects, seed);
    if list {
        let lines: Vec<String> = order.iter().map(|place| key(&subjects, *place).to_owned()).collect();
        print(&format!("{}\n", lines.join("\n")));
        return Ok(Vec::new());
    }
    let explained = explained_keys(root)?;
    let folder = target(root).join("mutants");
    copy(root, &folder)?;
    let (sample, dropped) = compile_mutants(&folder, &subjects, &order, sample)?;
    print(&format!("{} mutants of {}; {dropped} others do not compile\n", sample.len(), order.len()));
    let mut programs = programs(root, &folder)?;
    programs.retain(|program| !skipped.contains(program.name.as_str()));
    let sites = numbers(&sample);
    let mut tests = rehearse(&folder, &programs, jobs)?;
    tests.retain(|test| test.usual <= longest);
    let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(place) = sample.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let number = sample.iter().position(|other| other == place).map_or(0, |index| index + 1);
                    if !only.is_empty() && !only.contains(&number) {
                        continue;
                    }
                    // A switch asks by the number of the first mutant of its site.
                    let first = sites.get(&(place.0, place.1)).and_then(|all| all.first());
                    let verdict = verdict(&programs, &tests, number, first.map_or(number, |each| each.0));
                    let line = mutant(&subjects, *place).map_or(0, |mutant| mutant.line);
                    let key = key(&subjects, *place);
                    let is_explained = explained.contains(key) && verdict != MutantFate::Killed;
                    let reason = if is_explained { " (explained)" } else { "" };
                    print(&format!("{number:3} {verdict:?}{reason}: line {line}, {key}\n"));
                    let mut verdicts = verdicts.lock().unwrap_or_else(PoisonError::into_inner);
                    verdicts
                        .insert(number, (verdict, is_explained, format!("{verdict:?}: line {line}, {key}")));
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().unwrap_or_else(PoisonError::into_inner);
    let count = |wanted: fn(MutantFate, bool) -> bool| {
        verdicts.values().filter(|(verdict, explained, _)| wanted(*verdict, *explained)).count()
    };
    let (killed, explained) =
        (count(|verdict, _| verdict == MutantFate::Killed), count(|_, explained| explained));
    print(&format!("{killed} killed, {explained} explained\n"));
    let rest =
        verdicts.into_values().filter(|(verdict, explained, _)| *verdict != MutantFate::Killed && !explained);
    Ok(rest.map(|(_, _, line)| line).collect())
}

/// The result of the tests for a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MutantFate {
    /// A test fails.
    Killed,
    /// No test fails.
    Survived,
    /// No test reaches the place.
    Unreached,
}

/// Runs the tests that reach a place in groups, the fastest first, until one fails.
fn verdict(programs: &[TestProgram], tests: &[MeasuredTest], number: usize, asked: usize) -> MutantFate {
    let reaching: Vec<&MeasuredTest> = tests.iter().filter(|test| test.reached.contains(&asked)).collect();
    if reaching.is_empty() {
        return MutantFate::Unreached;
    }
    let (mut group, mut limit) = (Vec::new(), Duration::from_millis(FIRST_GROUP));
    let mut rest = reaching.into_iter().peekable();
    while let Some(test) = rest.next() {
        group.push(test);
        let sum: Duration = group.iter().map(|test| test.usual).sum();
        if sum < limit && rest.peek().is_some() {
            continue;
        }
        limit *= 2;
        // A test that fails by itself on a busy machine shows nothing.
        if !pass(programs, &group, Some(number)) && pass(programs, &group, None) {
            return MutantFate::Killed;
        }
        group.clear();
    }
    MutantFate::Survived
}

/// Returns whether these tests pass, with a mutant or without.
fn pass(programs: &[TestProgram], tests: &[&MeasuredTest], mutant: Option<usize>) -> bool {
    programs.iter().enumerate().all(|(index, program)| {
        let own: Vec<&MeasuredTest> = tests.iter().filter(|test| test.program == index).copied().collect();
        let names: Vec<&str> = own.iter().map(|test| test.name.as_str()).collect();
        let usual = own.iter().map(|test| test.usual).sum();
        let variable = mutant.map(|number| ("MUTANT", number.to_string()));
        names.is_empty() || program.passes(&names, usual, variable).unwrap_or(false)
    })
}

fn print(text: &str) {
    // A reader such as `head` may leave early.
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// The keys of mutants that have a reason to survive.
fn explained_keys(root: &Path) -> Result<BTreeSet<String>, String> {
    let text = read(&root.join(EXPLAINED))?;
    let keys = text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', ' ']));
    Ok(keys.map(str::to_owned).collect())
}

/// Reads the files that are changed.
fn subjects(root: &Path) -> Result<Vec<MutationSubject>, String> {
    let mut paths = Vec::new();
    for subject in SUBJECTS {
        files(root, Path::new(subject), &mut paths)?;
    }
    paths.retain(|path| {
        Path::new(path).extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs")
    });
    let subject = |path: String| {
        let source = read(&root.join(&path))?;
        let sites = sites(&path, &source)?;
        Ok(MutationSubject { path, source, sites })
    };
    paths.into_iter().map(subject).collect()
}

/// Adds the files at and below a path, in order.
fn files(root: &Path, path: &Path, all: &mut Vec<String>) -> Result<(), String> {
    let whole = root.join(path);
    if !whole.is_dir() {
        all.push(path.to_string_lossy().into_owned());
        return Ok(());
    }
    let listed = fs::read_dir(&whole).map_err(|error| format!("cannot read {}: {error}", whole.display()))?;
    let names: BTreeSet<_> = listed.flatten().map(|entry| entry.file_name()).collect();
    for name in
        names.iter().filter(|name| !["target", ".git", "node_modules"].iter().any(|skipped| *name == skipped))
    {
        files(root, &path.join(name), all)?;
    }
    Ok(())
}

fn mutant(subjects: &[MutationSubject], (file, site, choice): MutantPlace) -> Option<&sites::Mutant> {
    subjects.get(file)?.sites.get(site)?.mutants.get(choice)
}

fn key(subjects: &[MutationSubject], place: MutantPlace) -> &str {
    mutant(subjects, place).map_or("", |mutant| &mutant.key)
}

/// All mutants, in an order that depends only on the seed and their keys.
fn order(subjects: &[MutationSubject], seed: u64) -> Vec<MutantPlace> {
    let mut all = Vec::new();
    for (file, subject) in subjects.iter().enumerate() {
        for (site, found) in subject.sites.iter().enumerate() {
            all.extend((0..found.mutants.len()).map(|choice| (file, site, choice)));
        }
    }
    all.sort_by_cached_key(|place| rank(seed, key(subjects, *place)));
    all
}

/// A number that looks random, the same with every compiler: FNV-1a, mixed.
fn rank(seed: u64, key: &str) -> u64 {
    let hash = key.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

/// The numbers of the mutants of each site, beginning with 1.
fn numbers(sample: &[MutantPlace]) -> BTreeMap<(usize, usize), Vec<(usize, usize)>> {
    let mut sites: BTreeMap<(usize, usize), Vec<(usize, usize)>> = BTreeMap::new();
    for (number, (file, site, choice)) in (1..).zip(sample) {
        sites.entry((*file, *site)).or_default().push((number, *choice));
    }
    sites
}

/// The folder of the copied files, below that of the copied workspace. Cargo tells crates of two workspaces apart by
/// their paths below the workspace. With the same paths, the copy and the original would replace each other's builds.
const TREE: &str = "tree";

/// Copies the repository. Files that did not change keep their times, so that only the rest is built again.
fn copy(root: &Path, folder: &Path) -> Result<(), String> {
    let mut all = Vec::new();
    files(root, Path::new(""), &mut all)?;
    for path in all {
        let bytes = fs::read(root.join(&path)).map_err(|error| format!("cannot read {path}: {error}"))?;
        match path.as_str() {
            "Cargo.lock" => put(&folder.join(&path), &bytes)?,
            "Cargo.toml" => {
                let text = String::from_utf8_lossy(&bytes);
                let moved =
                    text.replace("\"crates/", "\"tree/crates/").replace("\"xtask\"", "\"tree/xtask\"");
                put(&folder.join(&path), moved.as_bytes())?;
            }
            _ => {
                let copied = folder.join(TREE).join(&path);
                put(&copied, &bytes)?;
                // Some tests run programs of the repository.
                if let Ok(about) = fs::metadata(root.join(&path)) {
                    let _ = fs::set_permissions(copied, about.permissions());
                }
            }
        }
    }
    Ok(())
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, bytes));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Chooses the first mutants of the order that compile, and leaves the copy with them. Returns also how many do not.
fn compile_mutants(
    folder: &Path,
    subjects: &[MutationSubject],
    order: &[MutantPlace],
    count: usize,
) -> Result<(Vec<MutantPlace>, usize), String> {
    // Known from earlier runs: each round that writes other files builds everything again.
    let known = fs::read_to_string(folder.join(BROKEN)).unwrap_or_default();
    let is_known = |place: &MutantPlace| known.lines().any(|line| line == key(subjects, *place));
    let mut broken: BTreeSet<MutantPlace> = order.iter().copied().filter(is_known).collect();
    for _ in 0..ROUNDS {
        let sample: Vec<MutantPlace> =
            order.iter().copied().filter(|place| !broken.contains(place)).take(count).collect();
        let numbers = numbers(&sample);
        let mut written = BTreeMap::new();
        for (file, subject) in subjects.iter().enumerate() {
            let chosen: ChosenMutants = numbers
                .iter()
                .filter(|((of, _), _)| *of == file)
                .map(|((_, site), mutants)| (*site, mutants.clone()))
                .collect();
            let output = with_switches(&subject.source, &subject.sites, &chosen);
            put(&folder.join(TREE).join(&subject.path), output.text.as_bytes())?;
            written.insert(subject.path.as_str(), output);
        }
        for name in CRATES {
            let path = folder.join(TREE).join("crates").join(name).join("src/lib.rs");
            let text = read(&path)?;
            let text =
                text.split("\n#[allow(missing_docs, clippy::all").next().unwrap_or_default().trim_end();
            put(&path, format!("{text}\n{SWITCH}").as_bytes())?;
        }
        let messages = cargo(folder, &["check", "--lib"])?;
        let mut found = BTreeSet::new();
        let mut unplaced = String::new();
        for message in messages.iter().filter(|message| text_at(message, "/message/level") == "error") {
            let spans = message.pointer("/message/spans").and_then(Value::as_array);
            let mut at = spans.into_iter().flatten().filter_map(|span| {
                let path = text_at(span, "/file_name");
                let (_, output) = written.iter().find(|(name, _)| path.ends_with(*name))?;
                let byte = usize::try_from(span.get("byte_start")?.as_u64()?).ok()?;
                let inside = output.places.iter().filter(|(range, _)| range.contains(&byte));
                let smallest = inside.min_by_key(|(range, _)| range.len())?;
                sample.get(smallest.1.checked_sub(1)?).copied()
            });
            match at.next() {
                Some(place) => _ = found.insert(place),
                None => unplaced.push_str(text_at(message, "/message/rendered")),
            }
        }
        if found.is_empty() {
            let keys: Vec<&str> = broken.iter().map(|place| key(subjects, *place)).collect();
            put(&folder.join(BROKEN), keys.join("\n").as_bytes())?;
            return if unplaced.is_empty() { Ok((sample, broken.len())) } else { Err(unplaced) };
        }
        broken.extend(found);
    }
    Err(format!("mutants still do not compile after {ROUNDS} rounds"))
}

/// A text of a message of cargo; empty if it is absent.
fn text_at<'v>(message: &'v Value, pointer: &str) -> &'v str {
    message.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Runs a command of cargo for the crates, and returns its messages.
fn cargo(folder: &Path, words: &[&str]) -> Result<Vec<Value>, String> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder).args(words).args(["--locked", "--quiet", "--message-format=json"]);
    command.args(CRATES.iter().flat_map(|name| ["-p", name]));
    command.env("CARGO_TARGET_DIR", target(folder).join("")).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("cannot run cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Builds the tests of the crates in the copy.
fn programs(root: &Path, folder: &Path) -> Result<Vec<TestProgram>, String> {
    let messages = cargo(folder, &["test", "--no-run", "--lib", "--tests"])?;
    if let Some(error) = messages.iter().find(|message| text_at(message, "/message/level") == "error") {
        return Err(text_at(error, "/message/rendered").to_owned());
    }
    let programs = messages
        .iter()
        .filter(|message| message.pointer("/profile/test") == Some(&Value::Bool(true)))
        .filter_map(|message| {
            let manifest = Path::new(message.get("manifest_path")?.as_str()?);
            Some(TestProgram {
                name: text_at(message, "/target/name").to_owned(),
                path: message.get("executable")?.as_str()?.into(),
                folder: manifest.parent()?.to_owned(),
            })
        });
    let programs: Vec<TestProgram> = programs.collect();
    if programs.is_empty() { Err(format!("no tests below {}", root.display())) } else { Ok(programs) }
}

/// Runs each test alone and without a mutant: its time, and the places that it reaches. Returns the tests that reach one,
/// the fastest first.
fn rehearse(folder: &Path, programs: &[TestProgram], jobs: u64) -> Result<Vec<MeasuredTest>, String> {
    let mut all = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        all.extend(program.names()?.into_iter().map(|name| (index, name)));
    }
    let (next, found, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for job in 0..jobs {
            let (all, next, found, failed) = (&all, &next, &found, &failed);
            scope.spawn(move || {
                let trace = folder.join(format!("reached-{job}.txt"));
                while let Some((index, name)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(program) = programs.get(*index) else { continue };
                    let _ = fs::remove_file(&trace);
                    let begin = Instant::now();
                    let variable = ("MUTANT_TRACE", trace.to_string_lossy().into_owned());
                    let passes = program.passes(&[name], Duration::from_mins(10), Some(variable));
                    if passes != Ok(true) {
                        let name = format!("{} {name}", program.name);
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(name);
                    }
                    let reached = fs::read_to_string(&trace).unwrap_or_default();
                    let reached = reached.lines().filter_map(|line| line.parse().ok()).collect();
                    let (program, name, usual) = (*index, name.clone(), begin.elapsed());
                    let test = MeasuredTest { program, name, usual, reached };
                    found.lock().unwrap_or_else(PoisonError::into_inner).push(test);
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failed.is_empty() {
        return Err(format!("tests that fail without a mutant: {}", failed.join(", ")));
    }
    let mut tests = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let count = tests.len();
    tests.retain(|test: &MeasuredTest| !test.reached.is_empty());
    tests.sort_by(|one, other| (one.usual, &one.name).cmp(&(other.usual, &other.name)));
    let sum: Duration = tests.iter().map(|test| test.usual).sum();
    print(&format!("{} of {count} tests reach a mutant, in {:.1} s\n", tests.len(), sum.as_secs_f64()));
    Ok(tests)
}

impl TestProgram {
    /// The names of its tests.
    fn names(&self) -> Result<Vec<String>, String> {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).args(["--list", "--format", "terse"]).stdin(Stdio::null());
        let output = command.output().map_err(|error| format!("cannot run {}: {error}", self.name))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    /// Runs tests of the program. A failure and a time-out are the same.
    fn passes(
        &self,
        tests: &[impl AsRef<str>],
        usual: Duration,
        variable: Option<(&str, String)>,
    ) -> Result<bool, String> {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).args(["--quiet", "--exact"]).envs(variable);
        command.args(tests.iter().map(AsRef::as_ref));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("cannot run {}: {error}", self.name))?;
        let limit = Instant::now() + usual * 10 + Duration::from_secs(PATIENCE);
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status.success()),
                Ok(None) if Instant::now() < limit => thread::sleep(Duration::from_millis(5)),
                _ => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Ok(false);
                }
            }
        }
    }
}
