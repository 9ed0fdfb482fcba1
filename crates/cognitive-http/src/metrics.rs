//! Counters for Prometheus. Label values come from a fixed set, from installed modules, or from a bounded number of
//! models, never from a caller's input.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::lock::Lock;
use cognitive_contract::money::Money;
use cognitive_contract::ports::{DropCounts, Usage};
use cognitive_contract::{Envelope, ErrorCode};

/// Upper bounds of the histogram buckets of a run's duration, in seconds.
const BUCKETS: [f64; 11] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// The number of models with their own label; a service may report any number of names.
const MAX_MODELS: usize = 32;
/// The length limit of a model name, in bytes. The name comes from a service and is repeated in every scrape.
const MAX_MODEL_LENGTH: usize = 100;
/// The label of all further models.
const OTHER_MODELS: &str = "other";

/// All counters.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Lock<Counters>);

#[derive(Debug, Default)]
struct Counters {
    answers: BTreeMap<u16, u64>,
    models: BTreeSet<Arc<str>>,
    modules: BTreeMap<String, Runs>,
}

/// The runs of one module, by the model that answered (empty if no model was called).
#[derive(Debug, Default)]
struct Runs {
    by_outcome: BTreeMap<(Arc<str>, &'static str), u64>,
    tokens: BTreeMap<(Arc<str>, &'static str), u64>,
    cost: BTreeMap<Arc<str>, Money>,
    seconds: Histogram,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

/// The current state of the server.
#[derive(Debug, Default)]
pub(crate) struct ServerGauges {
    pub(crate) runs_in_flight: usize,
    pub(crate) open_streams: usize,
    /// Spans that were lost; `None` if none are recorded.
    pub(crate) lost_spans: Option<u64>,
    /// Records dropped from the audit log or lost; `None` without an audit log.
    pub(crate) dropped: Option<DropCounts>,
}

impl Metrics {
    /// Counts an HTTP response.
    pub(crate) fn count_response(&self, status: u16) {
        *self.0.lock().answers.entry(status).or_default() += 1;
    }

    /// Counts a run of an installed module. `asked` is the model that was called, used if the envelope names none.
    pub(crate) fn count_run(&self, module: &str, envelope: &Envelope, asked: Option<&str>, took: Duration) {
        let outcome = match envelope.error() {
            None => "ok",
            Some(error) => ErrorCode::find(error.code()).map_or("module_code", ErrorCode::number),
        };
        let mut counters = self.0.lock();
        let model = envelope.meta().extra.get("model").and_then(serde_json::Value::as_str);
        let model = counters.model(model.or(asked).unwrap_or_default());
        // Only the first run of a module allocates its name.
        if !counters.modules.contains_key(module) {
            counters.modules.insert(module.to_owned(), Runs::default());
        }
        let Some(runs) = counters.modules.get_mut(module) else { return };
        *runs.by_outcome.entry((Arc::clone(&model), outcome)).or_default() += 1;
        runs.seconds.add(took.as_secs_f64());
        if let Some(Usage { input_tokens, output_tokens, cost, .. }) = envelope.meta().usage() {
            if let Some(cost) = cost {
                let sum = runs.cost.entry(Arc::clone(&model)).or_default();
                *sum = sum.plus(cost);
            }
            // A service may report any count; a counter that wrapped would look like a restart.
            for (kind, tokens) in [("input_tokens", input_tokens), ("output_tokens", output_tokens)] {
                let sum = runs.tokens.entry((Arc::clone(&model), kind)).or_default();
                *sum = sum.saturating_add(tokens);
            }
        }
    }

    /// Returns all counters in the text format of Prometheus.
    pub(crate) fn text(&self, now: &ServerGauges) -> String {
        let counters = self.0.lock();
        let mut page = MetricsPage::default();
        page.family("cogn_http_answers_total", "counter", "HTTP answers by status");
        for (status, count) in &counters.answers {
            page.line(format_args!("{{status=\"{status}\"}}"), count);
        }
        page.family("cogn_runs_in_flight", "gauge", "Runs in flight, streams included");
        page.line("", now.runs_in_flight);
        page.family("cogn_streams_open", "gauge", "Streams in flight");
        page.line("", now.open_streams);
        if let Some(lost) = now.lost_spans {
            page.family("cogn_spans_lost_total", "counter", "Spans that did not reach the collector");
            page.line("", lost);
        }
        if let Some(DropCounts { records, payloads, lost, .. }) = now.dropped {
            page.family("cogn_audit_lost_total", "counter", "Audit records that could not be stored");
            page.line("", lost);
            page.family(
                "cogn_audit_dropped_total",
                "counter",
                "Audit records and payloads dropped by retention",
            );
            page.line("{kind=\"records\"}", records);
            page.line("{kind=\"payloads\"}", payloads);
        }
        page.family("cogn_runs_total", "counter", "Runs by module, model and outcome: ok or an error code");
        for (module, runs) in &counters.modules {
            for ((model, outcome), count) in &runs.by_outcome {
                let labels = format_args!("{{module=\"{module}\",model=\"{model}\",outcome=\"{outcome}\"}}");
                page.line(labels, count);
            }
        }
        page.family(
            "cogn_tokens_total",
            "counter",
            "Tokens by module, model and kind, as reported by the services",
        );
        for (module, runs) in &counters.modules {
            for ((model, kind), count) in &runs.tokens {
                let labels = format_args!("{{module=\"{module}\",model=\"{model}\",kind=\"{kind}\"}}");
                page.line(labels, count);
            }
        }
        page.family(
            "cogn_cost_dollars_total",
            "counter",
            "Cost of runs by module and model, in US dollars, where a price is known",
        );
        for (module, runs) in &counters.modules {
            for (model, cost) in &runs.cost {
                page.line(format_args!("{{module=\"{module}\",model=\"{model}\"}}"), cost);
            }
        }
        page.family("cogn_run_seconds", "histogram", "Duration of runs, by module");
        for (module, runs) in &counters.modules {
            page.histogram(module, &runs.seconds);
        }
        page.text
    }
}

impl Counters {
    /// Returns the label of a model, safe to use in the text format.
    fn model(&mut self, name: &str) -> Arc<str> {
        let name = cognitive_contract::text::cut(name, MAX_MODEL_LENGTH);
        let plain = |letter: char| letter.is_ascii_graphic() && !matches!(letter, '"' | '\\');
        let name: String = name.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect();
        if let Some(known) = self.models.get(name.as_str()) {
            return Arc::clone(known);
        }
        if self.models.len() >= MAX_MODELS {
            return OTHER_MODELS.into();
        }
        let name: Arc<str> = name.into();
        self.models.insert(Arc::clone(&name));
        name
    }
}

/// A page in the text format of Prometheus under construction.
#[derive(Default)]
struct MetricsPage {
    text: String,
    name: &'static str,
}

impl MetricsPage {
    /// Starts a metric family.
    fn family(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes a sample of the family.
    fn line(&mut self, labels: impl Display, value: impl Display) {
        let _ = writeln!(self.text, "{}{labels} {value}", self.name);
    }

    fn histogram(&mut self, module: &str, Histogram { buckets, count, sum }: &Histogram) {
        for (bound, count) in BUCKETS.iter().zip(buckets) {
            self.line(format_args!("_bucket{{module=\"{module}\",le=\"{bound}\"}}"), count);
        }
        self.line(format_args!("_bucket{{module=\"{module}\",le=\"+Inf\"}}"), count);
        self.line(format_args!("_sum{{module=\"{module}\"}}"), sum);
        self.line(format_args!("_count{{module=\"{module}\"}}"), count);
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
    fn token_counters_stop_at_the_end_and_do_not_wrap() {
        let metrics = Metrics::default();
        let mut envelope = Failure::new(ErrorCode::Timeout, "m").into_envelope();
        envelope.meta_mut().set_usage(Usage::new(u64::MAX, 7));
        metrics.count_run("m", &envelope, None, Duration::ZERO);
        metrics.count_run("m", &envelope, None, Duration::ZERO);
        let text = metrics.text(&ServerGauges::default());
        for (kind, count) in [("input_tokens", u64::MAX), ("output_tokens", 14)] {
            let line = format!("cogn_tokens_total{{module=\"m\",model=\"\",kind=\"{kind}\"}} {count}");
            assert!(text.lines().any(|each| each == line), "{line}\n{text}");
        }
    }

    #[test]
    fn runs_are_counted_by_module_and_outcome() {
        let metrics = Metrics::default();
        let envelope = Failure::new(ErrorCode::Timeout, "m").into_envelope();
        metrics.count_run("m", &envelope, None, Duration::from_millis(30));
        metrics.count_run("m", &envelope, None, Duration::from_secs(3));
        metrics.count_response(504);
        let text = metrics.text(&ServerGauges {
            runs_in_flight: 5,
            open_streams: 2,
            lost_spans: Some(3),
            dropped: Some(DropCounts::default()),
        });
        for line in [
            "cogn_http_answers_total{status=\"504\"} 1",
            "# HELP cogn_streams_open Streams in flight",
            "# TYPE cogn_streams_open gauge",
            "cogn_streams_open 2",
            "cogn_runs_in_flight 5",
            "cogn_spans_lost_total 3",
            "cogn_audit_lost_total 0",
            "cogn_audit_dropped_total{kind=\"records\"} 0",
            "cogn_runs_total{module=\"m\",model=\"\",outcome=\"E2002\"} 2",
            "cogn_run_seconds_bucket{module=\"m\",le=\"0.1\"} 1",
            "cogn_run_seconds_bucket{module=\"m\",le=\"+Inf\"} 2",
            "cogn_run_seconds_count{module=\"m\"} 2",
        ] {
            assert!(text.lines().any(|each| each == line), "{line}\n{text}");
        }
    }

    // A service that reports ever new names must not fill the memory, nor break out of a label.
    #[test]
    fn models_are_labels_of_bounded_number_and_plain_letters() {
        let metrics = Metrics::default();
        let mut envelope = Failure::new(ErrorCode::Timeout, "m").into_envelope();
        for number in 0..2 * MAX_MODELS {
            let name = if number == 0 { "a\"b\\c\nd".to_owned() } else { format!("service/model-{number}") };
            envelope.meta_mut().extra.insert("model".to_owned(), name.into());
            metrics.count_run("m", &envelope, None, Duration::ZERO);
        }
        let text = metrics.text(&ServerGauges::default());
        let runs: Vec<&str> = text.lines().filter(|line| line.starts_with("cogn_runs_total")).collect();
        assert_eq!(runs.len(), MAX_MODELS + 1, "{text}");
        assert!(runs.iter().any(|line| line.contains("model=\"a_b_c_d\"")), "{text}");
        let others =
            format!("cogn_runs_total{{module=\"m\",model=\"other\",outcome=\"E2002\"}} {MAX_MODELS}");
        assert!(runs.contains(&others.as_str()), "{text}");
    }
}
