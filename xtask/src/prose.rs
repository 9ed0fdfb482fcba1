//! Measures the prose of this repository: doc comments, string literals, pages, comments, and two habits of naming.
//! `cargo xtask prose` prints the figures, with `--list` the places as well. A test fails when a figure is above its
//! limit or far below it.

mod comments;
mod names;
pub(crate) mod source;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{cli_page, config_page, module_keys, page, tests_index};

/// A kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// Sentences that open with "What", "Whether" and the like, in tenths of a percent of all sentences.
    Openings,
    /// Indefinite pronouns for people, which hide who acts.
    People,
    /// Idioms of place, which a plainer verb replaces.
    Stands,
    /// Sentences of more words than their kind of text allows.
    LongSentences,
    /// Types that are named by a participle, an adverb or a pronoun alone, or after furniture.
    Participles,
    /// Functions and files that are named by a participle, an adverb or a pronoun alone.
    BareNames,
    /// Functions with the name `of`.
    FunctionsOf,
}

use Measure::{BareNames, FunctionsOf, LongSentences, Openings, Participles, People, Stands};

/// A limit or a figure: its area, what is counted, and the number.
type Row<'a> = (&'a str, Measure, usize);

/// The limits. A figure may be below its limit by `SLACK`, so that unrelated commits need not touch this table; when it
/// falls further, the same commit lowers the limit. Raise none. Doc comments of crates without a row have `DOC_LIMITS`.
const LIMITS: [Row<'static>; 3] = [
    // The rest is text that models read.
    (STRINGS, Openings, 6),
    (STRINGS, Stands, 3),
    (PAGES, Openings, 3),
];

/// The limits of doc comments, which each crate should have: 1 % and no people. No commit needs to lower them.
const DOC_LIMITS: [(Measure, usize); 2] = [(Openings, 10), (People, 0)];

/// The most that a limit may exceed its figure by: half a percent, or five places.
const SLACK: usize = 5;
/// The share that a new limit leaves above its figure, as other sentences come and go.
const SHARE_MARGIN: usize = 2;
/// The most words of a sentence in a message or in README.md, which are read in a hurry.
const MAX_WORDS: usize = 25;
/// The most words of a sentence on another page.
const MAX_WORDS_OF_PAGES: usize = 30;
/// The fewest words of a literal that is read as prose.
const MIN_LITERAL: usize = 4;

const DOCS: &str = "doc comments of ";
const STRINGS: &str = "string literals";
const PAGES: &str = "pages";
const COMMENTS: &str = "comments";
const README: &str = "README.md";
const NAMES: &str = "names";

/// The generated pages. Their text is measured where it comes from.
const GENERATED: [&str; 3] = [page::PATH, cli_page::PATH, config_page::PATH];

/// The counts of an area, such as the doc comments of a crate.
#[derive(Default)]
struct Tally {
    sentences: usize,
    openings: usize,
    people: usize,
    stands: usize,
    long: usize,
}

impl Tally {
    /// The share of openings in tenths of a percent, rounded up.
    fn share(&self) -> usize {
        (self.openings * 1000).div_ceil(self.sentences.max(1))
    }
}

/// The place of something counted.
struct Place {
    path: String,
    line: usize,
    kind: &'static str,
    text: String,
}

/// The counts of the repository, and the places behind them.
#[derive(Default)]
struct Report {
    areas: BTreeMap<String, Tally>,
    types: BTreeSet<String>,
    participles: BTreeSet<String>,
    functions: usize,
    bare_names: usize,
    functions_of: usize,
    places: Vec<Place>,
}

