//! The journal of one run: returns the answers of its parts in the order in which they were recorded. A part
//! that answered in another process waits here for its turn. A part that answers now waits until the server
//! has recorded its answer. Does no I/O: `durable` exchanges steps with the server.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use cognitive_contract::lock::Lock;
use cognitive_contract::ports::{PartAnswer, PartJournal, PartQuestion, PortFuture};

use crate::session_context::SessionContext;
use crate::steps::{KeptEntry, PartStep};

/// The answers of the parts of one run.
#[derive(Default)]
pub(crate) struct RunJournal {
    state: Lock<JournalState>,
    /// The context of the session, if the run belongs to one.
    context: Option<Arc<SessionContext>>,
}

#[derive(Default)]
struct JournalState {
    /// The parts that the server has recorded, in its order.
    recorded: Vec<RecordedPart>,
    /// The parts that answered here and are not recorded yet.
    finished: VecDeque<FinishedPart>,
    /// The part that is being sent to the server.
    leaving: Option<FinishedPart>,
}

struct RecordedPart {
    question: PartQuestion,
    answer: Option<PartAnswer>,
    /// Context that was stored before a process died, until it is stored again.
    context: Vec<KeptEntry>,
    phase: Phase,
    turn: Arc<PartTurn>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No part has asked for it.
    Unasked,
    /// A part waits for it.
    Awaited,
    /// The answer was returned.
    Given,
}

struct FinishedPart {
    question: PartQuestion,
    answer: PartAnswer,
    turn: Arc<PartTurn>,
}

/// Wakes one part when it is its turn.
#[derive(Default)]
struct PartTurn(Lock<(bool, Option<Waker>)>);

impl PartTurn {
    fn wake(&self) {
        let mut state = self.0.lock();
        state.0 = true;
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    }

