//! Shows the progress of downloads: a bar with bytes and per cent on a terminal, a few plain lines in a pipe.

use cognitive_contract::lock::Lock;
use cognitive_setup::WeightsDownload;
use cognitive_setup::embedded_model::WeightsFetch;
use cognitive_setup::weights::{PullProgress, megabytes};
use indicatif::{ProgressBar, ProgressStyle};

use crate::printer::Printer;

/// The display.
pub(crate) struct TerminalProgress<'a> {
    printer: &'a Printer,
    /// True if a pipe also gets a line for each source.
    talkative: bool,
    state: Lock<BarState>,
}

#[derive(Default)]
struct BarState {
    bar: Option<ProgressBar>,
    total: Option<u64>,
    quarters: u64,
}

impl<'a> TerminalProgress<'a> {
    /// Creates a bar on a terminal. A pipe gets notes and a line for each quarter, and with `talkative` also the
    /// sources.
    pub(crate) fn new(printer: &'a Printer, talkative: bool) -> Self {
        Self { printer, talkative, state: Lock::default() }
    }

    /// Returns the permission to download, for a command that always needs the weights.
    pub(crate) fn fetch(&self) -> WeightsFetch<'_> {
        WeightsFetch { progress: self, before: &|| Ok(()) }
    }

    /// Returns the permission to download while a runtime is built.
    pub(crate) fn download(&self) -> WeightsDownload<'_> {
        WeightsDownload { progress: self, before: &|_| Ok(()) }
    }

    fn with<T>(&self, change: impl FnOnce(&mut BarState) -> T) -> T {
        change(&mut self.state.lock())
    }
}

impl PullProgress for TerminalProgress<'_> {
    fn note(&self, line: &str) {
        self.with(|state| match &state.bar {
            Some(bar) => bar.suspend(|| self.printer.notice(line)),
            None => self.printer.notice(line),
        });
    }

    fn begin(&self, what: &str, total: Option<u64>) {
        let bar = self.printer.for_people().then(|| bar(what, total));
        if bar.is_none() && self.talkative {
            self.printer.notice(what);
        }
        self.with(|state| *state = BarState { bar, total, quarters: 0 });
    }

    fn at(&self, bytes: u64) {
        self.with(|state| {
            if let Some(bar) = &state.bar {
                bar.set_position(bytes);
                return;
            }
            let quarters =
                state.total.filter(|total| *total > 0).map_or(0, |total| bytes.saturating_mul(4) / total);
            if let Some(total) = state.total.filter(|_| quarters > state.quarters) {
                let percent = bytes.saturating_mul(100) / total;
                self.printer.notice(format!("{percent} %: {} of {}", megabytes(bytes), megabytes(total)));
            }
            state.quarters = quarters;
        });
    }

    fn end(&self) {
        if let Some(bar) = self.with(|state| state.bar.take()) {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &str, total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::new(total),
            "{msg} {wide_bar} {decimal_bytes} of {decimal_total_bytes} ({percent} %), {eta} left",
        ),
        None => (ProgressBar::new_spinner(), "{spinner} {msg} {elapsed}"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar
}