impl Report {
    fn block(&mut self, area: &str, path: &str, line: usize, block: &str) {
        let most = max_words(area, path);
        let tally = self.areas.entry(area.to_owned()).or_default();
        for sentence in text::sentences(block) {
            let opens = sentence.opens_with_a_clause();
            let people = sentence.people();
            let stands = sentence.standing_idioms();
            let is_long = most.is_some_and(|most| sentence.words() > most && sentence.is_prose());
            tally.sentences += 1;
            tally.openings += usize::from(opens);
            tally.people += people;
            tally.stands += stands;
            tally.long += usize::from(is_long);
            let marks =
                [(opens, "opening"), (people > 0, "people"), (stands > 0, "stand"), (is_long, "long")];
            self.places.extend(marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, kind)| Place {
                path: path.to_owned(),
                line: line + sentence.line,
                kind,
                text: sentence.text.split_whitespace().collect::<Vec<_>>().join(" "),
            }));
        }
    }

    fn rust(&mut self, path: &str, text: &str) {
        let source = source::split(source::shipped_part(text));
        let area = format!("{DOCS}{}", crate_of(path));
        let lines = source.docs.iter().map(|(line, doc)| (*line, doc.as_str()));
        for block in text::blocks(lines) {
            self.block(&area, path, block.line, &block.text);
        }
        let is_prose = |value: &str| value.split_whitespace().count() >= MIN_LITERAL;
        self.comments(path, source.comments.iter().map(|(line, text)| (*line, text.as_str())));
        for (line, value) in source.strings.iter().filter(|(_, value)| is_prose(value)) {
            for paragraph in value.split("\n\n") {
                self.block(STRINGS, path, *line, paragraph);
            }
        }
        self.bare_name(path, 1, names::module(path));
        for (at, line) in source.code.lines().enumerate() {
            self.names(path, at + 1, line);
        }
    }

    fn comments<'a>(&mut self, path: &str, lines: impl IntoIterator<Item = (usize, &'a str)>) {
        for block in text::blocks(lines) {
            self.block(COMMENTS, path, block.line, &block.text);
        }
    }

    fn names(&mut self, path: &str, line: usize, code: &str) {
        let place = |kind, text: &str| Place { path: path.to_owned(), line, kind, text: text.to_owned() };
        if code.contains("fn of(") || code.contains("fn of<") {
            self.functions_of += 1;
            self.places.push(place("fn of", code.trim()));
        }
        for name in names::types(code) {
            self.types.insert(name.to_owned());
            let is_bad = names::is_bare_type(name) || names::is_furniture(name);
            if is_bad && self.participles.insert(name.to_owned()) {
                self.places.push(place("participle", name));
            }
        }
        for name in names::functions(code) {
            self.functions += 1;
            self.bare_name(path, line, name);
        }
    }

    /// Counts the name of a function or a file if it is bare.
    fn bare_name(&mut self, path: &str, line: usize, name: &str) {
        if names::is_bare(name) {
            self.bare_names += 1;
            self.places.push(Place { path: path.to_owned(), line, kind: "bare name", text: name.to_owned() });
        }
    }

    fn page(&mut self, path: &str, text: &str) {
        // A page that is written by hand may contain a generated list.
        let generated = text.split_once(module_keys::BEGIN).and_then(|(before, rest)| {
            let (generated, _) = rest.split_once(module_keys::END)?;
            let first = before.lines().count() + 1;
            Some(first..first + generated.lines().count() + 1)
        });
        let is_written = |line: &usize| !generated.as_ref().is_some_and(|lines| lines.contains(line));
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
        for block in text::blocks(lines.filter(|(line, _)| is_written(line))) {
            self.block(PAGES, path, block.line, &block.text);
        }
    }

    /// The figures that have limits.
    fn figures(&self) -> Vec<Row<'_>> {
        let areas = self.areas.iter().flat_map(|(area, tally)| {
            let counts = [(Openings, tally.share()), (People, tally.people), (Stands, tally.stands)];
            let long = max_words(area, "").map(|_| (LongSentences, tally.long));
            counts.into_iter().chain(long).map(move |(measure, count)| (area.as_str(), measure, count))
        });
        let others = [
            (NAMES, Participles, self.participles.len()),
            (NAMES, BareNames, self.bare_names),
            (NAMES, FunctionsOf, self.functions_of),
        ];
        areas.chain(others).collect()
    }
}

/// The most words of a sentence in a file; `None` for comments, which readers do not meet in a hurry.
fn max_words(area: &str, path: &str) -> Option<usize> {
    let words = if area == PAGES && path != README { MAX_WORDS_OF_PAGES } else { MAX_WORDS };
    [STRINGS, PAGES].contains(&area).then_some(words)
}