    async fn wait(&self) {
        poll_fn(|context| {
            let mut state = self.0.lock();
            if state.0 {
                return Poll::Ready(());
            }
            state.1 = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl RunJournal {
    /// Creates the journal of a run, with the context of its session if it has one.
    pub(crate) fn new(context: Option<Arc<SessionContext>>) -> Self {
        Self { state: Lock::default(), context }
    }

    /// Takes the next unrecorded answer as a step.
    pub(crate) fn take_finished(&self) -> Option<PartStep> {
        let mut state = self.state.lock();
        let finished = state.finished.pop_front()?;
        let step = PartStep::new(&finished.question, &finished.answer, self.take_entries());
        state.leaving = Some(finished);
        Some(step)
    }

    /// Takes the context entries that are not part of a step yet.
    pub(crate) fn take_entries(&self) -> Vec<KeptEntry> {
        self.context.as_ref().map(|context| context.take_written()).unwrap_or_default()
    }

    /// Records that the server has this step, of this process or of one that died.
    pub(crate) fn record_step(&self, step: PartStep) {
        let mut state = self.state.lock();
        let part = match state.leaving.take() {
            Some(FinishedPart { question, turn, .. }) => {
                // The part still has its answer, and the store has its context.
                RecordedPart { question, answer: None, context: Vec::new(), phase: Phase::Awaited, turn }
            }
            None => RecordedPart {
                question: step.question(),
                answer: step.answer(),
                context: step.context,
                phase: Phase::Unasked,
                turn: Arc::default(),
            },
        };
        state.recorded.push(part);
    }

    /// Returns the next recorded answer to the part that waits for it; returns whether there was one. An
    /// answer that no part waits for belongs to a nested part whose parent is recorded too.
    pub(crate) fn give_next(&self) -> bool {
        let mut state = self.state.lock();
        let awaited = state.recorded.iter().position(|part| part.phase == Phase::Awaited);
        let passed = awaited.map_or(state.recorded.len(), |place| place + 1);
        for part in state.recorded.iter_mut().take(passed) {
            let kept = std::mem::take(&mut part.context);
            if let Some(context) = &self.context {
                context.restore_entries(&kept);
            }
        }
        let Some(part) = awaited.and_then(|place| state.recorded.get_mut(place)) else { return false };
        part.phase = Phase::Given;
        part.turn.wake();
        true
    }

    /// Claims the recorded answer to a question for the part that asks it.
    fn claim(&self, question: &PartQuestion) -> Option<(Arc<PartTurn>, PartAnswer)> {
        let mut state = self.state.lock();
        let asked = |part: &&mut RecordedPart| part.phase == Phase::Unasked && part.question == *question;
        let part = state.recorded.iter_mut().find(asked)?;
        let answer = part.answer.take()?;
        part.phase = Phase::Awaited;
        Some((Arc::clone(&part.turn), answer))
    }
}

impl PartJournal for RunJournal {
    fn recall<'a>(&'a self, question: &'a PartQuestion) -> PortFuture<'a, Option<PartAnswer>> {
        Box::pin(async move {
            let (turn, answer) = self.claim(question)?;
            turn.wait().await;
            Some(answer)
        })
    }

    fn record<'a>(&'a self, question: &'a PartQuestion, answer: &'a PartAnswer) -> PortFuture<'a, ()> {
        Box::pin(async move {
            let turn = Arc::new(PartTurn::default());
            let finished =
                FinishedPart { question: question.clone(), answer: answer.clone(), turn: Arc::clone(&turn) };
            self.state.lock().finished.push_back(finished);
            turn.wait().await;
        })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use cognitive_contract::Envelope;
    use serde_json::json;

    use super::*;

    fn question(path: &str) -> PartQuestion {
        PartQuestion::new(path.to_owned(), String::new(), String::new())
    }

    fn answer(word: &str) -> PartAnswer {
        let meta = json!({ "confidence": 0.5, "risk": "low", "explain": "e" });
        let value = json!({ "ok": true, "meta": meta, "data": { "rationale": word } });
        PartAnswer::new(Envelope::from_value(value).unwrap(), 1)
    }

    fn said(answer: &PartAnswer) -> String {
        answer.envelope.data().unwrap()["rationale"].as_str().unwrap().to_owned()
    }

    #[test]
    fn an_answer_waits_until_it_is_recorded() {
        let journal = RunJournal::default();
        let (asked, answered) = (question("w/a"), answer("a"));
        let mut recording = pin!(journal.record(&asked, &answered));
        let mut context = Context::from_waker(Waker::noop());
        assert!(recording.as_mut().poll(&mut context).is_pending());
        assert!(!journal.give_next(), "the server does not have it");
        let step = journal.take_finished().unwrap();
        assert!(!journal.give_next() && journal.take_finished().is_none());
        journal.record_step(step);
        assert!(journal.give_next() && recording.as_mut().poll(&mut context).is_ready());
        let again = journal.recall(&asked);
        assert!(matches!(pin!(again).poll(&mut context), Poll::Ready(None)), "it was given already");
    }

    #[test]
    fn answers_of_a_dead_process_come_in_their_order_and_unasked_ones_hold_up_nobody() {
        let journal = RunJournal::default();
        for (path, word) in [("w/inner/x", "x"), ("w/b", "b"), ("w/a", "a"), ("w/a", "a again")] {
            journal.record_step(PartStep::new(&question(path), &answer(word), Vec::new()));
        }
        let (a, b, c) = (question("w/a"), question("w/b"), question("w/c"));
        let mut context = Context::from_waker(Waker::noop());
        let (mut first, mut second) = (pin!(journal.recall(&a)), pin!(journal.recall(&b)));
        assert!(
            first.as_mut().poll(&mut context).is_pending() && second.as_mut().poll(&mut context).is_pending()
        );
        assert!(matches!(pin!(journal.recall(&c)).poll(&mut context), Poll::Ready(None)), "it has to run");
        assert!(journal.give_next());
        assert!(first.as_mut().poll(&mut context).is_pending(), "`b` was recorded first");
        let Poll::Ready(Some(given)) = second.as_mut().poll(&mut context) else { panic!("not given") };
        assert_eq!(said(&given), "b");
        assert!(journal.give_next() && !journal.give_next());
        let Poll::Ready(Some(given)) = first.as_mut().poll(&mut context) else { panic!("not given") };
        assert_eq!(said(&given), "a");
        let mut third = pin!(journal.recall(&a));
        assert!(third.as_mut().poll(&mut context).is_pending());
        assert!(journal.give_next());
        let Poll::Ready(Some(given)) = third.as_mut().poll(&mut context) else { panic!("not given") };
        assert_eq!(said(&given), "a again");
    }
}
