//! A model that is a function, with the properties that a test sets. It records its calls.

use std::sync::Mutex;

use cognitive_contract::media::{AcceptedForm, Category};
use cognitive_contract::ports::{
    CallSink, DecodeMode, Destination, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
};
use cognitive_schema::SchemaTarget;

use super::lock;

type CallResult = Result<ModelEnd, ProviderError>;
type Answer = dyn for<'a> Fn(&'a ModelCall, &'a mut dyn CallSink) -> PortFuture<'a, CallResult> + Send + Sync;

/// The model. The fields are what [`Provider`] reports about it.
#[expect(missing_docs, reason = "documented at the functions of the port")]
pub struct FakeProvider {
    pub name: &'static str,
    pub capabilities: &'static [&'static str],
    pub lacks: &'static [&'static str],
    pub structured_output: bool,
    pub target: Option<SchemaTarget>,
    pub takes: Option<(Category, AcceptedForm)>,
    pub gives: Option<Category>,
    pub destination: Option<Destination>,
    pub stays_here: bool,
    answer: Box<Answer>,
    calls: Mutex<Vec<ModelCall>>,
}

impl FakeProvider {
    /// A model that answers at once.
    pub fn new(answer: impl Fn(&ModelCall, &mut dyn CallSink) -> CallResult + Send + Sync + 'static) -> Self {
        Self::from_future(move |call, sink| {
            let end = answer(call, sink);
            Box::pin(async { end })
        })
    }

    /// A model whose answer may wait.
    pub fn from_future(
        answer: impl for<'a> Fn(&'a ModelCall, &'a mut dyn CallSink) -> PortFuture<'a, CallResult>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            name: "model",
            capabilities: &["json_mode"],
            lacks: &[],
            structured_output: true,
            target: None,
            takes: None,
            gives: None,
            destination: Some(Destination::default()),
            stays_here: false,
            answer: Box::new(answer),
            calls: Mutex::default(),
        }
    }

    /// A model that always gives this reply, in one piece.
    pub fn with_reply(reply: impl ToString) -> Self {
        let reply = reply.to_string();
        Self::new(move |_, sink| {
            sink.piece(&reply);
            Ok(complete())
        })
    }

    /// The model with other properties.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// All calls so far, the oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<ModelCall> {
        lock(&self.calls).clone()
    }
}

impl Provider for FakeProvider {
    fn name(&self) -> &str {
        self.name
    }

    fn target(&self) -> Option<SchemaTarget> {
        self.target
    }

    fn structured_output(&self) -> bool {
        self.structured_output
    }

    fn capabilities(&self) -> &[&str] {
        self.capabilities
    }

    fn lacks(&self) -> &[&str] {
        self.lacks
    }

    fn takes(&self, category: Category) -> Option<AcceptedForm> {
        self.takes.as_ref().filter(|(taken, _)| *taken == category).map(|(_, form)| form.clone())
    }

    fn gives(&self, category: Category) -> bool {
        self.gives == Some(category)
    }

    fn destination(&self) -> Option<Destination> {
        self.destination.clone()
    }

    fn is_local(&self) -> bool {
        self.stays_here
    }

    fn ask<'a>(&'a self, call: &'a ModelCall, sink: &'a mut dyn CallSink) -> PortFuture<'a, CallResult> {
        lock(&self.calls).push(call.clone());
        (self.answer)(call, sink)
    }
}

/// The end of a complete reply of the model `m`.
#[must_use]
pub fn complete() -> ModelEnd {
    ModelEnd::complete("m", DecodeMode::Prompt)
}
