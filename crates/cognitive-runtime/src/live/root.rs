//! Where in an envelope the scanner stands: which of its members is being written, and what `ok` says.
//! One place for this, because deltas and fuse have to see the same.

use crate::reply::{Bracket, JsonEvent, Lead};

/// A member of the outermost object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Member {
    Ok,
    Meta,
    Data,
    Error,
    /// A member that an envelope may have besides.
    Beside,
    /// A member that no envelope has, or none yet.
    #[default]
    Other,
}

/// The state of the present object.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Root {
    pub(super) lead: Lead,
    /// Objects and lists that are open, the outermost included.
    pub(super) depth: usize,
    pub(super) member: Member,
    /// What `ok` said last.
    pub(super) ok: Option<bool>,
    /// How many members were named.
    pub(super) members: usize,
}

impl Root {
    /// Takes an event. To be called first: an event is then seen as of the place behind it, a close as of the place
    /// before it.
    pub(super) fn event(&mut self, event: JsonEvent<'_>) {
        match event {
            JsonEvent::Begin(lead) => *self = Self { lead, ..Self::default() },
            JsonEvent::Open(_) => self.depth += 1,
            JsonEvent::Name { name, .. } if self.depth == 1 => {
                self.members += 1;
                self.member = match name {
                    "ok" => Member::Ok,
                    "meta" => Member::Meta,
                    "data" => Member::Data,
                    "error" => Member::Error,
                    "partial_data" | "usage" | "_emitted_context" | "streaming" | "session_id" => {
                        Member::Beside
                    }
                    _ => Member::Other,
                };
            }
            JsonEvent::Bool(flag) if self.depth == 1 && self.member == Member::Ok => self.ok = Some(flag),
            _ => {}
        }
    }

    /// To be called after a close was handled.
    pub(super) fn closed(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Whether this event opens the member's own object.
    pub(super) fn opens(&self, member: Member, event: JsonEvent<'_>) -> bool {
        self.depth == 2 && self.member == member && event == JsonEvent::Open(Bracket::Object)
    }
}
