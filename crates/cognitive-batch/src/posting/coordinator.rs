//! Tracks which calls wait for which answers, and which requests are posted next. Sends nothing itself.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cognitive_contract::lock::Lock;
use cognitive_contract::ports::ProviderError;
use cognitive_contract::text::hex;
use cognitive_ports::batch_service::{PostLimits, PostedReply, PostedRequest};
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;

use super::post_file::{OpenPost, PostFile, PostLine};

/// The number of hash characters in a request name.
const NAME_LENGTH: usize = 40;

/// The state that all calls of a batch share.
pub(crate) struct PostCoordinator {
    state: Lock<CoordinatorState>,
}

struct CoordinatorState {
    file: PostFile,
    open: HashMap<u64, OpenPost>,
    /// Requests that were posted and have no answer yet.
    away: HashSet<String>,
    outbox: Vec<PostedRequest>,
    outbox_bytes: usize,
    last_added: Instant,
    waiting: HashMap<String, Vec<oneshot::Sender<()>>>,
    /// The number of calls in flight with the same request.
    equal: HashMap<String, u32>,
    trouble: Option<String>,
}

/// The name of a request, held while its call waits for the answer.
pub(crate) struct PostTicket<'a> {
    coordinator: &'a PostCoordinator,
    base: String,
    id: String,
}

impl Drop for PostTicket<'_> {
    fn drop(&mut self) {
        let mut state = self.coordinator.state.lock();
        if let Some(count) = state.equal.get_mut(&self.base) {
            *count -= 1;
            if *count == 0 {
                state.equal.remove(&self.base);
            }
        }
    }
}

