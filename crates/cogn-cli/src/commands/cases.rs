//! Reads labelled cases from a file and shows progress, for the commands that process them one by one.

use std::path::{Path, PathBuf};

use cognitive_contract::{ErrorCode, Failure};
use cognitive_testing::eval::{self, LabelledCase};

use crate::args::input::read_text;
use crate::output_paths::{NamedPath, refuse_collisions};
use crate::printer::Printer;

/// Options that choose cases.
#[derive(Debug, clap::Args)]
pub(crate) struct CaseArgs {
    /// File with one case per line: `{"id", "input", "expect"}`; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    cases: PathBuf,
    /// Use only the cases of this half, such as `held-out`
    #[arg(long, value_name = "NAME")]
    half: Option<String>,
    /// Use only the first N cases
    #[arg(long, short, value_name = "N")]
    limit: Option<usize>,
}

impl CaseArgs {
    /// Refuses an output that would overwrite the cases.
    pub(crate) fn refuse_as_output(&self, output: Option<&Path>) -> Result<(), Failure> {
        refuse_collisions([NamedPath::read("`--cases`", Some(&self.cases)), NamedPath::write("`-o`", output)])
    }

    /// Reads all cases before anything is done with one of them.
    pub(crate) fn read(&self) -> Result<Vec<LabelledCase>, Failure> {
        let text = read_text(Some(&self.cases))?;
        let mut cases = eval::parse(&text).map_err(|why| {
            let message = format!("cannot use the cases: `{}`: {why}", self.cases.display());
            let form = r#"{"input": {"text": "…"}, "expect": {"sentiment": "positive"}}"#;
            Failure::new(ErrorCode::InvalidInput, message)
                .suggest(format!("Write one case per line: `{form}`"))
        })?;
        if let Some(half) = &self.half {
            cases.retain(|case| case.half.as_deref() == Some(half));
            if cases.is_empty() {
                let message = format!("`{}` has no case of the half: `{half}`", self.cases.display());
                return Err(Failure::new(ErrorCode::InvalidInput, message)
                    .suggest("Remove `--half`, or name a half of the cases"));
            }
        }
        cases.truncate(self.limit.unwrap_or(usize::MAX));
        Ok(cases)
    }
}

/// Returns a bar with counts and times, on a terminal only.
pub(crate) fn case_bar(printer: &Printer, cases: usize) -> indicatif::ProgressBar {
    if !printer.for_people() {
        return indicatif::ProgressBar::hidden();
    }
    let bar = indicatif::ProgressBar::new(cases as u64);
    let form = "{bar:30} {pos}/{len} {elapsed} (left: {eta}) {msg}";
    if let Ok(style) = indicatif::ProgressStyle::with_template(form) {
        bar.set_style(style);
    }
    bar
}
