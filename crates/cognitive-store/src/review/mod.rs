//! The queue of runs for human review, and the decisions. An entry or a decision is acknowledged only after it is on
//! disk. Open entries are never evicted: a full queue refuses new ones. If there are too many decided entries, the
//! oldest lose input and envelope; decisions stay.

mod curves;
mod decide;
mod enter;
mod read;

use std::sync::Arc;

use cognitive_contract::ports::PortFuture;
use cognitive_ports::review::{
    CalibrationReport, DecidedReview, NewDecision, Review, ReviewEntry, ReviewError, ReviewExport,
    ReviewFilter, ReviewPage, ReviewQueue, export_entry,
};
use serde_json::Value;

use self::curves::CurveCache;
use self::enter::EntryWriter;
use crate::store::Store;

/// The limits of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewLimits {
    /// The most open entries.
    pub open: u64,
    /// The most decided entries with input and envelope.
    pub decided: u64,
    /// The most bytes of inputs and envelopes. Applies to open and to decided entries separately.
    pub bytes: u64,
}

impl Default for ReviewLimits {
    fn default() -> Self {
        Self { open: 10_000, decided: 50_000, bytes: 512 << 20 }
    }
}

/// The review queue of a store.
#[derive(Debug)]
pub struct StoredReviewQueue {
    store: Arc<Store>,
    limits: ReviewLimits,
    /// True if decisions are also recorded in the audit.
    is_audited: bool,
    curves: CurveCache,
    writer: EntryWriter,
}

impl StoredReviewQueue {
    /// Creates the review queue of a store. `is_audited` records decisions in the audit as well.
    #[must_use]
    pub fn new(store: Arc<Store>, limits: ReviewLimits, is_audited: bool) -> Self {
        let writer = EntryWriter::new(Arc::clone(&store), limits);
        Self { store, limits, is_audited, curves: CurveCache::default(), writer }
    }
}

impl ReviewQueue for StoredReviewQueue {
    fn enter<'a>(&'a self, entry: &'a ReviewEntry) -> PortFuture<'a, Result<String, String>> {
        let waiting = self.writer.push(entry);
        Box::pin(async move { waiting?.wait().await })
    }

    fn list(&self, filter: &ReviewFilter) -> Result<ReviewPage, String> {
        read::page(&self.store, filter)
    }

    fn get(&self, id: &str) -> Result<Option<Review>, String> {
        let Ok(id) = id.parse::<i64>() else { return Ok(None) };
        self.store.look(|session| read::find_review(session, id)).map_err(|error| error.to_string())
    }

    fn decide(&self, id: &str, decision: &NewDecision) -> Result<DecidedReview, ReviewError> {
        decision.check()?;
        let id = id.parse::<i64>().map_err(|_| ReviewError::Unknown)?;
        decide::decide(self, id, decision)
    }

    fn calibration(&self, module: Option<&str>) -> Result<CalibrationReport, String> {
        let judged = self.store.look(|session| curves::judged_answers(session, module));
        judged.map(|judged| CalibrationReport::from_answers(&judged)).map_err(|error| error.to_string())
    }

    fn calibrated_confidence(&self, module: &str, model: &str, confidence: f64) -> Option<f64> {
        self.curves.at(&self.store, module, model, confidence)
    }

    fn export(
        &self,
        form: ReviewExport,
        module: Option<&str>,
        take: &mut dyn FnMut(Value) -> bool,
    ) -> Result<(), String> {
        let mut after = 0;
        loop {
            let page = self.store.look(|session| read::decided_page(session, after, module));
            let page = page.map_err(|error| error.to_string())?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = *last;
            for (_, review) in &page {
                if let Some(line) = export_entry(form, review)
                    && !take(line)
                {
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
