//! Stores posts and their answers in two files of lines in the batch folder. A post is recorded on disk
//! before it is sent, and its id before any call waits for it. Incomplete lines do not count.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cognitive_ports::batch_service::PostedReply;
use serde::{Deserialize, Serialize};

/// A state change of a post.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub(super) enum PostLine {
    /// It is about to be sent.
    Leaving { post: u64, name: String, at_ms: u64, ids: Vec<String> },
    /// The service has accepted it under this id.
    Sent { post: u64, id: String },
    /// Its answers are stored.
    Collected { post: u64 },
    /// The service never received it, or rejected it as a whole.
    Void { post: u64 },
}

/// A post without answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenPost {
    pub(super) name: String,
    pub(super) at: SystemTime,
    pub(super) ids: Vec<String>,
    /// The id at the service; unknown if the process died while sending.
    pub(super) id: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ReplyLine {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost: Option<String>,
}

/// The two files, and an index of the answers.
pub(super) struct PostFile {
    posts: File,
    replies: File,
    /// The offset and length of each answer.
    places: HashMap<String, (u64, usize)>,
    end: u64,
    pub(super) next: u64,
}

impl PostFile {
    /// Opens the files of an earlier process and returns the posts without answers.
    pub(super) fn open(folder: &Path) -> io::Result<(Self, HashMap<u64, OpenPost>)> {
        let (mut open, mut next) = (HashMap::new(), 0);
        let posts = lines(&folder.join("posts.jsonl"), |_, line| {
            match serde_json::from_slice(line).ok()? {
                PostLine::Leaving { post, name, at_ms, ids } => {
                    let at = UNIX_EPOCH + Duration::from_millis(at_ms);
                    open.insert(post, OpenPost { name, at, ids, id: None });
                    next = next.max(post + 1);
                }
                PostLine::Sent { post, id } => {
                    if let Some(known) = open.get_mut(&post) {
                        known.id = Some(id);
                    }
                }
                PostLine::Collected { post } | PostLine::Void { post } => drop(open.remove(&post)),
            }
            Some(())
        })?;
        let mut places = HashMap::new();
        let mut replies = lines(&folder.join("replies.jsonl"), |at, line| {
            let reply: ReplyLine = serde_json::from_slice(line).ok()?;
            places.insert(reply.id, (at, line.len()));
            Some(())
        })?;
        let end = replies.stream_position()?;
        Ok((Self { posts, replies, places, end, next }, open))
    }

    /// Appends a line about a post and syncs it to disk.
    pub(super) fn note(&mut self, line: &PostLine) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.posts.write_all(&text)?;
        self.posts.sync_data()
    }

    /// Stores an answer.
    pub(super) fn keep(&mut self, id: &str, reply: PostedReply) -> io::Result<()> {
        let (status, body, lost) = match reply {
            PostedReply::Answer { status, body } => (Some(status), Some(body), None),
            PostedReply::Lost(why) => (None, None, Some(why)),
        };
        let mut text = serde_json::to_vec(&ReplyLine { id: id.to_owned(), status, body, lost })?;
        text.push(b'\n');
        self.replies.seek(SeekFrom::Start(self.end))?;
        self.replies.write_all(&text)?;
        self.places.insert(id.to_owned(), (self.end, text.len()));
        self.end += text.len() as u64;
        Ok(())
    }

    /// Records that all answers of a post are stored, after syncing them to disk.
    pub(super) fn record_collected(&mut self, post: u64) -> io::Result<()> {
        self.replies.sync_data()?;
        self.note(&PostLine::Collected { post })
    }

    /// Returns the answer to a request, if it is stored.
    pub(super) fn reply(&mut self, id: &str) -> Option<PostedReply> {
        let (at, length) = *self.places.get(id)?;
        let mut line = vec![0; length];
        self.replies.seek(SeekFrom::Start(at)).ok()?;
        self.replies.read_exact(&mut line).ok()?;
        let reply: ReplyLine = serde_json::from_slice(&line).ok()?;
        Some(match (reply.status, reply.body) {
            (Some(status), Some(body)) => PostedReply::Answer { status, body },
            _ => PostedReply::Lost(reply.lost.unwrap_or_default()),
        })
    }

    /// Returns whether an answer is stored.
    pub(super) fn has(&self, id: &str) -> bool {
        self.places.contains_key(id)
    }
}

/// Passes each complete line of a file to `each`, with its offset, and truncates the rest.
fn lines(path: &Path, mut each: impl FnMut(u64, &[u8]) -> Option<()>) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let (mut reader, mut at, mut line) = (BufReader::new(&mut file), 0, Vec::new());
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line)?;
        if length == 0 || line.last() != Some(&b'\n') || each(at, &line).is_none() {
            break;
        }
        at += length as u64;
    }
    drop(reader);
    file.set_len(at)?;
    file.seek(SeekFrom::Start(at))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_and_what_came_back_is_known_to_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        let leaving = |post, ids: &[&str]| PostLine::Leaving {
            post,
            name: format!("n{post}"),
            at_ms: 5,
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        };
        {
            let (mut file, open) = PostFile::open(dir.path()).unwrap();
            assert!(open.is_empty());
            for (post, ids) in [(0, ["a", "b"]), (1, ["c", "d"]), (2, ["e", "f"])] {
                file.note(&leaving(post, &ids)).unwrap();
            }
            file.note(&PostLine::Sent { post: 0, id: "x".to_owned() }).unwrap();
            file.note(&PostLine::Sent { post: 1, id: "y".to_owned() }).unwrap();
            file.keep("a", PostedReply::Answer { status: 200, body: "{}".to_owned() }).unwrap();
            file.keep("b", PostedReply::Lost("expired".to_owned())).unwrap();
            file.record_collected(0).unwrap();
        }
        let mut torn = OpenOptions::new().append(true).open(dir.path().join("replies.jsonl")).unwrap();
        torn.write_all(b"{\"id\":\"c\",\"sta").unwrap();
        let (mut file, open) = PostFile::open(dir.path()).unwrap();
        let mut left: Vec<(u64, Option<&str>)> =
            open.iter().map(|(post, open)| (*post, open.id.as_deref())).collect();
        left.sort_unstable();
        assert_eq!((left, file.next), (vec![(1, Some("y")), (2, None)], 3));
        assert_eq!(file.reply("a"), Some(PostedReply::Answer { status: 200, body: "{}".to_owned() }));
        assert_eq!(file.reply("b"), Some(PostedReply::Lost("expired".to_owned())));
        assert_eq!(file.reply("c"), None);
        file.keep("c", PostedReply::Lost("late".to_owned())).unwrap();
        assert_eq!(file.reply("c"), Some(PostedReply::Lost("late".to_owned())));
    }
}
