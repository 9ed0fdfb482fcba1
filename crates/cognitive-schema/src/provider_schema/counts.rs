//! Limits on the number of an object's members, for narrowing targets. A grammar can express "at least one" and "at
//! most one" of the optional members. For larger numbers, the first optional members are used.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::emit::EnvelopeEmitter;

/// The members of an object while it is being written.
#[derive(Debug, Default)]
pub(super) struct WrittenMembers {
    pub properties: Map<String, Value>,
    pub required: Vec<Value>,
    /// Names that must not occur.
    pub forbidden: Vec<String>,
}

impl WrittenMembers {
    fn optional(&self) -> Vec<String> {
        let required: HashSet<&str> = self.required.iter().filter_map(Value::as_str).collect();
        self.properties.keys().filter(|name| !required.contains(name.as_str())).cloned().collect()
    }
}

/// The remaining limits on the number of members.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemberCounts {
    pub least: Option<u64>,
    pub most: Option<u64>,
}

impl EnvelopeEmitter<'_> {
    /// Adjusts the members to `minProperties` and `maxProperties`, and returns the remaining limits; `None` if they
    /// cannot be met. `has_others` is true if undescribed members are allowed.
    pub(super) fn count_members(
        &mut self,
        node: &Map<String, Value>,
        members: &mut WrittenMembers,
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
        // "At least one" and "at most one" can be expressed if there are no other members.
        let can_be_said = !has_others && needed <= 1 && (room >= count || room == 1);
        if !can_be_said {
            let taken = needed.min(count);
            self.require_first(members, taken, path);
            (needed, room) = (needed - taken, room - taken);
        }
        if needed > 1 {
            // A grammar counts members, not names, so it would count a repeated name twice.
            self.losses.note_dropped(path, "minProperties");
        }
        if has_others || room != 1 {
            self.keep_first(members, room, path);
        }
        let is_bound = has_others || room < members.optional().len() as u64;
        Some(MemberCounts { least: (needed > 0).then_some(least), most: most.filter(|_| is_bound) })
    }

    fn require_first(&mut self, members: &mut WrittenMembers, count: u64, path: &str) {
        let names: Vec<String> = members.optional().into_iter().take(to_usize(count)).collect();
        if !names.is_empty() {
            self.losses.note_tightened(path, "minProperties", format!("with `{}`", names.join("`, `")));
        }
        members.required.extend(names.into_iter().map(Value::String));
    }

    fn keep_first(&mut self, members: &mut WrittenMembers, count: u64, path: &str) {
        let names: Vec<String> = members.optional().into_iter().skip(to_usize(count)).collect();
        if count > 0 && !names.is_empty() {
            self.losses.note_tightened(path, "maxProperties", format!("without `{}`", names.join("`, `")));
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
