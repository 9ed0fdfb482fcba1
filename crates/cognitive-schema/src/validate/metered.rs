//! A JSON value as the validator sees it: read through a meter, and never copied.
//!
//! The validator knows no limits of its own. It explains every failing branch with a copy of the value, and a schema
//! can make it go through the same value again and again. So it gets to see values through [`Metered`], where every
//! look costs something. When the meter has run out, all that is left looks like `null`, and the validator soon
//! ends; whoever asked sees that the meter stands still and does not believe what came after.

use std::borrow::Cow;
use std::cell::Cell;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, unique};
use serde_json::{Map, Number, Value, map};

use super::limits::MAX_DEPTH;

/// Stands in for values in findings: nobody reads them there. `false` in place of `null` marks what is not to be
/// believed.
static UNSEEN: Value = Value::Null;
static DOUBTFUL: Value = Value::Bool(false);

/// The representation of JSON that meters.
#[derive(Debug)]
pub(super) struct Metered;

/// What made a meter stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MeterStop {
    /// The work was too much.
    Work,
    /// There were too many findings.
    Findings,
    /// The value nests too deeply.
    Depth,
}

/// What a check may cost, and what it has cost.
#[derive(Debug)]
pub(super) struct Meter {
    looks: Cell<u64>,
    findings: Cell<u64>,
    /// What one character of a text costs that a pattern may be matched against, in eighths of a look.
    character: u64,
    stop: Cell<Option<MeterStop>>,
}

impl Meter {
    pub(super) fn new(looks: u64, findings: u64, character: u64) -> Self {
        Self { looks: Cell::new(looks), findings: Cell::new(findings), character, stop: Cell::new(None) }
    }

    /// What made the meter stop, if it has.
    pub(super) fn stop(&self) -> Option<MeterStop> {
        self.stop.get()
    }

    #[inline]
    fn has_stopped(&self) -> bool {
        self.looks.get() == 0
    }

    #[inline]
    fn pay(&self, looks: u64) {
        let left = self.looks.get().saturating_sub(looks);
        self.looks.set(left);
        if left == 0 {
            self.halt(MeterStop::Work);
        }
    }

    #[cold]
    fn halt(&self, stop: MeterStop) {
        self.looks.set(0);
        if self.stop.get().is_none() {
            self.stop.set(Some(stop));
        }
    }

    fn find(&self) {
        match self.findings.get().checked_sub(1) {
            Some(left) => self.findings.set(left),
            None => self.halt(MeterStop::Findings),
        }
    }
}

/// A value under a meter. The outermost is a list that holds the value to be judged and nothing else: the validator
/// asks for a copy of the outermost value in one case, and only a list that no rule speaks of is sure not to be copied
/// in any other.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeteredValue<'a> {
    value: &'a Value,
    /// A member name has no meter: it was paid for with its member.
    meter: Option<&'a Meter>,
    /// Zero for the outermost list.
    depth: usize,
}

/// The list that holds the value to be judged.
pub(super) fn outermost<'a>(value: &'a Value, meter: &'a Meter) -> MeteredValue<'a> {
    MeteredValue { value, meter: Some(meter), depth: 0 }
}

/// What a path to a finding begins with, because of the outermost list.
pub(super) const OUTERMOST: &str = "/0";

/// Whether a finding was made before the meter stopped.
pub(super) fn is_certain(error: &jsonschema::ValidationError<'_>) -> bool {
    **error.instance() != DOUBTFUL
}

impl<'a> MeteredValue<'a> {
    /// The value, for one look.
    #[inline]
    fn look(&self) -> &'a Value {
        self.look_for(1)
    }

    #[inline]
    fn look_for(&self, looks: u64) -> &'a Value {
        let Some(meter) = self.meter else { return self.value };
        meter.pay(looks);
        if meter.has_stopped() { &UNSEEN } else { self.value }
    }

    #[inline]
    fn is_outermost(&self) -> bool {
        self.depth == 0 && self.meter.is_some()
    }

    /// The items, if this is a list.
    #[inline]
    fn items(&self) -> Option<&'a [Value]> {
        if self.is_outermost() {
            return Some(std::slice::from_ref(self.value));
        }
        self.look().as_array().map(Vec::as_slice)
    }

    #[inline]
    fn part(&self, value: &'a Value) -> Self {
        let depth = self.depth + 1;
        if let Some(meter) = self.meter.filter(|_| depth > MAX_DEPTH + 1) {
            meter.halt(MeterStop::Depth);
        }
        Self { value, meter: self.meter, depth }
    }

    /// Pays for one step of an iteration, and says whether to go on.
    #[inline]
    fn goes_on(&self, looks: u64) -> bool {
        self.meter.is_none_or(|meter| {
            meter.pay(looks);
            !meter.has_stopped()
        })
    }
}

impl Json for Metered {
    type Node<'a> = MeteredValue<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    const KEYS_PER_LOOKUP: usize = SerdeJson::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, name: &str, judge: impl FnOnce(MeteredValue<'_>) -> T) -> T {
        SerdeJson::with_string_node(buffer, name, |value| {
            judge(MeteredValue { value, meter: None, depth: 0 })
        })
    }
}

/// The standard reading of a value, which ours differs from only in what it costs.
#[inline]
fn plain(value: &Value) -> impl Node<'_, SerdeJson> {
    value
}

