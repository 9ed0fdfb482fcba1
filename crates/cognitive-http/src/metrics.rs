//! Counters for Prometheus. Labels come from a fixed set or from installed modules, never from what a caller made up.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cognitive_contract::ports::{DropCounts, Usage};
use cognitive_contract::{Envelope, ErrorCode};

/// Upper bounds of the buckets of a run's time, in seconds.
const BUCKETS: [f64; 11] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Everything that is counted.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<Counters>);

#[derive(Debug, Default)]
struct Counters {
    answers: BTreeMap<u16, u64>,
    modules: BTreeMap<String, Runs>,
}

/// The runs of one module.
#[derive(Debug, Default)]
struct Runs {
    by_outcome: BTreeMap<&'static str, u64>,
    tokens: BTreeMap<&'static str, u64>,
    seconds: Histogram,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

impl Metrics {
    /// Takes note of an HTTP answer.
    pub(crate) fn answered(&self, status: u16) {
        *self.lock().answers.entry(status).or_default() += 1;
    }

    /// Takes note of a run of an installed module.
    pub(crate) fn ran(&self, module: &str, envelope: &Envelope, took: Duration) {
        let outcome = match envelope.error() {
            None => "ok",
            Some(error) => ErrorCode::find(error.code()).map_or("module_code", ErrorCode::number),
        };
        let mut counters = self.lock();
        // All but the first run of a module find its name here.
        if !counters.modules.contains_key(module) {
            counters.modules.insert(module.to_owned(), Runs::default());
        }
        let Some(runs) = counters.modules.get_mut(module) else { return };
        *runs.by_outcome.entry(outcome).or_default() += 1;
        runs.seconds.add(took.as_secs_f64());
        if let Some(Usage { input_tokens, output_tokens }) = envelope.meta().usage() {
            // A service may count whatever it likes; a counter that went back would look like a new start.
            for (kind, tokens) in [("input_tokens", input_tokens), ("output_tokens", output_tokens)] {
                let sum = runs.tokens.entry(kind).or_default();
                *sum = sum.saturating_add(tokens);
            }
        }
    }

    /// Everything in the text format of Prometheus.
    pub(crate) fn text(
        &self,
        open_streams: usize,
        lost_spans: Option<u64>,
        dropped: Option<DropCounts>,
    ) -> String {
        let counters = self.lock();
        let mut text = String::new();
        let mut line = |parts: std::fmt::Arguments<'_>| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{parts}");
        };
        line(format_args!("# TYPE cogn_http_answers_total counter"));
        for (status, count) in &counters.answers {
            line(format_args!("cogn_http_answers_total{{status=\"{status}\"}} {count}"));
        }
        line(format_args!("# TYPE cogn_streams_open gauge\ncogn_streams_open {open_streams}"));
        if let Some(lost) = lost_spans {
            line(format_args!("# TYPE cogn_spans_lost_total counter\ncogn_spans_lost_total {lost}"));
        }
        if let Some(DropCounts { records, payloads, .. }) = dropped {
            line(format_args!("# TYPE cogn_audit_dropped_total counter"));
            line(format_args!("cogn_audit_dropped_total{{kind=\"records\"}} {records}"));
            line(format_args!("cogn_audit_dropped_total{{kind=\"payloads\"}} {payloads}"));
        }
        let modules = &counters.modules;
        line(format_args!("# TYPE cogn_runs_total counter"));
        for (module, runs) in modules {
            for (outcome, count) in &runs.by_outcome {
                line(format_args!("cogn_runs_total{{module=\"{module}\",outcome=\"{outcome}\"}} {count}"));
            }
        }
        line(format_args!("# TYPE cogn_tokens_total counter"));
        for (module, runs) in modules {
            for (kind, count) in &runs.tokens {
                line(format_args!("cogn_tokens_total{{module=\"{module}\",kind=\"{kind}\"}} {count}"));
            }
        }
        line(format_args!("# TYPE cogn_run_seconds histogram"));
        for (module, Runs { seconds: histogram, .. }) in modules {
            for (bound, count) in BUCKETS.iter().zip(histogram.buckets) {
                line(format_args!("cogn_run_seconds_bucket{{module=\"{module}\",le=\"{bound}\"}} {count}"));
            }
            let Histogram { count, sum, .. } = histogram;
            line(format_args!("cogn_run_seconds_bucket{{module=\"{module}\",le=\"+Inf\"}} {count}"));
            line(format_args!("cogn_run_seconds_sum{{module=\"{module}\"}} {sum}"));
            line(format_args!("cogn_run_seconds_count{{module=\"{module}\"}} {count}"));
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, Counters> {
        // A panic while the lock was held leaves at worst a count that is one off.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Histogram {
    fn add(&mut self, seconds: f64) {
        for (bound, count) in BUCKETS.iter().zip(&mut self.buckets) {
            *count += u64::from(seconds <= *bound);
        }
        self.count += 1;
        self.sum += seconds;
    }
}

#[cfg(test)]
mod tests {
    use cognitive_contract::Failure;

    use super::*;

    #[test]
    fn l_token_counters_stop_at_the_end_and_do_not_wrap() {
        let metrics = Metrics::default();
        let mut envelope = Failure::new(ErrorCode::Timeout, "m").into_envelope();
        envelope.meta_mut().set_usage(Usage { input_tokens: u64::MAX, output_tokens: 7 });
        metrics.ran("m", &envelope, Duration::ZERO);
        metrics.ran("m", &envelope, Duration::ZERO);
        let text = metrics.text(0, None, None);
        for (kind, count) in [("input_tokens", u64::MAX), ("output_tokens", 14)] {
            let line = format!("cogn_tokens_total{{module=\"m\",kind=\"{kind}\"}} {count}");
            assert!(text.lines().any(|each| each == line), "{line}\n{text}");
        }
    }

    #[test]
    fn runs_are_counted_by_module_and_outcome() {
        let metrics = Metrics::default();
        let envelope = Failure::new(ErrorCode::Timeout, "m").into_envelope();
        metrics.ran("m", &envelope, Duration::from_millis(30));
        metrics.ran("m", &envelope, Duration::from_secs(3));
        metrics.answered(504);
        let text = metrics.text(2, Some(3), Some(DropCounts::default()));
        for line in [
            "cogn_http_answers_total{status=\"504\"} 1",
            "cogn_streams_open 2",
            "cogn_spans_lost_total 3",
            "cogn_audit_dropped_total{kind=\"records\"} 0",
            "cogn_runs_total{module=\"m\",outcome=\"E2002\"} 2",
            "cogn_run_seconds_bucket{module=\"m\",le=\"0.1\"} 1",
            "cogn_run_seconds_bucket{module=\"m\",le=\"+Inf\"} 2",
            "cogn_run_seconds_count{module=\"m\"} 2",
        ] {
            assert!(text.lines().any(|each| each == line), "{line}\n{text}");
        }
    }
}
