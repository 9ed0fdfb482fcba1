//! `cargo xtask eval-public DIR`: measures the small bundled modules on public sets that the caller has downloaded. The
//! choice of cases depends on [`SEED`] and the text alone, so every machine measures the same ones. Half `first` is for
//! comparing variants; half `second` is for one final figure. No text of these sets is stored, trained on, or used to
//! choose anything. A set that is absent is reported, never passed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::{Value, json};

/// The seed of the choice of cases and of their halves. Another seed is another measurement.
const SEED: u64 = 20_260_219;
/// The number of cases of a set, in both halves together. More cost hours on a small machine.
const MAX_CASES: usize = 400;
/// Texts of other lengths are left out: empty ones, and those that a small model cannot read in time.
const LENGTHS: std::ops::RangeInclusive<usize> = 3..=2_000;
/// The share of wrong confidences, over ten groups, that one set and all sets together may have.
const MAX_ERROR: (f64, f64) = (0.15, 0.08);

/// A public set: its files as published, and the module that it measures.
struct PublicSet {
    name: &'static str,
    /// Paths below the folder, all of which are needed.
    files: &'static [&'static str],
    module: &'static str,
    read: fn(&[String]) -> Vec<Value>,
}

const SETS: [PublicSet; 8] = [
    PublicSet {
        name: "customer-reviews",
        files: &["customer-reviews/custrev.pos", "customer-reviews/custrev.neg"],
        module: "text-classifier",
        read: |texts| {
            let words = ["positive", "negative"];
            let of = |(text, word): (&String, &str)| -> Vec<Value> {
                text.lines().map(|line| sentiment(line, word)).collect()
            };
            texts.iter().zip(words).flat_map(of).collect()
        },
    },
    PublicSet {
        name: "sst-2",
        files: &["sst-2/dev.tsv"],
        module: "text-classifier",
        read: |texts| {
            let line = |line: &str| {
                let (text, label) = line.rsplit_once('\t')?;
                Some(sentiment(text, if label.trim() == "1" { "positive" } else { "negative" }))
            };
            texts.iter().flat_map(|text| text.lines().skip(1).filter_map(line)).collect()
        },
    },
    PublicSet {
        name: "yelp",
        files: &["yelp/test.csv"],
        module: "text-classifier",
        read: |texts| {
            rows(texts)
                .iter()
                .filter_map(|row| {
                    let word = if row.first()? == "2" { "positive" } else { "negative" };
                    Some(sentiment(row.get(1)?, word))
                })
                .collect()
        },
    },
    PublicSet {
        name: "ag-news",
        files: &["ag-news/test.csv"],
        module: "text-classifier",
        read: |texts| {
            const LABELS: [&str; 4] = ["world politics", "sports", "business", "technology"];
            rows(texts)
                .iter()
                .filter_map(|row| {
                    let class: usize = row.first()?.parse().ok()?;
                    let text = row.get(1..)?.join(". ");
                    Some(label(&text, LABELS.get(class.checked_sub(1)?)?, &LABELS))
                })
                .collect()
        },
    },
    PublicSet {
        name: "banking77",
        files: &["banking77/test.csv"],
        module: "text-classifier",
        read: |texts| {
            let rows = rows(texts);
            let all: BTreeSet<&str> =
                rows.iter().skip(1).filter_map(|row| Some(row.get(1)?.as_str())).collect();
            rows.iter()
                .skip(1)
                .filter_map(|row| {
                    let (text, right) = (row.first()?, row.get(1)?.as_str());
                    // The right label and four others, drawn by the text.
                    let mut others: Vec<&str> = all.iter().copied().filter(|other| *other != right).collect();
                    others.sort_by_key(|other| hash(&format!("{text}\n{other}")));
                    let mut labels: Vec<String> = others
                        .into_iter()
                        .take(4)
                        .chain([right])
                        .map(|each| each.replace('_', " "))
                        .collect();
                    labels.sort_by_key(|label| hash(&format!("{label}\n{text}")));
                    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
                    Some(label(text, &right.replace('_', " "), &labels))
                })
                .collect()
        },
    },
    PublicSet {
        name: "trec",
        files: &["trec/TREC_10.label"],
        module: "text-classifier",
        read: |texts| {
            const KINDS: [(&str, &str); 6] = [
                ("ABBR", "abbreviation"),
                ("DESC", "description"),
                ("ENTY", "thing"),
                ("HUM", "person"),
                ("LOC", "place"),
                ("NUM", "number"),
            ];
            let labels = KINDS.map(|(_, label)| label);
            let line = |line: &str| {
                let (kind, text) = line.split_once(' ')?;
                let kind = kind.split(':').next()?;
                let (_, right) = KINDS.iter().find(|(known, _)| *known == kind)?;
                Some(label(text, right, &labels))
            };
            texts.iter().flat_map(|text| text.lines().filter_map(line)).collect()
        },
    },
    PublicSet {
        name: "wikigold",
        files: &["wikigold/wikigold.conll.txt"],
        module: "entity-extractor",
        read: |texts| entities(texts, &[("PER", "person"), ("ORG", "organisation"), ("LOC", "place")]),
    },
    PublicSet {
        name: "wnut17",
        files: &["wnut17/emerging.test.annotated"],
        module: "entity-extractor",
        read: |texts| {
            entities(texts, &[("person", "person"), ("corporation", "organisation"), ("location", "place")])
        },
    },
];

