//! Runs labelled cases concurrently, through the entry point that every surface uses.
//! Loads the module once and runs each case once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use cognitive_contract::ports::NullSink;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{Host, RunOptions, RunRequest};
use tokio::task::JoinSet;

use super::case::LabelledCase;
use super::report::{CaseOutcome, Evaluation};
use super::total_limit;

/// The module, the cases and the options of an evaluation.
pub struct EvaluationPlan {
    /// The module, as the caller named it.
    pub module: String,
    /// The host that all runs share.
    pub host: Host,
    /// The options of each run. `max_cost` is the limit for all runs together.
    pub options: RunOptions,
    /// The cases.
    pub cases: Vec<LabelledCase>,
    /// The number of cases that run at the same time.
    pub concurrency: usize,
}

/// Runs all cases and calls `done` after each. Fails only if the module cannot be used at all.
pub async fn run(
    plan: EvaluationPlan,
    done: impl Fn(&CaseOutcome) + Send + Sync + 'static,
) -> Result<Evaluation, Failure> {
    let started = Instant::now();
    let mut plan = plan;
    if let Some(limit) = plan.options.settings.max_cost {
        total_limit::hold(&mut plan.host, limit);
    }
    let module = plan.host.modules.module(&plan.module)?;
    let concurrency = plan.concurrency.clamp(1, plan.cases.len().max(1));
    let (plan, next, done) = (Arc::new(plan), Arc::new(AtomicUsize::new(0)), Arc::new(done));
    let mut workers = JoinSet::new();
    for _ in 0..concurrency {
        let (plan, next, done) = (Arc::clone(&plan), Arc::clone(&next), Arc::clone(&done));
        workers.spawn(async move {
            let mut outcomes = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = plan.cases.get(index) else { return outcomes };
                let outcome = run_case(&plan, case).await;
                done(&outcome);
                outcomes.push((index, outcome));
            }
        });
    }
    let mut outcomes = Vec::new();
    while let Some(worker) = workers.join_next().await {
        // A run catches its own panics, so a lost worker is a bug in this runner.
        outcomes.extend(worker.map_err(|_| Failure::new(ErrorCode::InternalError, "a worker was lost"))?);
    }
    outcomes.sort_by_key(|(index, _)| *index);
    let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
    let elapsed = started.elapsed().as_secs_f64() * 1_000.0;
    Ok(Evaluation::new(&module.manifest.name, &module.manifest.version, elapsed, outcomes))
}

async fn run_case(plan: &EvaluationPlan, case: &LabelledCase) -> CaseOutcome {
    let request = RunRequest {
        module: plan.module.as_str().into(),
        input: RunInput::Json(case.input.clone()),
        options: plan.options.clone(),
    };
    let envelope = cognitive_runtime::run(&plan.host, request, &mut NullSink).await;
    let envelope = serde_json::to_value(envelope).unwrap_or_default();
    CaseOutcome::new(&case.id, case.expect.judge(&case.input, &envelope), envelope)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use cognitive_contract::ports::{
        CallSink, DecodeMode, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
    };
    use cognitive_library::Library;
    use serde_json::{Value, json};

    use super::*;
    use crate::eval;

    /// Answers "positive", except for texts with `nothing` or `broken`; counts the calls in flight.
    #[derive(Default)]
    struct Optimist {
        open: AtomicUsize,
        most: AtomicUsize,
        seen: Mutex<Vec<usize>>,
    }

    impl Provider for Optimist {
        fn name(&self) -> &'static str {
            "optimist"
        }

        fn ask<'a>(
            &'a self,
            call: &'a ModelCall,
            sink: &'a mut dyn CallSink,
        ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
            Box::pin(async move {
                let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
                self.most.fetch_max(open, Ordering::SeqCst);
                tokio::task::yield_now().await;
                self.open.fetch_sub(1, Ordering::SeqCst);
                self.seen.lock().unwrap().push(call.examples.len());
                let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
                let answer = match &call.input {
                    input if input.contains("nothing") => {
                        json!({ "ok": false, "meta": meta, "error": { "code": "E2007", "message": "m" } })
                    }
                    input if input.contains("broken") => Value::Null,
                    _ => {
                        let data = json!({ "rationale": "r", "sentiment": "positive", "label": "x" });
                        json!({ "ok": true, "meta": meta, "data": data })
                    }
                };
                sink.piece(&answer.to_string());
                Ok(ModelEnd::complete("1", DecodeMode::Prompt))
            })
        }
    }

    fn evaluate(cases: &str, concurrency: usize) -> (Evaluation, Arc<Optimist>) {
        let provider = Arc::new(Optimist::default());
        let host = Host::new(Arc::new(Library::default()), Arc::clone(&provider) as Arc<dyn Provider>);
        let cases = eval::parse(cases).unwrap();
        let plan = EvaluationPlan {
            module: "text-classifier".to_owned(),
            host,
            options: RunOptions::default(),
            cases,
            concurrency,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        (runtime.block_on(run(plan, |_| {})).unwrap(), provider)
    }

    const CASES: &str = r#"
        {"id": "good", "input": {"text": "Lovely"}, "expect": {"sentiment": "positive"}}
        {"id": "bad", "input": {"text": "Awful"}, "expect": {"sentiment": "negative", "label": {"$text": "X"}}}
        {"id": "empty", "input": {"text": "nothing"}, "expect": {"ok": false, "error.code": "E2007"}}
        {"id": "broken", "input": {"text": "broken"}, "expect": {"sentiment": "positive"}}
        {"id": "refused", "input": {"txt": 1}, "expect": {"ok": false, "error.code": "E1001"}}
    "#;

    #[test]
    fn right_valid_and_failed_answers_are_told_apart() {
        let (report, provider) = evaluate(CASES, 1);
        let right: Vec<(&str, bool)> =
            report.cases.iter().map(|case| (case.id.as_str(), case.right)).collect();
        let expected =
            [("good", true), ("bad", false), ("empty", true), ("broken", false), ("refused", true)];
        assert_eq!(right, expected);
        assert_eq!((report.fields["sentiment"].right, report.fields["sentiment"].of), (1, 3));
        assert_eq!((report.valid.right, report.valid.of), (3, 5));
        assert_eq!(provider.most.load(Ordering::SeqCst), 1);
        assert_eq!(provider.seen.lock().unwrap().len(), 4, "an input that does not fit costs no call");
    }

    #[test]
    fn cases_run_side_by_side_and_stay_in_order() {
        let case = |number: i32| json!({ "id": number.to_string(), "input": { "text": "t" }, "expect": { "ok": true } });
        let many: Vec<String> = (0..20).map(|number| case(number).to_string()).collect();
        let (report, provider) = evaluate(&many.join("\n"), 4);
        assert_eq!(provider.most.load(Ordering::SeqCst), 4);
        let order: Vec<usize> = report.cases.iter().map(|case| case.id.parse().unwrap()).collect();
        assert_eq!(order, (0..20).collect::<Vec<_>>());
        assert_eq!(report.models, ["optimist/1"]);
    }
}
