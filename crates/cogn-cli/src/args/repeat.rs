//! The options of a repetition: `--until`, `--max-iterations` and `--feed`. Everything is compiled with the command
//! line, so that a mistake costs no model call and is shown at its place.

use cognitive_contract::compose::{Condition, MAX_ROUNDS, Mapping, Path, Repeat, Slip};

/// Options of a repetition.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Repetition")]
pub struct RepeatArgs {
    /// Repeat the run until the envelope meets this condition, such as `$.meta.confidence > 0.9`
    #[arg(long, value_name = "CONDITION", value_parser = condition)]
    until: Option<String>,
    /// Maximum number of rounds of `--until`
    #[arg(
        long, value_name = "N", requires = "until", default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ROUNDS))
    )]
    max_iterations: u32,
    /// Fill an input member of the next round from the envelope, such as `code=$.data.simplified_code`
    #[arg(long, value_name = "NAME=PATH", requires = "until", value_parser = feed)]
    feed: Vec<(String, String)>,
}

impl RepeatArgs {
    /// Returns the requested repetition.
    pub(crate) fn repeat(&self) -> Option<Repeat> {
        let repeat = Repeat::parse(self.until.as_deref()?, self.max_iterations).ok()?;
        if self.feed.is_empty() {
            return Some(repeat);
        }
        let members = self.feed.iter().map(|(name, path)| (name.as_str(), path.as_str()));
        Mapping::parse(members).ok().map(|feed| repeat.with_feed(feed))
    }
}

fn condition(text: &str) -> Result<String, String> {
    Condition::parse(text).map(|_| text.to_owned()).map_err(|slip| render_slip(text, &slip))
}

fn feed(text: &str) -> Result<(String, String), String> {
    let (name, path) =
        text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("expected `NAME=PATH`")?;
    let parsed = Path::parse(path).map(|_| (name.to_owned(), path.to_owned()));
    parsed.map_err(|slip| render_slip(path, &slip))
}

/// Renders an error with a mark below its place.
fn render_slip(text: &str, slip: &Slip) -> String {
    let before = text.get(..slip.span.start).unwrap_or(text).chars().count();
    let length = text.get(slip.span.clone()).map_or(1, |part| part.chars().count()).max(1);
    let line = text.replace(['\n', '\r', '\t'], " ");
    format!("{}\n  {line}\n  {}{}", slip.message, " ".repeat(before), "^".repeat(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comp_005_comp_042_a_slip_is_shown_at_its_place() {
        let wrong = condition("$.meta.confidence >> 0.9").unwrap_err();
        let lines: Vec<&str> = wrong.lines().collect();
        assert_eq!(lines.get(1), Some(&"  $.meta.confidence >> 0.9"));
        assert_eq!(lines.get(2).and_then(|line| line.find('^')), Some(2 + 19), "{wrong}");
        assert!(condition("$.meta.confidence > 0.9").is_ok());
        assert!(feed("code=data.code").unwrap_err().contains('^'));
        assert!(feed("=$.x").is_err() && feed("code").is_err());
        assert_eq!(feed("code=$.data.code").unwrap(), ("code".to_owned(), "$.data.code".to_owned()));
    }
}
