//! Renders the report as `JUnit` XML, which build servers read: one suite per module, one case per golden
//! test.
//! Never writes a character that XML forbids, even if a model sent it.

use std::fmt::Write as _;
use std::time::Duration;

use super::report::{GoldenReport, GoldenResult, GoldenStatus, ModuleReport, ModuleTrouble};

/// Renders the whole document.
#[must_use]
pub fn to_junit(report: &GoldenReport) -> String {
    let sum = |part: fn(&JunitCounts) -> usize| {
        report.modules.iter().map(|module| part(&JunitCounts::from_module(module))).sum::<usize>()
    };
    let counts = JunitCounts {
        tests: sum(|counts| counts.tests),
        failures: sum(|counts| counts.failures),
        errors: sum(|counts| counts.errors),
        skipped: sum(|counts| counts.skipped),
    };
    let elapsed = report.modules.iter().map(ModuleReport::total_time).sum();
    let suites: String = report.modules.iter().map(suite).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"cogn test\"{}>\n{suites}</testsuites>\n",
        counts.attributes(elapsed)
    )
}

/// The counts of a suite. `JUnit` distinguishes a wrong answer (failure) from a case that could not be judged
/// (error).
#[derive(Default)]
struct JunitCounts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

impl JunitCounts {
    fn from_module(module: &ModuleReport) -> Self {
        let count =
            |holds: fn(&GoldenStatus) -> bool| module.cases.iter().filter(|case| holds(&case.status)).count();
        let mut counts = Self {
            tests: module.cases.len(),
            failures: count(|status| matches!(status, GoldenStatus::Failed(_))),
            errors: count(|status| matches!(status, GoldenStatus::Broken(_) | GoldenStatus::NotRecorded)),
            skipped: 0,
        };
        match module.trouble {
            None => {}
            Some(ModuleTrouble::NoTests) => (counts.tests, counts.skipped) = (counts.tests + 1, 1),
            Some(ModuleTrouble::Unusable { .. }) => {
                (counts.tests, counts.errors) = (counts.tests + 1, counts.errors + 1);
            }
        }
        counts
    }

    fn attributes(&self, elapsed: Duration) -> String {
        let Self { tests, failures, errors, skipped } = self;
        let time = elapsed.as_secs_f64();
        format!(
            " tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{time:.3}\""
        )
    }
}

fn suite(module: &ModuleReport) -> String {
    let name = attribute(&module.name);
    let mut xml = format!(
        "  <testsuite name=\"{name}\"{}>\n",
        JunitCounts::from_module(module).attributes(module.total_time())
    );
    let trouble = match &module.trouble {
        None => None,
        Some(ModuleTrouble::NoTests) => Some("<skipped message=\"no tests\"/>".to_owned()),
        Some(ModuleTrouble::Unusable { message, .. }) => Some(element("error", "unusable", message, "")),
    };
    if let Some(trouble) = trouble {
        xml.push_str(&case_element(&name, "(module)", Duration::ZERO, &trouble));
    }
    for case in &module.cases {
        xml.push_str(&case_element(&name, &case.name, case.elapsed, &outcome(case)));
    }
    xml.push_str("  </testsuite>\n");
    xml
}

fn case_element(class: &str, name: &str, elapsed: Duration, outcome: &str) -> String {
    let name = attribute(name);
    let time = elapsed.as_secs_f64();
    let head = format!("    <testcase name=\"{name}\" classname=\"{class}\" time=\"{time:.3}\"");
    if outcome.is_empty() { format!("{head}/>\n") } else { format!("{head}>{outcome}</testcase>\n") }
}

fn outcome(case: &GoldenResult) -> String {
    match &case.status {
        GoldenStatus::Passed | GoldenStatus::Accepted(_) => String::new(),
        GoldenStatus::Failed(differences) => {
            let mut body: Vec<String> =
                case.error().into_iter().map(|error| format!("the run failed with {error}")).collect();
            body.extend(differences.iter().map(|each| {
                format!("{} ({}): expected {}, got {}", each.path, each.rule, each.expected, each.got)
            }));
            let first = differences.first().map(|each| format!("{} is not as expected", each.path));
            element("failure", "difference", &first.unwrap_or_default(), &body.join("\n"))
        }
        GoldenStatus::Broken(why) => element("error", "broken", why, ""),
        GoldenStatus::NotRecorded => {
            element("error", "not_recorded", "no reply is recorded", case.hint().unwrap_or_default())
        }
    }
}

