//! Trains decisions on labelled cases of a module. Loads the weights, runs the decisions of the contract on each case,
//! and returns the result; writes no file. Refuses a contract without decisions.

use cognitive_contract::ports::{Example, ProviderError};
use cognitive_contract::trained_model::{TrainingCase, TrainingProgress, TrainingReport};
use cognitive_llama::FeedError;
use cognitive_schema::ProviderSchema;

use crate::chat::ChatForm;
use crate::decide::{DecisionRequest, Decisions, JudgeProfile, LessonPlan, Training};
use crate::provider::EmbeddedProvider;

/// The input of a training.
pub struct TrainingPlan<'a> {
    /// The contract in the form for the grammar.
    pub contract: &'a ProviderSchema,
    /// The worked examples of the module.
    pub examples: &'a [Example],
    /// The labelled cases.
    pub cases: &'a [TrainingCase],
    /// Receives the progress.
    pub progress: &'a (dyn Fn(TrainingProgress) + Sync),
    /// Returns whether to stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl EmbeddedProvider {
    /// Trains on labelled cases. Takes about as long as one run per case, and some seconds per decision.
    pub fn train(&self, plan: &TrainingPlan<'_>) -> Result<TrainingReport, ProviderError> {
        let worker = self.worker();
        let tools = worker.tools().map_err(|error| ProviderError::Unavailable(error.to_string()))?;
        let weights = &tools.weights;
        let grammar = tools.guide.grammar(&plan.contract.schema);
        let grammar = grammar.map_err(|refusal| ProviderError::Unsupported(refusal.to_string()))?;
        if !Decisions::are_requested(&grammar.schema) {
            let why = "the schema has no `x-decide`, so there is no decision to train";
            return Err(ProviderError::Unsupported(why.to_owned()));
        }
        let form = ChatForm::from_template(weights.chat_template(), weights.vocabulary())?;
        let marks = form.marks(weights.vocabulary())?;
        let request = DecisionRequest {
            schema: &grammar.schema,
            input: "{}",
            examples: plan.examples,
            marks: &marks,
            vocabulary: weights.vocabulary(),
            profile: JudgeProfile::for_parameters(weights.parameters()),
            trained: None,
        };
        let begin = |fixed: &[u32]| tools.beginnings.text(fixed, weights);
        let lessons = LessonPlan {
            model: (&worker.model, weights.sha256().unwrap_or_default()),
            cases: plan.cases,
            progress: plan.progress,
            stop: plan.stop,
        };
        Training { request: &request, begin }.run(&lessons).map_err(|error| match error {
            FeedError::Cancelled => ProviderError::Interrupted("training was cancelled".to_owned()),
            FeedError::Full => ProviderError::ContextOverflow("a case is too long for the model".to_owned()),
        })
    }
}
