//! Runs one module on behalf of another: resolves the version, passes input, context and time, uses the one
//! entry point, and runs its fallback if it fails. (COMP-011, COMP-012, COMP-080)
//! A child's answer is data: it decides neither what is called nor what context the next child gets.

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

/// The run that owns the children.
#[derive(Clone, Copy)]
pub(crate) struct ParentRun<'a> {
    pub(crate) host: &'a Host,
    pub(crate) module: &'a Module,
    pub(crate) options: &'a RunOptions,
    /// The models and options that were decided for it.
    pub(crate) plan: &'a RunPlan,
    pub(crate) lineage: &'a Lineage,
    /// The parent span of the children's spans.
    pub(crate) span: Option<&'a Arc<SpanParent>>,
    pub(crate) started: Instant,
    pub(crate) deadline: Instant,
    /// Receives the events of children.
    pub(crate) signals: &'a PartSignals,
    /// The texts that the caller of the root run sent.
    pub(crate) references: &'a CallerReferences,
}

/// The module to run, and its options.
#[derive(Clone, Copy)]
pub(crate) struct ChildSpec<'a> {
    pub(crate) name: &'a str,
    pub(crate) range: &'a VersionRange,
    pub(crate) fallback: Option<&'a str>,
    pub(crate) optional: bool,
    pub(crate) time: Option<Duration>,
    pub(crate) tier: Option<Tier>,
}

/// The outcome of a child.
pub(crate) struct ChildOutcome {
    /// The envelope; `None` if there is none and the child is optional.
    pub(crate) result: Result<Option<Value>, FailedChild>,
    /// Token usage of all tries.
    pub(crate) usage: Option<Usage>,
    pub(crate) warnings: Vec<Warning>,
    /// The time that models took for all tries.
    pub(crate) model_time: Option<Duration>,
    /// A trace of each try.
    pub(crate) traces: Vec<Trace>,
    /// The context that the child hands on.
    pub(crate) emitted: Map<String, Value>,
}

/// A required module without a result.
#[derive(Debug)]
pub(crate) struct FailedChild {
    pub(crate) name: String,
    pub(crate) failure: Failure,
}

impl FailedChild {
    /// Returns whether this failure ends the whole run, even if the part is optional.
    fn is_final(&self) -> bool {
        matches!(self.failure.code(), ErrorCode::CallLimitExceeded | ErrorCode::CostLimitExceeded)
    }
}

/// Runs a module, or its fallback. Dropping the future cancels its model call.
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
            let child = ModuleRef::from_module(name, child);
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
                        done.warn(format!("`{name}` replaces `{}`", wanted.name));
                    }
                    done.result = Ok(Some(value));
                    return done;
                }
                // A fallback cannot help: the run has no call or money left for any module.
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
    /// Builds the request for a child, with the shortest of the time limits. Fails if no time remains.
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

/// A provider ends its call in time by itself with a better message, so this limit fires a little later. It
/// covers everything else that a child does.
const GRACE: Duration = Duration::from_millis(50);

/// Resolves when a child has used up its time, whether it retries, calls tools or runs its own parts.
async fn out_of_time(host: &Host, time: Duration) -> Failure {
    sleep(host, time.saturating_add(GRACE)).await;
    Failure::new(ErrorCode::Timeout, "it exceeded its time limit")
}

/// The input of a child, shared with its fallback. Context is removed: a mapped input must not carry it.
pub(crate) fn shareable(input: RunInput) -> RunInput {
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

    /// The final state of the child, whether or not its parent needs it.
    pub(crate) fn state(&self) -> PartState {
        if matches!(self.result, Ok(Some(_))) { PartState::Finished } else { PartState::Failed }
    }

    /// Runs a child and records its trace.
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
            parent.host.journal.as_deref().map(|journal| JournalEntry::new(journal, &request, &lineage));
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
            (Some(entry), Some(calls)) => entry.record(envelope, calls.requested_calls()).await,
            _ => envelope,
        }
    }

    fn warn(&mut self, message: String) {
        self.warnings.push(Warning::new(NOTICE, message));
    }

    /// Splits an envelope into usage, handed-on context and answer.
    fn take(&mut self, name: &str, mut envelope: Envelope) -> Result<Value, FailedChild> {
        if let Some(usage) = envelope.meta_mut().take_usage() {
            self.usage = Some(self.usage.unwrap_or_default().plus(usage));
        }
        if let Some(time) = envelope.meta().extra.get(MODEL_TIME).and_then(Value::as_u64) {
            let time = Duration::from_millis(time);
            self.model_time = Some(self.model_time.unwrap_or_default().saturating_add(time));
        }
        if !envelope.ok() {
            let broken = || Failure::new(ErrorCode::InternalError, "the module failed without a reason");
            let failure = envelope.into_result().err().unwrap_or_else(broken);
            return Err(FailedChild { name: name.to_owned(), failure });
        }
        if let Some(Value::Object(emitted)) = envelope.take_extra_member(EMITTED) {
            self.emitted = emitted;
        }
        Ok(serde_json::to_value(&envelope).unwrap_or_default())
    }

    /// Records that neither the module nor its fallback gave a result.
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