/// Measures the sets below a folder with each model, and prints a table. The problems are absent sets, and figures
/// beyond their limits.
pub fn run(words: &[&str]) -> Result<Vec<String>, String> {
    let usage = "usage: cargo xtask eval-public DIR [--half first|second] [--model NAME]";
    let (mut folder, mut half, mut model) = (None, "first", "smollm2");
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "--half" => half = words.next().filter(|half| ["first", "second"].contains(half)).ok_or(usage)?,
            "--model" => model = words.next().ok_or(usage)?,
            word if word.starts_with("--") || folder.is_some() => return Err(usage.to_owned()),
            word => folder = Some(PathBuf::from(word)),
        }
    }
    let folder = folder.ok_or(usage)?;
    let (mut table, mut problems) = (String::new(), Vec::new());
    let _ = writeln!(table, "{:<18} {:>5} {:>8} {:>18}", "set", "cases", "right", "calibration error");
    let (mut cases, mut errors) = (0.0, 0.0);
    for set in &SETS {
        let found = match set.cases(&folder) {
            Ok(found) => found,
            Err(missing) => {
                let _ = writeln!(table, "{:<18} absent: {missing}", set.name);
                problems.push(format!("the set `{}` is absent: {missing}", set.name));
                continue;
            }
        };
        let report = measure(set, &found, half, model)?;
        let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_f64).unwrap_or_default();
        let (count, right) = (number("/accuracy/of"), number("/accuracy/right"));
        let error = number("/calibration_error");
        let share = if count > 0.0 { right / count } else { 0.0 };
        let _ = writeln!(table, "{:<18} {count:>5} {:>6.1} % {error:>18.2}", set.name, share * 100.0);
        (cases, errors) = (cases + count, errors + count * error);
        if error > MAX_ERROR.0 {
            problems
                .push(format!("`{}`: the calibration error is {error:.2}, above {}", set.name, MAX_ERROR.0));
        }
    }
    if cases > 0.0 && errors / cases > MAX_ERROR.1 {
        problems.push(format!("the mean calibration error is {:.2}, above {}", errors / cases, MAX_ERROR.1));
    }
    super::say(table.trim_end());
    Ok(problems)
}

impl PublicSet {
    /// Returns the chosen cases; the error is the path of a file that is missing or unreadable.
    fn cases(&self, folder: &Path) -> Result<Vec<Value>, String> {
        let read = |file: &&str| {
            let path = folder.join(file);
            fs::read(&path).map_err(|_| path.display().to_string())
        };
        let texts: Vec<Vec<u8>> = self.files.iter().map(read).collect::<Result<_, _>>()?;
        // One of the sets is Latin-1 as published.
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes)
                .unwrap_or_else(|error| error.into_bytes().into_iter().map(char::from).collect())
        };
        let texts: Vec<String> = texts.into_iter().map(text).collect();
        Ok(choose_cases(self.name, (self.read)(&texts)))
    }
}

