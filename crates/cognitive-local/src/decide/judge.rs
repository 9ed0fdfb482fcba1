//! One decision after the other: weighed by sentences, asked as a question, or both, as the model's profile says. Knows
//! no document; what becomes of a decision is not its concern.

use super::Decision;
use super::asking::{Asking, NONE};
use super::calibration::{Curve, JudgeProfile, Shares};
use super::pieces::{self, FoundPieces, PieceFrame};
use super::question::{AskedQuestion, DecisionKind, DecisionQuestion};
use super::scale::Scale;
use cognitive_llama::FeedError;

/// A model that judges.
pub(super) struct DecisionJudge<'a> {
    pub profile: JudgeProfile,
    /// Completes sentences.
    pub weighing: Scale<'a>,
    /// Answers questions.
    pub asked: Scale<'a>,
    pub asking: &'a Asking<'a>,
}

impl DecisionJudge<'_> {
    /// What is decided about one question: usually one value, of an order the members of all items.
    pub(super) fn decide(&mut self, question: &DecisionQuestion<'_>) -> Result<Vec<Decision>, FeedError> {
        let path: Vec<String> = question.path.iter().map(|name| (*name).to_owned()).collect();
        let ask = question.ask.as_ref().filter(|_| self.profile.is_asked);
        if ask.is_none() && (question.ways.is_empty() || !self.weighing.can_weigh()) {
            return Ok(Vec::new());
        }
        match (&question.kind, ask) {
            (DecisionKind::Choice(candidates), _) => Ok(vec![self.choose(path, question, candidates, ask)?]),
            (DecisionKind::Topic { most }, _) => {
                let found = self.look(question, *most, f64::NEG_INFINITY)?;
                let FoundPieces { piece, weight } = found;
                // Nobody asked for one of a list, so there is none that would be right.
                Ok(vec![Decision { path, value: piece, next: None, weight, probability: 1.0 }])
            }
            (DecisionKind::Piece { most, .. }, Some(ask)) => {
                let found = self.ask_for(ask, question.text, *most)?;
                Ok(vec![piece(path, found.piece, found.weight, self.profile.curves.asked_piece)])
            }
            (DecisionKind::Piece { most, .. }, None) => {
                let found = self.look(question, *most, pieces::MIN_SCORE)?;
                Ok(vec![piece(path, found.piece, found.weight, self.profile.curves.piece)])
            }
            (DecisionKind::Order { entries, entry, level, levels }, Some(ask)) => {
                self.order(&path, ask, entries, (entry, level), levels)
            }
            (DecisionKind::Order { .. }, None) => Ok(Vec::new()),
        }
    }

    /// The curve that pieces lie on which a question asks for.
    pub(super) fn piece_curve(&self, question: &DecisionQuestion<'_>) -> Option<Curve> {
        let is_asked = self.profile.is_asked && question.ask.is_some();
        let curves = self.profile.curves;
        let curve = if is_asked { curves.asked_piece } else { curves.piece };
        matches!(question.kind, DecisionKind::Piece { .. }).then_some(curve)
    }

    fn choose(
        &mut self,
        path: Vec<String>,
        question: &DecisionQuestion<'_>,
        candidates: &[String],
        ask: Option<&AskedQuestion<'_>>,
    ) -> Result<Decision, FeedError> {
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
        let mut ranked: Vec<(f64, &String)> = weights.into_iter().zip(candidates).collect();
        // Equals in the order of their letters, so that the order of the list cannot matter.
        ranked.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        let (first, second) = (ranked.first(), ranked.get(1));
        let lead = lead(first, second) / count.max(f64::MIN_POSITIVE);
        Ok(Decision {
            path,
            value: first.map(|(_, value)| (*value).clone()),
            next: second.map(|(_, value)| (*value).clone()),
            weight: lead,
            probability: curve.at(lead),
        })
    }

    /// The likeliest piece as the end of the first sentence.
    fn look(
        &mut self,
        question: &DecisionQuestion<'_>,
        most: usize,
        least: f64,
    ) -> Result<FoundPieces, FeedError> {
        let Some(way) = question.ways.first() else { return Ok(FoundPieces { piece: None, weight: least }) };
        let text = pieces::searched(question.text);
        let before = self.weighing.before(way, text);
        let frame = PieceFrame { before, lead: " ", tail: ".", end: None };
        pieces::likeliest(&mut self.weighing, &frame, text, most, least)
    }

    /// The likeliest piece as the answer, and how far it is ahead of none.
    fn ask_for(
        &mut self,
        ask: &AskedQuestion<'_>,
        text: &str,
        most: usize,
    ) -> Result<FoundPieces, FeedError> {
        let text = pieces::searched(text);
        let (before, end) = self.asking.before(ask.about(text, [].iter()));
        let none = self.asked.answer(&before, NONE, end)?;
        let frame = PieceFrame { before, lead: "", tail: "", end: Some(end) };
        let found = pieces::likeliest(&mut self.asked, &frame, text, most, pieces::MIN_SCORE)?;
        Ok(FoundPieces { weight: found.weight - none, ..found })
    }

    /// Every entry with its level, those of the highest level first. How far the first is ahead of the second says how
    /// sure the order is; levels never rise from one to the next.
    fn order(
        &mut self,
        path: &[String],
        ask: &AskedQuestion<'_>,
        entries: &[String],
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
        let mut made = Vec::new();
        let mut least = 0;
        for (index, (_, text, own)) in ranked.iter().enumerate() {
            least = least.max(*own);
            let at = |name: &str| [path, &[index.to_string(), name.to_owned()]].concat();
            let probability = if index == 0 { self.profile.curves.order.at(lead) } else { 1.0 };
            let next = ranked.get(index + 1).map(|(_, next, _)| (*next).clone());
            let value = Some((*text).clone());
            made.push(Decision { path: at(entry), value, next, weight: lead, probability });
            let value = levels.get(least).cloned();
            made.push(Decision { path: at(level), value, next: None, weight: lead, probability: 1.0 });
        }
        Ok(made)
    }
}

fn lead(first: Option<&(f64, &String)>, second: Option<&(f64, &String)>) -> f64 {
    first.zip(second).map_or(f64::INFINITY, |(first, second)| first.0 - second.0)
}

/// A piece, unless it is likelier that there is none.
pub(super) fn piece(path: Vec<String>, piece: Option<String>, weight: f64, curve: Curve) -> Decision {
    let probability = curve.at(weight);
    let is_there = probability >= 0.5 && piece.is_some();
    let probability = if is_there { probability } else { 1.0 - probability };
    let (value, next) = if is_there { (piece, None) } else { (None, piece) };
    Decision { path, value, next, weight, probability }
}
