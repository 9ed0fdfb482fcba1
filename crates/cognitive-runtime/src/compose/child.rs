//! One module on behalf of another: found in the right version, given its input, context and time, run by the one entry,
//! replaced by its fallback if need be. (COMP-011, COMP-012, COMP-080)
//! What a child says is data: it decides neither what is called nor what context the next one gets.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cognitive_contract::compose::VersionRange;
use cognitive_contract::context::{EMITTED, MEMBER, visible_to};
use cognitive_contract::manifest::Tier;
use cognitive_contract::policy::Caller;
use cognitive_contract::ports::{PortFuture, Usage};
use cognitive_contract::trace::{PartState, Trace};
use cognitive_contract::{Envelope, ErrorCode, Failure, Module, Warning};
use serde_json::{Map, Value};

use super::caller_references::CallerReferences;
use super::journal::JournalEntry;
use super::lineage::Lineage;
use super::resolve::NOTICE;
use super::signals::{PartListener, PartSignals};
use crate::host::{Host, ModuleRef, RunInput, RunOptions, RunPlan, RunRequest};
use crate::run::{MODEL_TIME, milliseconds, run_below};
use crate::spans::SpanParent;
use crate::stream::listeners::RunListeners;
use crate::time_limit::sleep;

/// The run that children belong to.
#[derive(Clone, Copy)]
pub(crate) struct ParentRun<'a> {
    pub(crate) host: &'a Host,
    pub(crate) module: &'a Module,
    pub(crate) options: &'a RunOptions,
    /// The models and options that were decided for it.
    pub(crate) plan: &'a RunPlan,
    pub(crate) lineage: &'a Lineage,
    /// The span that those of children belong under.
    pub(crate) span: Option<&'a Arc<SpanParent>>,
    pub(crate) started: Instant,
    pub(crate) deadline: Instant,
    /// Takes the events of children.
    pub(crate) signals: &'a PartSignals,
    /// What the caller of the outermost run sent.
    pub(crate) references: &'a CallerReferences,
}

/// Which module is to run, and how.
#[derive(Clone, Copy)]
pub(crate) struct ChildSpec<'a> {
    pub(crate) name: &'a str,
    pub(crate) range: &'a VersionRange,
    pub(crate) fallback: Option<&'a str>,
    pub(crate) optional: bool,
    pub(crate) time: Option<Duration>,
    pub(crate) tier: Option<Tier>,
}

/// What came of it.
pub(crate) struct ChildOutcome {
    /// The envelope; `None` if there is none and the parent can do without.
    pub(crate) result: Result<Option<Value>, FailedChild>,
    /// Tokens of all tries.
    pub(crate) usage: Option<Usage>,
    pub(crate) warnings: Vec<Warning>,
    /// How long models took for all tries.
    pub(crate) model_time: Option<Duration>,
    /// What each try did.
    pub(crate) traces: Vec<Trace>,
    /// The context that it hands on.
    pub(crate) emitted: Map<String, Value>,
}

/// A module that is needed and has no result.
#[derive(Debug)]
pub(crate) struct FailedChild {
    pub(crate) name: String,
    pub(crate) failure: Failure,
}

impl FailedChild {
    /// Whether the whole run ends with it, also where the parent can do without the part.
    fn is_final(&self) -> bool {
        matches!(self.failure.code(), ErrorCode::CallLimitExceeded | ErrorCode::CostLimitExceeded)
    }
}

/// Runs a module, or what stands in for it. Dropping the future ends its model call.
pub(crate) fn run_child<'a>(
    parent: ParentRun<'a>,
    wanted: ChildSpec<'a>,
    input: RunInput,
    context: Map<String, Value>,
) -> PortFuture<'a, ChildOutcome> {
    Box::pin(async move {
        let (mut done, input) = (ChildOutcome::new(), shareable(input));
        let any = VersionRange::any();
        let choices = [Some((wanted.name, wanted.range)), wanted.fallback.map(|name| (name, &any))];
        let mut failed = None;
        for (name, range) in choices.into_iter().flatten() {
            let found = parent.host.modules.module(name).ok();
            let Some(child) = found.filter(|child| range.matches(&child.manifest.version)) else { continue };
            let visible = visible_to(&child, &context);
            let child = ModuleRef::loaded(name, child);
            let envelope = match parent.request_for(child, wanted, &input, visible) {
                Ok((request, lineage)) => done.listen(parent, wanted.name, request, lineage).await,
                Err(out_of_time) => {
                    failed = Some(out_of_time);
                    break;
                }
            };
            match done.take(wanted.name, envelope) {
                Ok(value) => {
                    if name != wanted.name {
                        done.warn(format!("`{name}` is used instead of `{}`", wanted.name));
                    }
                    done.result = Ok(Some(value));
                    return done;
                }
                // Nobody can stand in: there is no call left for anybody.
                Err(spent) if spent.is_final() => {
                    done.result = Err(spent);
                    return done;
                }
                Err(failure) => failed = Some(failure),
            }
        }
        done.without_result(wanted, failed);
        done
    })
}