/// Chooses cases by their texts, whatever their order, and gives each its half.
fn choose_cases(set: &str, cases: Vec<Value>) -> Vec<Value> {
    let text =
        |case: &Value| case.pointer("/input/text").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut seen = BTreeSet::new();
    let mut cases: Vec<(u64, Value)> = cases
        .into_iter()
        .filter(|case| LENGTHS.contains(&text(case).chars().count()) && seen.insert(text(case)))
        .map(|case| (hash(&format!("{set}\n{}", text(&case))), case))
        .collect();
    cases.sort_by_key(|(hash, _)| *hash);
    cases.truncate(MAX_CASES);
    let with_half = |(at, (_, mut case)): (usize, (u64, Value))| {
        if let Some(members) = case.as_object_mut() {
            members.insert("half".to_owned(), if at % 2 == 0 { "first" } else { "second" }.into());
            members.insert("id".to_owned(), format!("{set}-{at}").into());
        }
        case
    };
    cases.into_iter().enumerate().map(with_half).collect()
}

/// Runs `cogn eval` on one half.
fn measure(set: &PublicSet, cases: &[Value], half: &str, model: &str) -> Result<Value, String> {
    let broken = |error: std::io::Error| format!("{}: {error}", set.name);
    let folder = env::temp_dir().join(format!("cogn-eval-public-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(broken)?;
    let file = folder.join(format!("{}.jsonl", set.name));
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    fs::write(&file, lines.join("\n")).map_err(broken)?;
    let program = env::var_os("COGN").unwrap_or_else(|| "cogn".into());
    let output = Command::new(&program)
        .args([
            "eval",
            set.module,
            "--half",
            half,
            "--provider",
            "embedded",
            "--model",
            model,
            "--json",
            "--cases",
        ])
        .arg(&file)
        .current_dir(&folder)
        .output();
    let output =
        output.map_err(|error| format!("{}: {error}; set `COGN` to the program", program.display()))?;
    fs::remove_dir_all(&folder).map_err(broken)?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("{}: {}", set.name, String::from_utf8_lossy(&output.stderr)))
}

fn sentiment(text: &str, right: &str) -> Value {
    json!({ "input": { "text": text.trim() }, "expect": { "sentiment": right } })
}

fn label(text: &str, right: &str, labels: &[&str]) -> Value {
    json!({ "input": { "text": text.trim(), "labels": labels }, "expect": { "label": right } })
}

/// Returns the sentences of tagged words, each with the first entity of each kind, or its absence.
fn entities(texts: &[String], kinds: &[(&str, &str)]) -> Vec<Value> {
    let mut cases = Vec::new();
    for sentence in texts.iter().flat_map(|text| text.split("\n\n")) {
        let mut words = Vec::new();
        let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
        let mut last = "O";
        for (word, tag) in sentence.lines().filter_map(|line| line.trim_end().rsplit_once([' ', '\t'])) {
            let word = word.trim();
            words.push(word);
            let kind = tag.split_once('-').map_or("O", |(_, kind)| kind);
            match found.last_mut() {
                Some((_, part)) if kind != "O" && kind == last && !tag.starts_with("B-") => part.push(word),
                _ if kind != "O" => found.push((kind, vec![word])),
                _ => {}
            }
            last = kind;
        }
        let want: Vec<&str> = kinds.iter().map(|(_, name)| *name).collect();
        let expect = kinds.iter().map(|(tag, name)| {
            let of: Vec<String> =
                found.iter().filter(|(kind, _)| kind == tag).map(|(_, part)| part.join(" ")).collect();
            let rule = if of.is_empty() { json!({ "$absent": true }) } else { json!({ "$in": of }) };
            (format!("found.{name}"), rule)
        });
        let expect: serde_json::Map<String, Value> = expect.collect();
        cases.push(json!({ "input": { "text": words.join(" "), "want": want }, "expect": expect }));
    }
    cases
}

/// Returns the rows of CSV texts, in which a quote within quotes is doubled.
fn rows(texts: &[String]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for text in texts {
        let (mut row, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '"' if is_quoted && letters.peek() == Some(&'"') => {
                    letters.next();
                    cell.push('"');
                }
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
                '\n' if !is_quoted => {
                    row.push(std::mem::take(&mut cell));
                    rows.push(std::mem::take(&mut row));
                }
                '\r' => {}
                _ => cell.push(letter),
            }
        }
        if !cell.is_empty() || !row.is_empty() {
            row.push(cell);
            rows.push(row);
        }
    }
    rows
}