/// The crate of a file, as its folder is named.
fn crate_of(path: &str) -> &str {
    path.trim_start_matches("crates/").split('/').next().unwrap_or_default()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A path below the root, with `/` on every system.
fn relative_path(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// The Rust files that are no tests, with their texts.
fn shipped_files(root: &Path) -> Result<Vec<(String, String)>, String> {
    let mut files = Vec::new();
    let mut tests: BTreeSet<PathBuf> = BTreeSet::new();
    for file in tests_index::rust_files(root) {
        let path = relative_path(root, &file);
        let is_test = ["/tests/", "/benches/"].iter().any(|folder| path.contains(folder));
        if is_test || path.ends_with("tests.rs") || path.starts_with("fuzz/") {
            continue;
        }
        let text = read(&file)?;
        let folder = match file.file_stem().and_then(|stem| stem.to_str()) {
            Some("lib" | "main" | "mod") => file.with_file_name(""),
            _ => file.with_extension(""),
        };
        for name in source::test_files(&text) {
            tests.insert(folder.join(name));
            tests.insert(folder.join(name).with_extension("rs"));
        }
        files.push((file, path, text));
    }
    let is_shipped = |file: &Path| !file.ancestors().any(|part| tests.contains(part));
    let shipped = files.into_iter().filter(|(file, ..)| is_shipped(file));
    Ok(shipped.map(|(_, path, text)| (path, text)).collect())
}

/// The pages that are written by hand.
fn pages(root: &Path) -> Result<Vec<String>, String> {
    let docs = fs::read_dir(root.join("docs")).map_err(|error| format!("docs: {error}"))?;
    let docs = docs.flatten().map(|entry| entry.path());
    let docs = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut pages: Vec<String> = docs
        .map(|path| relative_path(root, &path))
        .filter(|path| !GENERATED.contains(&path.as_str()))
        .chain([README, "ARCHITECTURE.md", "CONTRIBUTING.md"].map(str::to_owned))
        .collect();
    pages.sort();
    Ok(pages)
}

fn measure(root: &Path) -> Result<Report, String> {
    let mut report = Report::default();
    for (path, text) in shipped_files(root)? {
        report.rust(&path, &text);
    }
    for path in pages(root)? {
        report.page(&path, &read(&root.join(&path))?);
    }
    for file in comments::files(root) {
        let text = read(&file)?;
        report.comments(&relative_path(root, &file), comments::lines(&text));
    }
    Ok(report)
}

impl Measure {
    /// A figure or a limit, with its unit.
    fn number(self, figure: usize) -> String {
        if self == Openings { format!("{}.{} %", figure / 10, figure % 10) } else { figure.to_string() }
    }

    /// The things that the figure counts.
    fn things(self) -> &'static str {
        match self {
            Openings => "of the sentences open with a clause",
            People => "indefinite pronouns for people",
            Stands => "idioms of place",
            LongSentences => "sentences of too many words",
            Participles => "types named by a bare participle, an adverb or furniture",
            BareNames => "functions and files named by a bare participle, an adverb or a pronoun",
            FunctionsOf => "functions named `of`",
        }
    }
}

/// The limit of a figure without a row.
fn default_limit(area: &str, measure: Measure) -> usize {
    let doc = DOC_LIMITS.iter().find(|(each, _)| *each == measure && area.starts_with(DOCS));
    doc.map_or(0, |(_, limit)| *limit)
}

/// The limit of a figure in its row.
fn row_limit(rows: &[Row<'_>], area: &str, measure: Measure) -> Option<usize> {
    rows.iter().find(|(name, each, _)| *name == area && *each == measure).map(|(_, _, limit)| *limit)
}

/// Returns a message if a figure is above its limit or the limit is too high.
fn problem(rows: &[Row<'_>], (area, measure, figure): Row<'_>) -> Option<String> {
    let default = default_limit(area, measure);
    let row = row_limit(rows, area, measure);
    let limit = row.unwrap_or(default);
    let advice = if figure > limit {
        "rewrite what is new; `cargo xtask prose --list` shows the places".to_owned()
    } else if row.is_some() && figure <= default {
        format!("remove the row {measure:?} of {area} from LIMITS in this commit")
    } else if row.is_some() && figure + SLACK < limit {
        let margin = if measure == Openings { SHARE_MARGIN } else { 0 };
        format!("lower the limit {measure:?} of {area} to {} in this commit", figure + margin)
    } else {
        return None;
    };
    let [figure, limit] = [figure, limit].map(|each| measure.number(each));
    Some(format!("{area}: {figure} {}, the limit is {limit}: {advice}", measure.things()))
}

/// Returns the messages on all figures and on rows that measure nothing.
fn problems(report: &Report) -> Vec<String> {
    let figures = report.figures();
    let is_measured =
        |(area, measure, _): &&Row<'_>| figures.iter().any(|(name, each, _)| name == area && each == measure);
    let unknown = LIMITS.iter().filter(|row| !is_measured(row));
    let unknown = unknown.map(|(area, measure, _)| format!("LIMITS: nothing measures {measure:?} of {area}"));
    figures.iter().filter_map(|figure| problem(&LIMITS, *figure)).chain(unknown).collect()
}

/// Renders the figures and their limits, after the places if `list` is set.
fn render(report: &Report, list: bool) -> String {
    let mut text = String::new();
    for Place { path, line, kind, text: words } in report.places.iter().filter(|_| list) {
        let _ = writeln!(text, "{path}:{line}: [{kind}] {words}");
    }
    for (area, measure, figure) in report.figures() {
        let limit = row_limit(&LIMITS, area, measure).unwrap_or_else(|| default_limit(area, measure));
        let [figure, limit] = [figure, limit].map(|each| measure.number(each));
        let things = measure.things();
        let _ = writeln!(text, "{area:<34} {figure:>6}  (limit {limit:>5})  {things}");
    }
    let _ = writeln!(text, "sentences: {}", report.areas.values().map(|each| each.sentences).sum::<usize>());
    text
}

/// Returns the text that `cargo xtask prose` prints, and the figures beyond their limits.
pub(crate) fn report(root: &Path, list: bool) -> Result<(String, Vec<String>), String> {
    let report = measure(root)?;
    Ok((render(&report, list), problems(&report)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prose_is_within_its_limits() {
        let report = measure(&crate::root()).unwrap();
        for (area, least) in
            [("doc comments of cogn-cli", 1000), (STRINGS, 3000), (PAGES, 2000), (COMMENTS, 2000)]
        {
            let sentences = report.areas.get(area).map_or(0, |tally| tally.sentences);
            assert!(sentences > least, "{area}: only {sentences} sentences; has the check gone blind?");
        }
        assert!(report.types.len() > 500, "only {} types; has the check gone blind?", report.types.len());
        let problems = problems(&report);
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn a_limit_follows_its_figure() {
        let rows = [("a", People, 20), ("a", Openings, 42), ("doc comments of b", Openings, 60)];
        let advice = |area, measure, figure| problem(&rows, (area, measure, figure)).unwrap_or_default();
        for (area, measure, figure) in [
            ("a", People, 20),
            ("a", People, 15),
            ("a", Openings, 42),
            ("a", Openings, 37),
            ("doc comments of b", Openings, 55),
            ("doc comments of c", Openings, 0),
            ("doc comments of c", Openings, 10),
        ] {
            assert_eq!(advice(area, measure, figure), "");
        }
        assert!(advice("a", People, 21).contains("the limit is 20: rewrite"));
        assert!(advice("a", Openings, 43).starts_with("a: 4.3 % of the sentences"));
        assert!(advice("doc comments of c", Openings, 11).contains("the limit is 1.0 %: rewrite"));
        assert!(advice("doc comments of c", People, 1).contains("the limit is 0: rewrite"));
        assert!(advice("a", People, 14).ends_with("lower the limit People of a to 14 in this commit"));
        assert!(advice("a", Openings, 36).ends_with("lower the limit Openings of a to 38 in this commit"));
        assert!(advice("a", People, 0).ends_with("remove the row People of a from LIMITS in this commit"));
        assert!(advice("doc comments of b", Openings, 10).contains("remove the row Openings"));
    }

    #[test]
    fn shares_are_rounded_up() {
        let share = |openings, sentences| Tally { sentences, openings, ..Tally::default() }.share();
        assert_eq!([share(0, 0), share(1, 1000), share(1, 999), share(1, 3)], [0, 1, 2, 334]);
    }

    #[test]
    fn a_file_is_measured_up_to_its_tests() {
        let mut report = Report::default();
        report.rust(
            "crates/a/src/b.rs",
            "/// What is large is lent. Nobody knows.\nstruct Told(&'static str);\nimpl Told {\n    fn of() -> Self {\n        \
             Self(\"Whether this is read.\") // Nobody\n    }\n}\nstruct TextTold(\"Who\");\n\
             fn kept() -> fn(u8) {\n    is_kept\n}\n\
             #[cfg(test)]\nmod tests {\n    /// Nobody.\n    struct Said;\n    fn kept() {}\n}\n",
        );
        report.rust("crates/a/src/told.rs", "");
        report.page(README, "# Whether\n\n```\nNobody\n```\n\n* Whoever is it?\n");
        let shown: Vec<(&str, usize)> =
            report.figures().into_iter().map(|(area, _, each)| (area, each)).collect();
        assert_eq!(
            shown,
            [
                (COMMENTS, 0),
                (COMMENTS, 1),
                (COMMENTS, 0),
                ("doc comments of a", 500),
                ("doc comments of a", 1),
                ("doc comments of a", 0),
                (PAGES, 500),
                (PAGES, 1),
                (PAGES, 0),
                (PAGES, 0),
                (STRINGS, 1000),
                (STRINGS, 0),
                (STRINGS, 0),
                (STRINGS, 0),
                (NAMES, 1),
                (NAMES, 2),
                (NAMES, 1)
            ]
        );
        let places: Vec<String> = report
            .places
            .iter()
            .map(|place| format!("{}:{}: {}", place.path, place.line, place.kind))
            .collect();
        assert_eq!(
            places,
            [
                "crates/a/src/b.rs:1: opening",
                "crates/a/src/b.rs:1: people",
                "crates/a/src/b.rs:5: people",
                "crates/a/src/b.rs:5: opening",
                "crates/a/src/b.rs:2: participle",
                "crates/a/src/b.rs:4: fn of",
                "crates/a/src/b.rs:9: bare name",
                "crates/a/src/told.rs:1: bare name",
                "README.md:1: opening",
                "README.md:7: people"
            ]
        );
    }

    #[test]
    fn generated_text_is_not_measured() {
        let mut report = Report::default();
        let text =
            format!("Whoever.\n\n{}\nNobody.\n{}\n\nSomebody.\n", module_keys::BEGIN, module_keys::END);
        report.page("docs/modules.md", &text);
        let lines: Vec<usize> =
            report.places.iter().filter(|place| place.kind == "people").map(|place| place.line).collect();
        assert_eq!(lines, [1, 8]);
    }

    #[test]
    fn long_sentences_are_counted_by_the_kind_of_text() {
        let mut report = Report::default();
        let sentence = |words: usize| format!("the {}.", vec!["word"; words - 1].join(" "));
        let lengths = [25, 26, 30, 31].map(sentence);
        report.page(README, &lengths.join(" "));
        report.page("docs/tour.md", &lengths.join(" "));
        // A literal ends a sentence at an empty line, and a list of names is no sentence.
        let names = vec!["name"; 40].join(" ");
        let literals =
            format!("(\"{}\", \"{}\\n\\n{}\", \"{names}\")", lengths.join(" "), lengths[0], lengths[0]);
        report.rust("crates/a/src/b.rs", &format!("/// {}\nconst A: B = {literals};\n", lengths[3]));
        let places: Vec<_> = report.places.iter().map(|place| (place.path.as_str(), place.kind)).collect();
        let expected = [
            [(README, "long"); 3].as_slice(),
            &[("docs/tour.md", "long")],
            &[("crates/a/src/b.rs", "long"); 3],
        ];
        assert_eq!(places, expected.concat());
    }
}