impl ParentRun<'_> {
    /// The request for a child, with the smallest time that remains; the error is that none does.
    fn request_for(
        &self,
        child: ModuleRef,
        wanted: ChildSpec<'_>,
        input: &RunInput,
        context: Map<String, Value>,
    ) -> Result<(RunRequest, Lineage), FailedChild> {
        let mut options = self.options.clone();
        let RunPlan { models, mut settings } =
            self.host.decide_part(child.own_name(), self.plan, options.remote);
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        let time = settings.call_timeout().min(remaining).min(wanted.time.unwrap_or(Duration::MAX));
        if time.is_zero() {
            let failure = Failure::new(ErrorCode::Timeout, "there was no time left for it");
            return Err(FailedChild { name: wanted.name.to_owned(), failure });
        }
        (settings.timeout, settings.receipt) = (Some(time), Some(false));
        (options.models, options.settings) = (Some(models), settings);
        options.caller = Caller::Agent;
        options.require_streaming = false;
        options.warnings = Vec::new();
        options.spans = self.span.cloned();
        let mut lineage = self.lineage.child_of(self.module, wanted.tier, self.references);
        lineage.context = context;
        Ok((RunRequest { module: child, input: input.clone(), options }, lineage))
    }
}

/// A provider ends its call in time by itself, and says more about it; this is for everything else that a child does.
const GRACE: Duration = Duration::from_millis(50);

/// Resolves when a child has used up its time, whatever it is doing: asking again, calling tools, running parts of its own.
async fn out_of_time(host: &Host, time: Duration) -> Failure {
    sleep(host, time.saturating_add(GRACE)).await;
    Failure::new(ErrorCode::Timeout, "it exceeded its time limit")
}

/// The input of a child, for all that may have to stand in for it. What a child was told to hand on is not context.
fn shareable(input: RunInput) -> RunInput {
    match input {
        RunInput::Json(mut value) => {
            if let Value::Object(members) = &mut value {
                members.shift_remove(MEMBER);
            }
            RunInput::Shared(Arc::new(value))
        }
        other => other,
    }
}

impl ChildOutcome {
    fn new() -> Self {
        let (warnings, traces) = (Vec::new(), Vec::new());
        Self { result: Ok(None), usage: None, model_time: None, warnings, traces, emitted: Map::new() }
    }

    /// How the child ended, whatever that means for its parent.
    pub(crate) fn state(&self) -> PartState {
        if matches!(self.result, Ok(Some(_))) { PartState::Finished } else { PartState::Failed }
    }

    /// Runs a child and notes what it did.
    async fn listen(
        &mut self,
        parent: ParentRun<'_>,
        wanted: &str,
        mut request: RunRequest,
        mut lineage: Lineage,
    ) -> Envelope {
        let started_ms = milliseconds(parent.started);
        let name = request.module.name().to_owned();
        let entry =
            parent.host.journal.as_deref().map(|journal| JournalEntry::of(journal, &request, &lineage));
        if let Some(entry) = &entry
            && let Some((envelope, mut trace)) = entry.recall(&request.module, &lineage).await
        {
            trace.started_ms = started_ms;
            trace.stands_in_for = (name != wanted).then(|| wanted.to_owned());
            self.traces.push(trace);
            return envelope;
        }
        let calls = entry.as_ref().map(|_| lineage.count_calls());
        let mut listener = PartListener::new(&name, parent.signals);
        let mut listeners = RunListeners::new(&mut listener, None);
        let stop = pin!(out_of_time(parent.host, request.options.settings.call_timeout()));
        let envelope = run_below(parent.host, &mut request, &mut lineage, &mut listeners, stop).await;
        if let Some(mut trace) = listener.into_trace() {
            trace.started_ms = started_ms;
            trace.stands_in_for = (name != wanted).then(|| wanted.to_owned());
            self.traces.push(trace);
        }
        match (entry, calls) {
            (Some(entry), Some(calls)) => entry.record(envelope, calls.made()).await,
            _ => envelope,
        }
    }

    fn warn(&mut self, message: String) {
        self.warnings.push(Warning::new(NOTICE, message));
    }

    /// Takes an envelope apart: what it cost, what it hands on, what it says.
    fn take(&mut self, name: &str, mut envelope: Envelope) -> Result<Value, FailedChild> {
        if let Some(usage) = envelope.meta_mut().take_usage() {
            self.usage = Some(self.usage.unwrap_or_default().plus(usage));
        }
        if let Some(time) = envelope.meta().extra.get(MODEL_TIME).and_then(Value::as_u64) {
            let time = Duration::from_millis(time);
            self.model_time = Some(self.model_time.unwrap_or_default().saturating_add(time));
        }
        if !envelope.ok() {
            let broken = || Failure::new(ErrorCode::InternalError, "the module failed without saying why");
            let failure = envelope.into_result().err().unwrap_or_else(broken);
            return Err(FailedChild { name: name.to_owned(), failure });
        }
        if let Some(Value::Object(emitted)) = envelope.take_beside(EMITTED) {
            self.emitted = emitted;
        }
        Ok(serde_json::to_value(&envelope).unwrap_or_default())
    }

    /// Nothing worked.
    fn without_result(&mut self, wanted: ChildSpec<'_>, failed: Option<FailedChild>) {
        let ChildSpec { name, optional, .. } = wanted;
        let failed = failed.unwrap_or_else(|| {
            let message = "it is not installed, or not in a matching version";
            FailedChild { name: name.to_owned(), failure: Failure::new(ErrorCode::ModuleNotFound, message) }
        });
        if optional {
            let failure = &failed.failure;
            self.warn(format!("`{name}` has no result: {} ({})", failure.message(), failure.number()));
        } else {
            self.result = Err(failed);
        }
    }
}