/// A hash that depends on nothing but the seed and the text (FNV-1a).
fn hash(text: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64 ^ SEED;
    text.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, texts: &[&str]) -> Vec<Value> {
        let set = SETS.iter().find(|set| set.name == name).unwrap();
        assert_eq!(set.files.len(), texts.len(), "{name}");
        (set.read)(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn each_set_is_read_as_it_is_published() {
        let reviews = of("customer-reviews", &["it works well\n", "the lid broke\nno sound\n"]);
        assert_eq!(reviews[2], sentiment("no sound", "negative"));
        assert_eq!(
            of("sst-2", &["sentence\tlabel\na fine film\t1\ndull \t0\n"])[1],
            sentiment("dull", "negative")
        );
        let yelp = of("yelp", &["\"2\",\"They said \"\"hi\"\",\nand smiled\"\n"]);
        assert_eq!(yelp, [sentiment("They said \"hi\",\nand smiled", "positive")]);
        let news = of("ag-news", &["\"2\",\"A win\",\"The home team won\"\n"]);
        assert_eq!(news[0]["expect"]["label"], "sports");
        let names: Vec<String> = (0..9).map(|at| format!("how {at},card_{at}")).collect();
        let bank = of("banking77", &[&format!("text,category\n{}\n", names.join("\n"))]);
        assert_eq!((bank.len(), bank[3]["input"]["labels"].as_array().unwrap().len()), (9, 5));
        assert_eq!(bank[3]["expect"]["label"], "card 3");
        assert!(bank[3]["input"]["labels"].as_array().unwrap().contains(&json!("card 3")));
        assert_eq!(
            of("trec", &["HUM:ind Who built it ?\nNUM:date When ?\n"])[1]["expect"]["label"],
            "number"
        );
        let gold = of("wikigold", &["Ada I-PER\nKing I-PER\nleft O\nWien I-LOC\n. O\n\nIt O\nrained O\n"]);
        assert_eq!(gold[0]["expect"]["found.person"], json!({ "$in": ["Ada King"] }));
        assert_eq!(gold[0]["expect"]["found.organisation"], json!({ "$absent": true }));
        assert_eq!(gold[1]["input"]["text"], "It rained");
        let wnut = of("wnut17", &["Ada\tB-person\nBob\tB-person\nAcme\tB-corporation\n"]);
        assert_eq!(wnut[0]["expect"]["found.person"], json!({ "$in": ["Ada", "Bob"] }));
    }

    #[test]
    fn the_choice_depends_on_the_texts_and_not_on_their_order() {
        let cases: Vec<Value> =
            (0..900).map(|at| sentiment(&format!("text number {at}"), "positive")).collect();
        let (one, other) =
            (choose_cases("s", cases.clone()), choose_cases("s", cases.iter().rev().cloned().collect()));
        assert_eq!(one, other);
        assert_eq!(one.len(), MAX_CASES);
        assert_eq!(one.iter().filter(|case| case["half"] == "first").count(), MAX_CASES / 2);
        // A constant: a change of the choice is another measurement.
        assert_eq!(hash("text number 1"), hash("text number 1"));
        assert!(
            choose_cases("s", vec![sentiment("a", "positive"), sentiment(&"x".repeat(2_001), "positive")])
                .is_empty()
        );
    }

    #[test]
    fn an_absent_set_is_reported_and_never_passed() {
        let nowhere = env::temp_dir().join("no-such-folder-of-public-sets");
        let problems = run(&[nowhere.to_str().unwrap()]).unwrap();
        assert_eq!(problems.len(), SETS.len());
        assert!(problems.iter().all(|problem| problem.contains("is absent")), "{problems:?}");
        assert!(run(&["--half", "third", "x"]).is_err());
        assert!(run(&[]).is_err());
    }
}
