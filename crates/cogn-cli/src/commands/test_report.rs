//! Formats test results for users: a line per case, its differences, and a summary.
//! Prints nothing. Untrusted text is stripped of terminal control characters.

use cognitive_contract::text::escape_controls as plain;
use cognitive_testing::golden::{
    AcceptedExpectation, Coverage, CoverageShare, GoldenReport, GoldenResult, GoldenStatus, ModuleReport,
    ModuleTrouble,
};
use cognitive_testing::{CaseTally, Difference};

use similar::{ChangeTag, TextDiff};

use crate::printer::{BAD, DOUBT, FAINT, GOOD, HEAD, NOTE};

/// The format of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportLook {
    /// Includes times, and the envelope of every failed case.
    pub verbose: bool,
    /// Symbols for a terminal; words where colours and symbols may be lost.
    pub signs: bool,
}

/// Formats the results, line by line.
#[must_use]
pub fn lines(report: &GoldenReport, look: ReportLook) -> Vec<String> {
    Show { look, alone: report.modules.len() == 1, lines: Vec::new() }.report(report)
}

struct Show {
    look: ReportLook,
    /// True if there is only one module: then there is room for hints.
    alone: bool,
    lines: Vec<String>,
}

impl Show {
    fn report(mut self, report: &GoldenReport) -> Vec<String> {
        for module in &report.modules {
            self.module(module);
        }
        self.line(summary(report.tally()));
        self.lines
    }

    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn module(&mut self, module: &ModuleReport) {
        let name = plain(&module.name);
        match &module.trouble {
            None => self.line(format!("{HEAD}{name}{HEAD:#}")),
            Some(ModuleTrouble::NoTests) => {
                self.line(format!("{HEAD}{name}{HEAD:#} {FAINT}no tests{FAINT:#}"));
                if self.alone {
                    let files = "`tests/NAME.input.json` and `tests/NAME.expected.json`";
                    self.hint(&format!("Write {files} in the module's folder"));
                }
            }
            Some(ModuleTrouble::Unusable { message, hint }) => {
                self.line(format!("{HEAD}{name}{HEAD:#} {BAD}cannot be tested{BAD:#}: {}", plain(message)));
                if let Some(hint) = hint {
                    self.hint(hint);
                }
            }
        }
        for case in &module.cases {
            self.case(case);
        }
        if let Some(coverage) = &module.coverage {
            self.coverage(coverage);
        }
    }

    fn case(&mut self, case: &GoldenResult) {
        let (style, sign, word) = match case.status {
            GoldenStatus::Passed => (GOOD, "✓", "ok    "),
            GoldenStatus::Accepted(_) => (DOUBT, "✎", "accept"),
            _ => (BAD, "✗", "FAILED"),
        };
        let sign = if self.look.signs { sign } else { word };
        let recorded = if case.recorded { format!(" {NOTE}recorded{NOTE:#}") } else { String::new() };
        let time = case.elapsed.as_secs_f64() * 1_000.0;
        let time = if self.look.verbose { format!(" {FAINT}{time:.1} ms{FAINT:#}") } else { String::new() };
        self.line(format!("  {style}{sign}{style:#} {}{recorded}{time}", plain(&case.name)));
        match &case.status {
            GoldenStatus::Failed(differences) => self.differences(case, differences),
            GoldenStatus::Broken(why) => self.line(format!("      {}", plain(why))),
            GoldenStatus::NotRecorded => self.line("      no reply is recorded"),
            GoldenStatus::Accepted(new) => self.change(case, new),
            GoldenStatus::Passed => {}
        }
        if !case.unmentioned.is_empty() {
            let codes = case.unmentioned.join(", ");
            self.line(format!(
                "      {DOUBT}warnings{DOUBT:#} that the expectation does not mention: {}",
                plain(&codes)
            ));
        }
        if let Some(why) = &case.not_accepted {
            self.line(format!("      {DOUBT}not accepted{DOUBT:#}: {}", plain(why)));
            if why.starts_with("the run fails") {
                self.hint("`--accept-failures` accepts the failure, too, if it is intended");
            }
        }
        if let Some(hint) = case.hint() {
            self.hint(hint);
        }
        if self.look.verbose && !case.has_passed() {
            self.envelope(case);
        }
    }

    fn differences(&mut self, case: &GoldenResult, differences: &[Difference]) {
        if let Some(error) = case.error() {
            self.line(format!("      {DOUBT}the run failed{DOUBT:#} with {}", plain(&error)));
        }
        for each in differences {
            let rule = if each.rule == "equals" {
                String::new()
            } else {
                format!(" {FAINT}({}){FAINT:#}", each.rule)
            };
            self.line(format!("      {}{rule}", plain(&each.path)));
            self.line(format!("        expected {GOOD}{}{GOOD:#}", plain(&each.expected)));
            self.line(format!("        got      {BAD}{}{BAD:#}", plain(&each.got)));
        }
    }