impl<'a> Node<'a, Metered> for MeteredValue<'a> {
    type Object = MeteredMembers<'a>;
    type Array = Items<'a>;
    type Number = &'a Number;

    #[inline]
    fn as_object(&self) -> Option<MeteredMembers<'a>> {
        if self.is_outermost() {
            return None;
        }
        self.look().as_object().map(|members| MeteredMembers { members, of: *self })
    }

    #[inline]
    fn as_array(&self) -> Option<Items<'a>> {
        self.items().map(|items| Items { items, of: *self })
    }

    #[inline]
    fn as_string(&self) -> Option<Cow<'a, str>> {
        let character = self.meter.map_or(0, |meter| meter.character);
        let length = self.value.as_str().map_or(0, str::len) as u64;
        self.look_for(1 + (length + 8) * character / 8).as_str().map(Cow::Borrowed)
    }

    #[inline]
    fn as_number(&self) -> Option<&'a Number> {
        self.look().as_number()
    }

    #[inline]
    fn as_boolean(&self) -> Option<bool> {
        self.look().as_bool()
    }

    #[inline]
    fn is_null(&self) -> bool {
        self.json_type() == JsonType::Null
    }

    #[inline]
    fn json_type(&self) -> JsonType {
        if self.is_outermost() { JsonType::Array } else { plain(self.look()).json_type() }
    }

    #[inline]
    fn string_length(&self) -> Option<u64> {
        let length = self.value.as_str().map_or(0, str::len) as u64;
        plain(self.look_for(1 + length / 32)).string_length()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        let value = self.look();
        let is_like = match (value, expected) {
            (Value::Array(one), Value::Array(other)) => one.len() == other.len(),
            (Value::Object(one), Value::Object(other)) => one.len() == other.len(),
            _ => true,
        };
        is_like && plain(self.look_for(size(expected))).equals_value(expected)
    }

    /// Asked for when something is found, and not for the value: findings of ours do not carry any.
    fn to_value(&self) -> Cow<'a, Value> {
        if self.is_outermost() {
            return Cow::Owned(Value::Array(vec![self.value.clone()]));
        }
        let Some(meter) = self.meter else { return Cow::Borrowed(&UNSEEN) };
        meter.find();
        Cow::Borrowed(if meter.has_stopped() { &DOUBTFUL } else { &UNSEEN })
    }

    #[inline]
    fn identity(&self) -> Option<NodeIdentity> {
        // The validator looks through a list of the schemas that it is in.
        self.goes_on(4);
        let address = std::ptr::from_ref(self.value) as usize;
        Some(NodeIdentity::tagged(address, u32::from(self.is_outermost())))
    }
}

/// What it costs to go through a value, in looks.
fn size(value: &Value) -> u64 {
    let text = |text: &str| 1 + text.len() as u64 / 32;
    match value {
        Value::String(string) => text(string),
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(members) => {
            1 + members.iter().map(|(name, member)| text(name) + size(member)).sum::<u64>()
        }
        _ => 1,
    }
}

/// The members of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeteredMembers<'a> {
    members: &'a Map<String, Value>,
    of: MeteredValue<'a>,
}

impl<'a> Object<'a, Metered> for MeteredMembers<'a> {
    type Node = MeteredValue<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    #[inline]
    fn len(&self) -> usize {
        self.members.len()
    }

    #[inline]
    fn get(&self, name: &String) -> Option<MeteredValue<'a>> {
        self.of.goes_on(1);
        self.members.get(name).map(|value| self.of.part(value))
    }

    #[inline]
    fn members(&self) -> MembersIter<'a> {
        MembersIter { members: self.members.iter(), of: self.of }
    }
}

/// Goes through the members of an object.
#[derive(Debug)]
pub(super) struct MembersIter<'a> {
    members: map::Iter<'a>,
    of: MeteredValue<'a>,
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, MeteredValue<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next()?;
        // Names are matched against patterns, and findings keep copies of them, of about fifty bytes at least.
        let character = self.of.meter.map_or(0, |meter| meter.character);
        let matched = 4 + name.len() as u64 * character / 8;
        self.of.goes_on(matched).then(|| (name.as_str(), self.of.part(value)))
    }
}

/// The items of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Items<'a> {
    items: &'a [Value],
    of: MeteredValue<'a>,
}

impl<'a> Array<'a, Metered> for Items<'a> {
    type Node = MeteredValue<'a>;
    type ElementsIter = ItemsIter<'a>;

    #[inline]
    fn len(&self) -> usize {
        self.items.len()
    }

    #[inline]
    fn elements(&self) -> ItemsIter<'a> {
        ItemsIter { items: self.items.iter(), of: self.of }
    }

    fn is_unique(&self) -> bool {
        self.of.goes_on(self.items.iter().map(size).sum()) && unique::is_unique(self.items)
    }
}

/// Goes through the items of a list.
#[derive(Debug)]
pub(super) struct ItemsIter<'a> {
    items: std::slice::Iter<'a, Value>,
    of: MeteredValue<'a>,
}

impl<'a> Iterator for ItemsIter<'a> {
    type Item = MeteredValue<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let value = self.items.next()?;
        self.of.goes_on(1).then(|| self.of.part(value))
    }
}
