//! Makes one decision after the other: by weighing sentences, by asking a question, or both, according to the profile
//! of the model. Knows no document and does not use the decisions.

use super::Decision;
use super::calibration::{self, Curve, JudgeProfile, Shares};
use super::heads;
use super::pieces::{self, FoundPieces, PieceFrame};
use super::question::{AskedQuestion, DecisionKind, DecisionQuestion};
use super::question_prefix::{NONE, QuestionPrefix};
use super::scale::{MAX_BEFORE, Scale, beginning};
use cognitive_contract::trained_model::{TrainedHead, TrainedModel};
use cognitive_llama::FeedError;

/// A model that judges.
pub(super) struct DecisionJudge<'a> {
    pub profile: JudgeProfile,
    /// Completes sentences.
    pub weighing: Scale<'a>,
    /// Answers questions.
    pub asked: Scale<'a>,
    pub asking: &'a QuestionPrefix<'a>,
    /// The trained heads of the model.
    pub trained: Option<&'a TrainedModel>,
}

impl<'a> DecisionJudge<'a> {
    /// Decides one question. The result is usually one value; for an order, it is the members of all items.
    pub(super) fn decide(&mut self, question: &DecisionQuestion<'_>) -> Result<Vec<Decision>, FeedError> {
        let path: Vec<String> = question.path.iter().map(|name| (*name).to_owned()).collect();
        let ask = question.ask.as_ref().filter(|_| self.profile.is_asked);
        let is_learned = self.head(question).is_some_and(|head| head.reads.is_some());
        let can_judge = ask.is_some() || (!question.ways.is_empty() && self.weighing.can_weigh());
        if !is_learned && !can_judge {
            return Ok(Vec::new());
        }
        match (&question.kind, ask) {
            (DecisionKind::Choice(candidates), _) => {
                let judged = match self.learned_weights(question)? {
                    Some((weights, head)) => {
                        Judgement { weights, curve: head.curve.into(), basis: Basis::Trained }
                    }
                    None if can_judge => self.weigh_learned(question, candidates, ask)?,
                    None => return Ok(Vec::new()),
                };
                Ok(vec![choice(path, candidates, judged)])
            }
            (DecisionKind::Topic { most }, _) => {
                let found = self.look(question, *most, f64::NEG_INFINITY)?;
                let FoundPieces { piece, weight } = found;
                // A topic is not chosen from a list, so no choice can be wrong.
                Ok(vec![Decision { path, value: piece, weight, probability: 1.0, ..Decision::default() }])
            }
            (DecisionKind::Piece { .. }, _) => {
                if let Some(decision) = self.recognise(&path, question)? {
                    return Ok(vec![decision]);
                }
                if !can_judge {
                    return Ok(Vec::new());
                }
                let found = self.find(question)?;
                Ok(vec![piece(path, found.piece, found.weight, self.piece_curve(question))])
            }
            (DecisionKind::Order { entries, entry, level, levels }, Some(ask)) => {
                let basis = self.basis(question);
                self.order(&path, ask, (entries, basis), (entry, level), levels)
            }
            (DecisionKind::Order { .. }, None) => Ok(Vec::new()),
        }
    }