fn element(name: &str, kind: &str, message: &str, body: &str) -> String {
    format!("<{name} type=\"{kind}\" message=\"{}\">{}</{name}>", attribute(message), text(body))
}

/// Escapes text between tags.
fn text(text: &str) -> String {
    escape_xml(text, |each| matches!(each, '\n' | '\t'))
}

/// Escapes text between quotes. A raw line break would be read as a space there, so it is written as a
/// number.
fn attribute(text: &str) -> String {
    escape_xml(text, |_| false)
}

fn escape_xml(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut xml = String::with_capacity(text.len());
    for each in text.chars() {
        let entity = match each {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' => "&quot;",
            '\'' => "&apos;",
            _ => {
                let number = u32::from(each);
                let _never_fails = match each {
                    _ if stays(each) => write!(xml, "{each}"),
                    '\n' | '\t' | '\r' => write!(xml, "&#{number};"),
                    // XML 1.0 forbids these in any form, so they are written as JSON escapes.
                    '\u{fffe}' | '\u{ffff}' => write!(xml, "\\u{number:04x}"),
                    _ if each.is_control() => write!(xml, "\\u{number:04x}"),
                    _ => write!(xml, "{each}"),
                };
                continue;
            }
        };
        xml.push_str(entity);
    }
    xml
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expect::Difference;

    fn case(name: &str, status: GoldenStatus) -> GoldenResult {
        GoldenResult::new(name, status)
    }

    fn module(name: &str, trouble: Option<ModuleTrouble>, cases: Vec<GoldenResult>) -> ModuleReport {
        ModuleReport { name: name.to_owned(), folder: String::new(), trouble, cases, coverage: None }
    }

    #[test]
    fn the_document_counts_and_says_why() {
        let difference = Difference {
            path: "data.a".to_owned(),
            rule: "equals".to_owned(),
            expected: "\"<b>\"".to_owned(),
            got: "nothing".to_owned(),
        };
        let cases = vec![
            case("good", GoldenStatus::Passed),
            case("bad", GoldenStatus::Failed(vec![difference])),
            case("half", GoldenStatus::Broken("no such file: `a`".to_owned())),
            case("new", GoldenStatus::NotRecorded),
        ];
        let report = GoldenReport {
            modules: vec![module("m", None, cases), module("n", Some(ModuleTrouble::NoTests), vec![])],
        };
        let xml = to_junit(&report);
        for part in [
            "<testsuites name=\"cogn test\" tests=\"5\" failures=\"1\" errors=\"2\" skipped=\"1\" time=\"0.000\">",
            "<testsuite name=\"m\" tests=\"4\" failures=\"1\" errors=\"2\" skipped=\"0\" time=\"0.000\">",
            "<testcase name=\"good\" classname=\"m\" time=\"0.000\"/>",
            "message=\"data.a is not as expected\">data.a (equals): expected &quot;&lt;b&gt;&quot;, got nothing</failure>",
            "<error type=\"broken\" message=\"no such file: `a`\"></error>",
            "<testcase name=\"(module)\" classname=\"n\" time=\"0.000\"><skipped message=\"no tests\"/></testcase>",
        ] {
            assert!(xml.contains(part), "{part}\n{xml}");
        }
    }

    #[test]
    fn nothing_that_xml_forbids_is_written() {
        let wild: String =
            (0..=0x9f_u32).chain([0xfffe, 0xffff, 0x1f600]).filter_map(char::from_u32).collect();
        for xml in [text(&wild), attribute(&wild)] {
            let allowed = |each: char| !each.is_control() && !matches!(each, '\u{fffe}' | '\u{ffff}');
            assert!(xml.chars().all(|each| allowed(each) || matches!(each, '\n' | '\t')), "{xml:?}");
            assert!(
                !xml.contains(['<', '>', '"']) && xml.contains("\\u001b") && xml.contains("&#13;"),
                "{xml}"
            );
        }
        assert_eq!(attribute("a\nb\u{0}"), "a&#10;b\\u0000");
        assert_eq!(text("a\nb"), "a\nb");
    }
}
