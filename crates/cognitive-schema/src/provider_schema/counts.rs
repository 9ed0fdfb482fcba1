//! How many members an object has, for targets that narrow. A grammar can say "at least one" and "at most one" of those
//! that may be absent; of larger numbers it takes the first.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::emit::EnvelopeEmitter;

/// The members of an object while it is being said.
#[derive(Debug, Default)]
pub(super) struct SaidMembers {
    pub properties: Map<String, Value>,
    pub required: Vec<Value>,
    /// Names that may not be there.
    pub forbidden: Vec<String>,
}

impl SaidMembers {
    fn optional(&self) -> Vec<String> {
        let required: HashSet<&str> = self.required.iter().filter_map(Value::as_str).collect();
        self.properties.keys().filter(|name| !required.contains(name.as_str())).cloned().collect()
    }
}

/// The numbers of members that are left to be said beside them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemberCounts {
    pub least: Option<u64>,
    pub most: Option<u64>,
}

impl EnvelopeEmitter<'_> {
    /// Fits the members to `minProperties` and `maxProperties`, and says what is left of these; `None` if they cannot be
    /// met. `has_others` tells whether there may be members that nobody described.
    pub(super) fn count_members(
        &mut self,
        node: &Map<String, Value>,
        members: &mut SaidMembers,
        has_others: bool,
        path: &str,
    ) -> Option<MemberCounts> {
        let number = |keyword: &str| node.get(keyword).and_then(Value::as_u64);
        let (least, most) = (number("minProperties").unwrap_or(0), number("maxProperties"));
        let required = members.required.len() as u64;
        let mut needed = least.saturating_sub(required);
        let mut room = most.map_or(Some(u64::MAX), |most| most.checked_sub(required))?;
        let count = members.optional().len() as u64;
        if room < needed || (needed > count && !has_others) {
            return None;
        }
        // "At least one" and "at most one" can be said, if there are no others.
        let can_be_said = !has_others && needed <= 1 && (room >= count || room == 1);
        if !can_be_said {
            let taken = needed.min(count);
            self.require_first(members, taken, path);
            (needed, room) = (needed - taken, room - taken);
        }
        if needed > 1 {
            // A grammar counts members, not names, and the same name twice is one member.
            self.losses.dropped(path, "minProperties");
        }
        if has_others || room != 1 {
            self.keep_first(members, room, path);
        }
        let is_bound = has_others || room < members.optional().len() as u64;
        Some(MemberCounts { least: (needed > 0).then_some(least), most: most.filter(|_| is_bound) })
    }

    fn require_first(&mut self, members: &mut SaidMembers, count: u64, path: &str) {
        let names: Vec<String> = members.optional().into_iter().take(to_usize(count)).collect();
        if !names.is_empty() {
            self.losses.tightened(path, "minProperties", format!("with `{}`", names.join("`, `")));
        }
        members.required.extend(names.into_iter().map(Value::String));
    }

    fn keep_first(&mut self, members: &mut SaidMembers, count: u64, path: &str) {
        let names: Vec<String> = members.optional().into_iter().skip(to_usize(count)).collect();
        if count > 0 && !names.is_empty() {
            self.losses.tightened(path, "maxProperties", format!("without `{}`", names.join("`, `")));
        }
        if names.is_empty() {
            return;
        }
        let gone: HashSet<&String> = names.iter().collect();
        members.properties.retain(|name, _| !gone.contains(name));
        members.forbidden.extend(names);
    }
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
