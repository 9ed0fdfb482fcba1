//! The stages of a run, in order, and nothing clever. A failure at a stage ends the run with that stage's code.

use cognitive_contract::ports::{Event, EventSink};
use cognitive_contract::{Envelope, Failure, Module, policy};

use crate::host::{Host, RunRequest};
use crate::stages::{call, input, output, parse, prompt, seal};

/// Answers one request with one module.
pub(crate) async fn answer(
    host: &Host,
    module: &Module,
    request: &RunRequest,
    sink: &mut dyn EventSink,
) -> Result<Envelope, Failure> {
    if let Some(refusal) = policy::invocation_refusal(&module.manifest, request.options.caller) {
        return Err(refusal);
    }
    let input = input::validate(module, &request.input, request.options.enforcement)?;
    let prompt = prompt::build(module, &input)?;
    sink.event(Event::Stage("call"));
    let reply = call::ask(host.provider.as_ref(), module, &prompt, sink).await?;
    sink.event(Event::Stage("check"));
    let draft = parse::extract(module, &reply, request.options.strict_parse)?;
    let answer = output::judge(module, draft, request.options.enforcement, host.gate);
    Ok(seal::seal(module, answer, &reply))
}
