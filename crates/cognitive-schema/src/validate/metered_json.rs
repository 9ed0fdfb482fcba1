//! A JSON value as the validator sees it: read through a meter, and never copied.
//!
//! The validator has no limits. It explains every failing branch with a copy of the value, and a schema can make it
//! read the same value again and again. So it reads values through [`MeteredJson`], where every access costs one or more
//! looks. When the meter is exhausted, everything left reads as `null`, and the validator soon ends. The caller then
//! sees that the meter has stopped and ignores later results.

use std::borrow::Cow;
use std::cell::Cell;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, unique};
use serde_json::{Map, Number, Value, map};

use super::limits::MAX_DEPTH;

/// Placeholders for values in findings, which never show the value. `false` instead of `null` marks a finding that is
/// not reliable.
static UNSEEN: Value = Value::Null;
static DOUBTFUL: Value = Value::Bool(false);

/// The metered representation of JSON.
#[derive(Debug)]
pub(super) struct MeteredJson;

/// The reason why a meter stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MeterStop {
    /// The check took too much work.
    Work,
    /// The check made too many findings.
    Findings,
    /// The value nests too deeply.
    Depth,
}

/// The budget of a check, and what is left of it.
#[derive(Debug)]
pub(super) struct Meter {
    looks: Cell<u64>,
    findings: Cell<u64>,
    /// Cost per character of a text that a pattern may match, in eighths of a look.
    character: u64,
    stop: Cell<Option<MeterStop>>,
}

impl Meter {
    pub(super) fn new(looks: u64, findings: u64, character: u64) -> Self {
        Self { looks: Cell::new(looks), findings: Cell::new(findings), character, stop: Cell::new(None) }
    }

    /// The reason why the meter stopped, if it has.
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

/// A value under a meter. The outermost value is an array with only the value to validate in it. The validator copies
/// the outermost value in one case, and only an array without any rules is never copied in others.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeteredValue<'a> {
    value: &'a Value,
    /// The meter; `None` for a member name, which was paid for with its member.
    meter: Option<&'a Meter>,
    /// Zero for the outermost array.
    depth: usize,
}

/// Wraps the value to validate in the outermost array.
pub(super) fn outermost<'a>(value: &'a Value, meter: &'a Meter) -> MeteredValue<'a> {
    MeteredValue { value, meter: Some(meter), depth: 0 }
}

/// The prefix that the outermost array adds to every path.
pub(super) const OUTERMOST: &str = "/0";

/// Returns whether a finding was made before the meter stopped.
pub(super) fn is_certain(error: &jsonschema::ValidationError<'_>) -> bool {
    **error.instance() != DOUBTFUL
}

impl<'a> MeteredValue<'a> {
    /// Reads the value for one look.
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

    /// The items, if this is an array.
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

    /// Pays for one step of an iteration. Returns false if the meter has stopped.
    #[inline]
    fn goes_on(&self, looks: u64) -> bool {
        self.meter.is_none_or(|meter| {
            meter.pay(looks);
            !meter.has_stopped()
        })
    }
}

impl Json for MeteredJson {
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

/// The standard view of a value; the metered view differs only in cost.
#[inline]
fn plain(value: &Value) -> impl Node<'_, SerdeJson> {
    value
}

impl<'a> Node<'a, MeteredJson> for MeteredValue<'a> {
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

    /// Called when the validator records a finding. The value itself is not needed, since findings never carry it.
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
        // The validator searches a list of the schemas that it is currently in.
        self.goes_on(4);
        let address = std::ptr::from_ref(self.value) as usize;
        Some(NodeIdentity::tagged(address, u32::from(self.is_outermost())))
    }
}

/// The cost of reading a whole value, in looks.
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

impl<'a> Object<'a, MeteredJson> for MeteredMembers<'a> {
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

/// Iterates over the members of an object.
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
        // Names are matched against patterns, and findings store copies of them, of at least fifty bytes each.
        let character = self.of.meter.map_or(0, |meter| meter.character);
        let matched = 4 + name.len() as u64 * character / 8;
        self.of.goes_on(matched).then(|| (name.as_str(), self.of.part(value)))
    }
}

/// The items of an array.
#[derive(Debug, Clone, Copy)]
pub(super) struct Items<'a> {
    items: &'a [Value],
    of: MeteredValue<'a>,
}

impl<'a> Array<'a, MeteredJson> for Items<'a> {
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

/// Iterates over the items of an array.
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