impl PostCoordinator {
    /// Opens the state that an earlier process left in the folder.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let (file, open) = PostFile::open(folder)?;
        let away = open.values().flat_map(|post| post.ids.iter().cloned()).collect();
        let state = CoordinatorState {
            file,
            open,
            away,
            outbox: Vec::new(),
            outbox_bytes: 0,
            last_added: Instant::now(),
            waiting: HashMap::new(),
            equal: HashMap::new(),
            trouble: None,
        };
        Ok(Self { state: Lock::new(state) })
    }

    /// Names a request by its body, the number of equal requests in flight, and the number of earlier posts.
    pub(super) fn ticket(&self, body: &str, reposts: u32) -> PostTicket<'_> {
        let mut base = hex(&Sha256::digest(body.as_bytes()));
        base.truncate(NAME_LENGTH);
        let mut state = self.state.lock();
        let count = state.equal.entry(base.clone()).or_default();
        let id = format!("{base}-{count}-{reposts}");
        *count += 1;
        PostTicket { coordinator: self, base, id }
    }

    /// Waits for the answer to a request, and queues it for posting if it was not posted yet.
    pub(super) async fn reply(
        &self,
        ticket: &PostTicket<'_>,
        body: &str,
    ) -> Result<PostedReply, ProviderError> {
        loop {
            let here = {
                let mut state = self.state.lock();
                if let Some(reply) = state.file.reply(&ticket.id) {
                    return Ok(reply);
                }
                let (told, here) = oneshot::channel();
                let is_new = !state.away.contains(&ticket.id) && !state.waiting.contains_key(&ticket.id);
                state.waiting.entry(ticket.id.clone()).or_default().push(told);
                if is_new {
                    state.outbox_bytes += body.len();
                    state.outbox.push(PostedRequest { id: ticket.id.clone(), body: body.to_owned() });
                    state.last_added = Instant::now();
                }
                here
            };
            // The channel only closes when the batch has ended, and this call with it.
            if here.await.is_err() {
                return Err(ProviderError::Stopped);
            }
        }
    }

    /// Takes the next post: as many requests as fit, once the queue is full or nothing was added for a while.
    pub(super) fn take_post(
        &self,
        limits: PostLimits,
        quiet: std::time::Duration,
    ) -> Option<Vec<PostedRequest>> {
        let mut state = self.state.lock();
        let is_full = state.outbox.len() >= limits.requests || state.outbox_bytes >= limits.bytes;
        if state.outbox.is_empty() || !(is_full || state.last_added.elapsed() >= quiet) {
            return None;
        }
        let mut bytes = 0;
        let fits = |request: &PostedRequest| {
            bytes += request.body.len() + request.id.len() + 64;
            bytes <= limits.bytes
        };
        // A single request above the limit is posted anyway; the service refuses it.
        let count =
            state.outbox.iter().take(limits.requests).map(fits).take_while(|fits| *fits).count().max(1);
        let post: Vec<PostedRequest> = state.outbox.drain(..count).collect();
        state.outbox_bytes = state.outbox.iter().map(|request| request.body.len()).sum();
        Some(post)
    }

    /// Records on disk that a post is about to be sent. Returns its number and name.
    pub(super) fn record_leaving(&self, requests: &[PostedRequest]) -> io::Result<(u64, String)> {
        let mut state = self.state.lock();
        let post = state.file.next;
        state.file.next += 1;
        let at = SystemTime::now();
        let ids: Vec<String> = requests.iter().map(|request| request.id.clone()).collect();
        // Another batch has other requests, and so another name.
        let mut name = hex(&Sha256::digest(ids.join(" ").as_bytes()));
        name.truncate(24);
        let name = format!("cogn-{name}");
        let at_ms =
            at.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
        state.file.note(&PostLine::Leaving { post, name: name.clone(), at_ms, ids: ids.clone() })?;
        state.away.extend(ids.iter().cloned());
        state.open.insert(post, OpenPost { name: name.clone(), at, ids, id: None });
        Ok((post, name))
    }

    /// Records that the service has accepted a post.
    pub(super) fn record_sent(&self, post: u64, id: String) -> io::Result<()> {
        let mut state = self.state.lock();
        state.file.note(&PostLine::Sent { post, id: id.clone() })?;
        if let Some(open) = state.open.get_mut(&post) {
            open.id = Some(id);
        }
        Ok(())
    }

    /// Records that a post was never sent or was rejected as a whole. Its requests are posted again.
    pub(super) fn void(&self, post: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.file.note(&PostLine::Void { post })?;
        let ids = state.open.remove(&post).map(|open| open.ids).unwrap_or_default();
        for id in &ids {
            state.away.remove(id);
        }
        Self::tell(&mut state, &ids);
        Ok(())
    }

    /// Lists the posts without answers.
    pub(super) fn open_posts(&self) -> Vec<(u64, OpenPost)> {
        let state = self.state.lock();
        state.open.iter().map(|(post, open)| (*post, open.clone())).collect()
    }

    /// Stores an answer.
    pub(super) fn keep(&self, id: &str, reply: PostedReply) -> Result<(), String> {
        self.state.lock().file.keep(id, reply).map_err(|error| error.to_string())
    }

    /// Returns whether the collected answers include any of these requests, and so belong to the expected
    /// post.
    pub(super) fn has_any(&self, ids: &[String]) -> bool {
        let state = self.state.lock();
        ids.iter().any(|id| state.file.has(id))
    }

    /// Records that all answers of a post were collected. Requests without an answer are marked as lost.
    pub(super) fn record_collected(&self, post: u64, ids: &[String]) -> io::Result<()> {
        let mut state = self.state.lock();
        for id in ids {
            if !state.file.has(id) {
                state.file.keep(id, PostedReply::Lost("no answer".to_owned()))?;
            }
            state.away.remove(id);
        }
        state.file.record_collected(post)?;
        state.open.remove(&post);
        Self::tell(&mut state, ids);
        Ok(())
    }

    fn tell(state: &mut CoordinatorState, ids: &[String]) {
        for told in ids.iter().filter_map(|id| state.waiting.remove(id)).flatten().collect::<Vec<_>>() {
            let _who_left_needs_no_answer = told.send(());
        }
    }

    /// Returns the error that prevents further posts.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.state.lock().trouble.clone()
    }

    pub(super) fn set_trouble(&self, why: String) {
        self.state.lock().trouble.get_or_insert(why);
    }
}
