//! Model replies that authors asked to record: for a limited time, in memory, visible to the author only. A case
//! saved from such a run has the exact replies. Bounded; the oldest are evicted first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use cognitive_contract::RecordedReply;
use cognitive_contract::lock::Lock;

/// Runs that are remembered, and bytes of all of them together. Replies are stored for a possible test, which most
/// runs never become.
const MOST: usize = 1_000;
const MOST_BYTES: usize = 32 << 20;

/// Replies of some runs, by module.
#[derive(Debug, Default)]
pub(crate) struct KeptReplies(Lock<VecDeque<RememberedRun>>);

#[derive(Debug)]
struct RememberedRun {
    owner: Arc<str>,
    trace: String,
    replies: BTreeMap<String, RecordedReply>,
    bytes: usize,
}

impl KeptReplies {
    /// Records the replies of a run under its trace id.
    pub(crate) fn keep(&self, owner: &Arc<str>, trace: &str, replies: BTreeMap<String, RecordedReply>) {
        let bytes = replies.iter().map(|(module, reply)| module.len() + reply.text.len()).sum();
        let mut all = self.0.lock();
        all.retain(|run| run.trace != trace || run.owner != *owner);
        all.push_back(RememberedRun { owner: Arc::clone(owner), trace: trace.to_owned(), replies, bytes });
        let mut total: usize = all.iter().map(|run| run.bytes).sum();
        while all.len() > MOST || total > MOST_BYTES {
            total -= all.pop_front().map_or(total, |run| run.bytes);
        }
    }

    /// Returns the replies of a run of this owner, if they are still recorded.
    pub(crate) fn find(&self, owner: &str, trace: &str) -> Option<BTreeMap<String, RecordedReply>> {
        let all = self.0.lock();
        all.iter().find(|run| run.trace == trace && &*run.owner == owner).map(|run| run.replies.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_their_owners_and_the_oldest_go_first() {
        let (kept, ann): (_, Arc<str>) = (KeptReplies::default(), "ann".into());
        let replies = |text: String| BTreeMap::from([("m".to_owned(), RecordedReply::from(text))]);
        kept.keep(&ann, "1", replies("one".to_owned()));
        kept.keep(&ann, "1", replies("again".to_owned()));
        assert_eq!(kept.find("ann", "1"), Some(replies("again".to_owned())));
        assert_eq!((kept.find("ben", "1"), kept.find("ann", "2")), (None, None));
        for number in 0..MOST {
            kept.keep(&ann, &format!("more {number}"), BTreeMap::new());
        }
        assert_eq!(kept.find("ann", "1"), None);
        kept.keep(&ann, "huge", replies("x".repeat(MOST_BYTES)));
        assert_eq!(
            (kept.find("ann", "huge"), kept.find("ann", "more 1")),
            (None, None),
            "more than all may take"
        );
        kept.keep(&ann, "next", replies("n".to_owned()));
        assert!(kept.find("ann", "next").is_some());
    }
}