    /// Returns the trained head of a question.
    pub(super) fn head(&self, question: &DecisionQuestion<'_>) -> Option<&'a TrainedHead> {
        heads::head(self.trained, question)
    }

    /// Returns the states of the model after each layer, when it has read the question and is about to answer.
    pub(super) fn states(&mut self, question: &DecisionQuestion<'_>) -> Result<Vec<Vec<f32>>, FeedError> {
        let (text, options): (&str, &[String]) = match &question.kind {
            DecisionKind::Choice(candidates) => (beginning(question.text, MAX_BEFORE), candidates),
            _ => (pieces::searched_part(question.text), &[]),
        };
        if let Some(way) = question.ways.first().filter(|_| self.weighing.can_weigh()) {
            let before = self.weighing.tokens_before(way, text);
            return self.weighing.states(&before);
        }
        let Some(ask) = &question.ask else { return Ok(Vec::new()) };
        let (before, _) = self.asking.tokens_before_answer(ask.with_text(text, options.iter()));
        self.asked.states(&before)
    }

    /// Returns the trained weight of each class of a question; `None` without a trained head.
    fn learned_weights(
        &mut self,
        question: &DecisionQuestion<'_>,
    ) -> Result<Option<(Vec<f64>, &'a TrainedHead)>, FeedError> {
        let Some(head) = self.head(question) else { return Ok(None) };
        let Some(reads) = &head.reads else { return Ok(None) };
        let states = self.states(question)?;
        Ok(heads::read(reads, &states).map(|weights| (weights, head)))
    }

    /// Decides with a trained head whether the text contains something of the kind, and if so, finds it. A piece is
    /// searched only then.
    fn recognise(
        &mut self,
        path: &[String],
        question: &DecisionQuestion<'_>,
    ) -> Result<Option<Decision>, FeedError> {
        let Some((weights, head)) = self.learned_weights(question)? else { return Ok(None) };
        let Some(piece_curve) = head.piece_curve else { return Ok(None) };
        let path = path.to_vec();
        let is_there = weights.first().copied().unwrap_or_default();
        let sure = Curve::from(head.curve).at(is_there.abs());
        if is_there <= 0.0 {
            let (weight, probability) = (pieces::MIN_SCORE, sure);
            return Ok(Some(Decision { path, weight, probability, is_learned: true, ..Decision::default() }));
        }
        let FoundPieces { piece, weight } = self.find(question)?;
        let probability = match &piece {
            Some(_) => sure * Curve::from(piece_curve).at(weight),
            None => 1.0 - sure,
        };
        let nothing = Some(1.0 - sure);
        Ok(Some(Decision { path, value: piece, next: None, weight, probability, nothing, is_learned: true }))
    }

    /// Returns the likeliest piece of the text that a question asks for.
    pub(super) fn find(&mut self, question: &DecisionQuestion<'_>) -> Result<FoundPieces, FeedError> {
        let DecisionKind::Piece { most, .. } = question.kind else {
            return Ok(FoundPieces { piece: None, weight: pieces::MIN_SCORE });
        };
        match question.ask.as_ref().filter(|_| self.profile.is_asked) {
            Some(ask) => self.ask_for(ask, question.text, most),
            None => self.look(question, most, pieces::MIN_SCORE),
        }
    }

    /// Returns the curve for pieces of this question.
    fn piece_curve(&self, question: &DecisionQuestion<'_>) -> Curve {
        let is_asked = self.profile.is_asked && question.ask.is_some();
        let curves = self.profile.curves;
        if is_asked { curves.asked_piece } else { curves.piece }
    }

    /// Returns the probability that nothing of the kind exists, given that another question keeps the piece that was
    /// found.
    pub(super) fn probability_without_piece(
        &self,
        question: &DecisionQuestion<'_>,
        decision: &Decision,
    ) -> f64 {
        let untaught = || piece(Vec::new(), None, pieces::MIN_SCORE, self.piece_curve(question)).probability;
        decision.nothing.unwrap_or_else(untaught)
    }

    /// Returns the weight of each candidate, and the curve for leads: the trained one, if it was trained for such
    /// weights. A curve that was trained for states does not apply to them.
    fn weigh_learned(
        &mut self,
        question: &DecisionQuestion<'_>,
        candidates: &[String],
        ask: Option<&AskedQuestion<'_>>,
    ) -> Result<Judgement, FeedError> {
        let (weights, usual) = self.weigh_candidates(question, candidates, ask)?;
        let (curve, basis) = match self.head(question).filter(|head| head.reads.is_none()) {
            Some(head) => (head.curve.into(), Basis::Trained),
            None => (usual, self.basis(question)),
        };
        Ok(Judgement { weights, curve, basis })
    }

    /// Returns the basis of an untrained decision.
    fn basis(&self, question: &DecisionQuestion<'_>) -> Basis {
        let is_fitted = self.profile.is_fitted && calibration::is_fitted_to(question.fingerprint());
        if is_fitted { Basis::Fitted } else { Basis::Odds }
    }

    /// Returns whether the accuracy of these decisions was measured, for this model and this question.
    pub(super) fn is_measured(&self, question: &DecisionQuestion<'_>, decided: &[Decision]) -> bool {
        decided.iter().all(|decision| decision.is_learned) || self.basis(question) == Basis::Fitted
    }

    /// Returns the weight of each candidate, per way of judging, and the curve for leads of such weights.
    fn weigh_candidates(
        &mut self,
        question: &DecisionQuestion<'_>,
        candidates: &[String],
        ask: Option<&AskedQuestion<'_>>,
    ) -> Result<(Vec<f64>, Curve), FeedError> {
        let can_weigh = !question.ways.is_empty() && self.weighing.can_weigh();
        let (curves, only_asked) = (self.profile.curves, Shares { asked: 1.0, weighed: 0.0 });
        let (shares, curve) = match ask {
            None => (Shares { asked: 0.0, weighed: 1.0 }, curves.weighed),
            Some(ask) if ask.lists_options() => (self.profile.listed, curves.listed),
            Some(_) => (self.profile.fixed, curves.fixed),
        };
        let shares = if can_weigh { shares } else { only_asked };
        let mut weights = vec![0.0; candidates.len()];
        let mut count = 0.0;
        if let Some(ask) = ask.filter(|_| shares.asked > 0.0) {
            let asked = self.asking.weigh(&mut self.asked, ask, question.text, candidates)?;
            weights.iter_mut().zip(asked).for_each(|(sum, weight)| *sum += shares.asked * weight);
            count += shares.asked;
        }
        if shares.weighed > 0.0 {
            let weighed = self.weighing.weigh(&question.ways, question.text, candidates)?;
            weights.iter_mut().zip(weighed).for_each(|(sum, weight)| *sum += shares.weighed * weight);
            count += shares.weighed * u32::try_from(question.ways.len()).map_or(1.0, f64::from);
        }
        let per_way = weights.into_iter().map(|weight| weight / count.max(f64::MIN_POSITIVE)).collect();
        Ok((per_way, curve))
    }

    /// Returns the likeliest piece as the end of the first sentence.
    fn look(
        &mut self,
        question: &DecisionQuestion<'_>,
        most: usize,
        least: f64,
    ) -> Result<FoundPieces, FeedError> {
        let Some(way) = question.ways.first() else { return Ok(FoundPieces { piece: None, weight: least }) };
        let text = pieces::searched_part(question.text);
        let before = self.weighing.tokens_before(way, text);
        let is_topic = matches!(question.kind, DecisionKind::Topic { .. });
        let serves = if is_topic { pieces::names_a_topic } else { |_: &str| true };
        let frame = PieceFrame { before, lead: " ", tail: ".", end: None, serves };
        pieces::likeliest(&mut self.weighing, &frame, text, most, least)
    }

    /// Returns the likeliest piece as the answer, and its lead over none.
    fn ask_for(
        &mut self,
        ask: &AskedQuestion<'_>,
        text: &str,
        most: usize,
    ) -> Result<FoundPieces, FeedError> {
        let text = pieces::searched_part(text);
        let (before, end) = self.asking.tokens_before_answer(ask.with_text(text, [].iter()));
        let none = self.asked.answer(&before, NONE, end)?;
        let frame = PieceFrame { before, lead: "", tail: "", end: Some(end), serves: |_| true };
        let found = pieces::likeliest(&mut self.asked, &frame, text, most, pieces::MIN_SCORE)?;
        Ok(FoundPieces { weight: found.weight - none, ..found })
    }

    /// Returns every entry with its level, the highest level first. The lead of the first entry over the second
    /// determines the probability of the order. Levels never rise from one entry to the next.
    fn order(
        &mut self,
        path: &[String],
        ask: &AskedQuestion<'_>,
        (entries, basis): (&[String], Basis),
        (entry, level): (&str, &str),
        levels: &[String],
    ) -> Result<Vec<Decision>, FeedError> {
        let mut ranked: Vec<(f64, &String, usize)> = Vec::new();
        for text in entries {
            let weights = self.asking.weigh(&mut self.asked, ask, text, levels)?;
            let high = weights.first().copied().unwrap_or_default();
            let low = weights.last().copied().unwrap_or_default();
            let likeliest = weights.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1));
            ranked.push((high - low, text, likeliest.map_or(0, |(index, _)| index)));
        }
        ranked.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        let lead = ranked.first().zip(ranked.get(1)).map_or(f64::INFINITY, |(one, two)| one.0 - two.0);
        let weights = ranked.iter().map(|(weight, ..)| *weight).collect();
        let first = Judgement { weights, curve: self.profile.curves.order, basis }.probability(lead);
        let mut made = Vec::new();
        let mut least = 0;
        for (index, (_, text, own)) in ranked.iter().enumerate() {
            least = least.max(*own);
            let at = |name: &str| [path, &[index.to_string(), name.to_owned()]].concat();
            let probability = if index == 0 { first } else { 1.0 };
            let next = ranked.get(index + 1).map(|(_, next, _)| (*next).clone());
            let value = Some((*text).clone());
            let weight = lead;
            made.push(Decision { path: at(entry), value, next, weight, probability, ..Decision::default() });
            let value = levels.get(least).cloned();
            made.push(Decision { path: at(level), value, weight, probability: 1.0, ..Decision::default() });
        }
        Ok(made)
    }
}