    /// Adds the changes of an accepted expectation, line by line.
    fn change(&mut self, case: &GoldenResult, new: &AcceptedExpectation) {
        if let Some(error) = case.error() {
            self.line(format!("      {DOUBT}the run failed{DOUBT:#} with {}", plain(&error)));
        }
        self.line(format!("      {NOTE}{}{NOTE:#}", plain(&new.path)));
        for change in TextDiff::from_lines(new.before.as_str(), &new.after).iter_all_changes() {
            let (sign, style) = match change.tag() {
                ChangeTag::Delete => ('-', BAD),
                ChangeTag::Insert => ('+', GOOD),
                ChangeTag::Equal => (' ', FAINT),
            };
            let line = change.value().trim_end_matches(['\n', '\r']);
            self.line(format!("      {style}{sign} {}{style:#}", plain(line)));
        }
    }

    fn envelope(&mut self, case: &GoldenResult) {
        let Some(envelope) = &case.envelope else { return };
        for line in format!("{envelope:#}").lines() {
            self.line(format!("      {FAINT}{}{FAINT:#}", plain(line)));
        }
    }

    fn coverage(&mut self, coverage: &Coverage) {
        let share = |share: &CoverageShare| format!("{}/{}", share.exercised_count(), share.total);
        self.line(format!(
            "  coverage {} %: fields {}, values {}, failure {}",
            coverage.percent(),
            share(&coverage.fields),
            share(&coverage.values),
            if coverage.failure { "yes" } else { "no" },
        ));
        for missing in coverage.missing() {
            self.line(format!("      {FAINT}not exercised:{FAINT:#} {}", plain(&missing)));
        }
    }

    fn hint(&mut self, hint: &str) {
        self.line(format!("      {NOTE}hint{NOTE:#}: {}", plain(hint)));
    }
}

fn summary(tally: CaseTally) -> String {
    let part = |style: anstyle::Style, count: usize, word: &str| {
        let style = if count == 0 { anstyle::Style::new() } else { style };
        format!("{style}{count} {word}{style:#}")
    };
    let parts = [
        part(GOOD, tally.passed, "passed"),
        part(BAD, tally.failed, "failed"),
        part(DOUBT, tally.skipped, "skipped"),
    ];
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cognitive_library::Folder;
    use cognitive_testing::golden::{GoldenOptions, TestedFolder, run_recorded};

    use super::*;

    const SCHEMA: &str =
        r#"{"input": {}, "data": {"properties": {"rationale": {}, "word": {"enum": ["a", "b"]}}}}"#;
    const REPLY: &str = r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},"data":{"rationale":"r","word":"a"}}"#;

    fn subject(files: &[(&str, &str)]) -> TestedFolder {
        let module = [("module.yaml", "name: tiny\n"), ("prompt.md", "p"), ("schema.json", SCHEMA)];
        let files = module.iter().chain(files);
        let files: BTreeMap<String, Vec<u8>> =
            files.map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
        TestedFolder { name: "tiny".to_owned(), folder: Folder::memory("tiny", files) }
    }

    fn shown(subject: TestedFolder, signs: bool) -> String {
        let options = GoldenOptions { coverage: true, ..GoldenOptions::default() };
        let report = run_recorded(&[subject], &options).unwrap();
        let lines = lines(&report, ReportLook { verbose: false, signs });
        anstream::adapter::strip_str(&lines.join("\n")).to_string()
    }

    #[test]
    fn results_read_well_without_colour() {
        let files = [
            ("tests/good.input.json", "{}"),
            ("tests/good.expected.json", r#"{"word": "a"}"#),
            ("tests/good.reply.txt", REPLY),
            ("tests/new.input.json", "{}"),
            ("tests/new.expected.json", r#"{"word": "a"}"#),
            ("tests/wrong.input.json", "{}"),
            ("tests/wrong.expected.json", r#"{"word": "b", "_validate": {"confidence_min": 1}}"#),
            ("tests/wrong.reply.txt", REPLY),
        ];
        let expected = "tiny
  ok     good
      warnings that the expectation does not mention: DEPRECATED
  FAILED new
      no reply is recorded
      hint: `--record` calls the model and stores its reply beside the case
  FAILED wrong
      data.word
        expected \"b\"
        got      \"a\"
      meta.confidence (_validate.confidence_min)
        expected at least 1
        got      0.9
      warnings that the expectation does not mention: DEPRECATED
  coverage 60 %: fields 2/2, values 1/2, failure no
      not exercised: word = \"b\"
      not exercised: a failure
1 passed, 2 failed, 0 skipped";
        assert_eq!(shown(subject(&files), false), expected);
        assert!(shown(subject(&files), true).contains("  ✓ good\n"));
    }

    #[test]
    fn a_module_without_tests_says_what_to_do() {
        let text = shown(subject(&[]), false);
        assert!(text.starts_with("tiny no tests\n      hint: Write `tests/NAME.input.json`"), "{text}");
        assert!(text.ends_with("0 passed, 0 failed, 1 skipped"), "{text}");
    }
}
