//! Where in an envelope the scanner stands: which of its members is being written, and what `ok` says.
//! One place for this, because the stream and the early stop have to see the same.

use super::event::{Bracket, JsonEvent, Lead};

/// A member of the outermost object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EnvelopeMember {
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
pub(crate) struct EnvelopeCursor {
    pub(crate) lead: Lead,
    /// Objects and lists that are open, the outermost included.
    pub(crate) depth: usize,
    pub(crate) member: EnvelopeMember,
    /// What `ok` said last.
    pub(crate) ok: Option<bool>,
    /// How many members were named.
    pub(crate) members: usize,
}

impl EnvelopeCursor {
    /// Takes an event. To be called first: an event is then seen as of the place behind it, a close as of the place
    /// before it.
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

    /// To be called after a close was handled.
    pub(crate) fn closed(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Whether this event opens the member's own object.
    pub(crate) fn opens(&self, member: EnvelopeMember, event: JsonEvent<'_>) -> bool {
        self.depth == 2 && self.member == member && event == JsonEvent::Open(Bracket::Object)
    }
}
