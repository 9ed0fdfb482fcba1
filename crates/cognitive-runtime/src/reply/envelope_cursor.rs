//! The position of the scanner in an envelope: the member that is being written, and the value of `ok`. One
//! implementation, because the stream and the early stop must see the same.

use super::event::{Bracket, JsonEvent, Lead};

/// A member of the outermost object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EnvelopeMember {
    Ok,
    Meta,
    Data,
    Error,
    /// An optional member of an envelope.
    Beside,
    /// A member that no envelope has, or none yet.
    #[default]
    Other,
}

/// The state of the current object.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EnvelopeCursor {
    pub(crate) lead: Lead,
    /// The number of open objects and lists, the outermost included.
    pub(crate) depth: usize,
    pub(crate) member: EnvelopeMember,
    /// The last value of `ok`.
    pub(crate) ok: Option<bool>,
    /// The number of members so far.
    pub(crate) members: usize,
}

impl EnvelopeCursor {
    /// Takes an event. Call it first: an event is then seen as of the place after it, a close as of the place before
    /// it.
    pub(crate) fn event(&mut self, event: JsonEvent<'_>) {
        match event {
            JsonEvent::Begin(lead) => *self = Self { lead, ..Self::default() },
            JsonEvent::Open(_) => self.depth += 1,
            JsonEvent::Name { name, .. } if self.depth == 1 => {
                self.members += 1;
                self.member = match name {
                    "ok" => EnvelopeMember::Ok,
                    "meta" => EnvelopeMember::Meta,
                    "data" => EnvelopeMember::Data,
                    "error" => EnvelopeMember::Error,
                    "partial_data" | "usage" | "_emitted_context" | "streaming" | "session_id" => {
                        EnvelopeMember::Beside
                    }
                    _ => EnvelopeMember::Other,
                };
            }
            JsonEvent::Bool(flag) if self.depth == 1 && self.member == EnvelopeMember::Ok => {
                self.ok = Some(flag);
            }
            _ => {}
        }
    }

    /// Must be called after a close was handled.
    pub(crate) fn handle_close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Returns whether this event opens the member's own object.
    pub(crate) fn opens(&self, member: EnvelopeMember, event: JsonEvent<'_>) -> bool {
        self.depth == 2 && self.member == member && event == JsonEvent::Open(Bracket::Object)
    }
}