/// The basis of the probability of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Basis {
    /// A head that was trained for this question.
    Trained,
    /// A curve that was fitted to this question and this model.
    Fitted,
    /// The weights alone: how often such decisions are right was never measured.
    Odds,
}

/// The weights of candidates, and the meaning of a lead among them.
struct Judgement {
    weights: Vec<f64>,
    curve: Curve,
    basis: Basis,
}

impl Judgement {
    /// Returns the probability that the first candidate is right. An untrained tie of k candidates is worth at most 1/k.
    fn probability(&self, lead: f64) -> f64 {
        match self.basis {
            Basis::Trained => self.curve.at(lead),
            Basis::Fitted => self.curve.at(lead).min(calibration::highest_claim(&self.weights, self.curve)),
            Basis::Odds => calibration::odds(&self.weights, self.curve.slope),
        }
    }
}

/// Returns the candidate with the most weight.
fn choice(path: Vec<String>, candidates: &[String], judged: Judgement) -> Decision {
    let mut ranked: Vec<(f64, &String)> = judged.weights.iter().copied().zip(candidates).collect();
    // Ties are in alphabetical order, so the order of the list has no influence.
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
    let (first, second) = (ranked.first(), ranked.get(1));
    let lead = lead(first, second);
    Decision {
        path,
        value: first.map(|(_, value)| (*value).clone()),
        next: second.map(|(_, value)| (*value).clone()),
        weight: lead,
        probability: judged.probability(lead),
        nothing: None,
        is_learned: judged.basis == Basis::Trained,
    }
}

fn lead(first: Option<&(f64, &String)>, second: Option<&(f64, &String)>) -> f64 {
    first.zip(second).map_or(f64::INFINITY, |(first, second)| first.0 - second.0)
}

/// Returns the piece, unless it is more likely that none exists.
pub(super) fn piece(path: Vec<String>, piece: Option<String>, weight: f64, curve: Curve) -> Decision {
    let probability = curve.at(weight);
    let is_there = probability >= 0.5 && piece.is_some();
    let probability = if is_there { probability } else { 1.0 - probability };
    let (value, next) = if is_there { (piece, None) } else { (None, piece) };
    Decision { path, value, next, weight, probability, ..Decision::default() }
}
