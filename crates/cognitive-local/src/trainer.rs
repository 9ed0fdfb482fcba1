//! Where a model learns from labelled cases of a module. Loads the weights, puts the decisions of the contract to them case by
//! case, and hands over what was learned; it writes no file. Refuses a contract in which nothing is decided.

use cognitive_contract::ports::{Example, ProviderError};
use cognitive_contract::trained::{TrainingCase, TrainingProgress, TrainingReport};
use cognitive_llama::FeedError;
use cognitive_schema::ProviderSchema;

use crate::chat::ChatForm;
use crate::decide::{DecisionRequest, Decisions, JudgeProfile, LessonPlan, Training};
use crate::provider::EmbeddedProvider;

/// What a model is to learn from.
pub struct TrainingPlan<'a> {
    /// The contract, as the grammar has it.
    pub contract: &'a ProviderSchema,
    /// The worked examples of the module.
    pub examples: &'a [Example],
    /// The labelled cases.
    pub cases: &'a [TrainingCase],
    /// Hears how it goes on.
    pub progress: &'a (dyn Fn(TrainingProgress) + Sync),
    /// Asked whether to stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl EmbeddedProvider {
    /// Lets the model learn from labelled cases. It takes as long as a run for each of them, and some seconds for each decision.
    pub fn train(&self, plan: &TrainingPlan<'_>) -> Result<TrainingReport, ProviderError> {
        let desk = self.desk();
        let tools = desk.tools().map_err(|error| ProviderError::Unavailable(error.to_string()))?;
        let weights = &tools.weights;
        let grammar = tools.guide.grammar(&plan.contract.schema);
        let grammar = grammar.map_err(|refusal| ProviderError::Unsupported(refusal.to_string()))?;
        if !Decisions::are_wanted(&grammar.schema) {
            let why = "the schema has no `x-decide`: there is no decision that could be trained";
            return Err(ProviderError::Unsupported(why.to_owned()));
        }
        let form = ChatForm::of(weights.chat_template(), weights.vocabulary())?;
        let marks = form.marks(weights.vocabulary())?;
        let request = DecisionRequest {
            schema: &grammar.schema,
            input: "{}",
            examples: plan.examples,
            marks: &marks,
            vocabulary: weights.vocabulary(),
            profile: JudgeProfile::of(weights.parameters()),
            trained: None,
        };
        let begin = |fixed: &[u32]| tools.beginnings.text(fixed, weights);
        let lessons = LessonPlan {
            model: (&desk.model, weights.sha256().unwrap_or_default()),
            cases: plan.cases,
            progress: plan.progress,
            stop: plan.stop,
        };
        Training { request: &request, begin }.run(&lessons).map_err(|error| match error {
            FeedError::Cancelled => ProviderError::Interrupted("training was stopped".to_owned()),
            FeedError::Full => {
                ProviderError::ContextOverflow("a case does not fit into the model".to_owned())
            }
        })
    }
}
