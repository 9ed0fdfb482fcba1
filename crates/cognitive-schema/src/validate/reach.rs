//! Queries about a location in a contract before a value exists: its members, its types, and what it can never hold.
//! Validates no value. If a schema is silent or too complex, anything is assumed possible, so that a reported absence
//! is never wrong.

use std::cell::Cell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::json_types::JsonTypes;
use super::{SchemaFiles, SectionRef, refs};

/// The most schemas that are read for one query. Beyond that, the answer is "anything". References that double at
/// each step would keep the query busy for years.
const MAX_SCHEMAS: usize = 4_000;
/// The most references in a row, and the deepest nesting of branches. References may form a circle.
const MAX_NESTING: usize = 32;

/// A schema that accepts every value.
static ANYTHING: Value = Value::Bool(true);

/// A schema and its file.
type SchemaAt<'a> = (&'a str, &'a Value);

/// A location in a contract. At least one of these schemas applies to it.
#[derive(Debug, Clone)]
pub struct ContractPlace<'a> {
    files: &'a SchemaFiles,
    schemas: Vec<SchemaAt<'a>>,
}

/// The answer of a contract about a member or an item.
#[derive(Debug, Clone)]
pub enum MemberDescription<'a> {
    /// The contract describes it.
    Described(ContractPlace<'a>),
    /// The contract leaves it open.
    Open,
    /// The members are described and this one is not among them, but nothing forbids it.
    Undescribed,
    /// No valid value has it.
    Never,
}

/// The members that a contract declares at a location.
#[derive(Debug, Clone, Default)]
pub struct DeclaredMembers {
    names: BTreeSet<String>,
    /// True if a schema describes members of every name.
    has_others: bool,
}

impl DeclaredMembers {
    /// Returns whether a member of this name is declared.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.has_others || self.names.contains(name)
    }

    pub(super) fn at(place: &ContractPlace<'_>) -> Self {
        let names = place.names().into_iter().map(str::to_owned).collect();
        let reader = SchemaReader::new(place.files);
        let has_patterns = place.schemas.iter().any(|at| {
            let found = reader.enter(*at, 0);
            found.is_some_and(|(_, schema)| schema.get("patternProperties").is_some())
        });
        // A name that no author lists.
        let has_others = has_patterns || matches!(place.member("\u{0}"), MemberDescription::Described(_));
        Self { names, has_others }
    }
}

/// The query for one schema.
#[derive(Clone, Copy)]
enum SchemaQuestion<'q> {
    Member(&'q str),
    Item,
}

/// The answer of one schema about a member or an item.
enum SchemaAnswer<'a> {
    Nothing,
    Undescribed,
    Open,
    Here(Vec<SchemaAt<'a>>),
    Never,
}

impl SchemaAnswer<'_> {
    /// Combines answers when both schemas apply.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            // Each describes a part. Treating both as alternatives misses some rules but invents none.
            (Self::Here(mut one), Self::Here(two)) => {
                one.extend(two);
                Self::Here(one)
            }
            (here @ Self::Here(_), _) | (_, here @ Self::Here(_)) => here,
            (Self::Open, _) | (_, Self::Open) => Self::Open,
            (Self::Undescribed, _) | (_, Self::Undescribed) => Self::Undescribed,
            (Self::Nothing, Self::Nothing) => Self::Nothing,
        }
    }

    /// Combines answers when one of the schemas applies.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Here(mut one), Self::Here(two)) => {
                one.extend(two);
                Self::Here(one)
            }
            (Self::Here(mut here), Self::Open | Self::Nothing)
            | (Self::Open | Self::Nothing, Self::Here(mut here)) => {
                here.push(("", &ANYTHING));
                Self::Here(here)
            }
            (here @ Self::Here(_), _) | (_, here @ Self::Here(_)) => here,
            (Self::Open, _) | (_, Self::Open) => Self::Open,
            (Self::Nothing, _) | (_, Self::Nothing) => Self::Nothing,
            (Self::Undescribed, _) | (_, Self::Undescribed) => Self::Undescribed,
            (Self::Never, Self::Never) => Self::Never,
        }
    }
}

impl<'a> ContractPlace<'a> {
    /// The location at which a section starts; `None` if it does not exist.
    #[must_use]
    pub fn from_section(files: &'a SchemaFiles, section: &SectionRef) -> Option<Self> {
        let (file, root) = files.get_key_value(&section.file)?;
        let schema = root.pointer(&section.pointer)?;
        Some(Self { files, schemas: vec![(file, schema)] })
    }

    /// Returns what the contract says about a member of an object here.
    #[must_use]
    pub fn member(&self, name: &str) -> MemberDescription<'a> {
        self.describe_member(SchemaQuestion::Member(name))
    }

    /// Returns what the contract says about the items of an array here.
    #[must_use]
    pub fn items(&self) -> MemberDescription<'a> {
        self.describe_member(SchemaQuestion::Item)
    }

    fn describe_member(&self, ask: SchemaQuestion<'_>) -> MemberDescription<'a> {
        let walk = SchemaReader::new(self.files);
        let each = self.schemas.iter().map(|at| walk.describe(*at, ask, 0));
        let said = each.reduce(SchemaAnswer::or).unwrap_or(SchemaAnswer::Nothing);
        match said {
            _ if walk.is_spent() => MemberDescription::Open,
            SchemaAnswer::Nothing | SchemaAnswer::Open => MemberDescription::Open,
            SchemaAnswer::Undescribed => MemberDescription::Undescribed,
            SchemaAnswer::Here(schemas) => MemberDescription::Described(Self { files: self.files, schemas }),
            SchemaAnswer::Never => MemberDescription::Never,
        }
    }

    /// The members that are described here.
    #[must_use]
    pub fn names(&self) -> BTreeSet<&'a str> {
        let walk = SchemaReader::new(self.files);
        let mut names = BTreeSet::new();
        self.schemas.iter().for_each(|at| walk.names(*at, &mut names, 0));
        names
    }

    /// The members that every value here must have and that have no default.
    #[must_use]
    pub fn required_members(&self) -> Vec<&'a str> {
        let [at] = self.schemas.as_slice() else { return Vec::new() };
        let walk = SchemaReader::new(self.files);
        let mut names = Vec::new();
        walk.collect_required(*at, &mut names, 0);
        let has_default = |name: &str| match self.member(name) {
            MemberDescription::Described(place) => {
                place.schemas.iter().any(|(_, schema)| schema.get("default").is_some())
            }
            _ => false,
        };
        names.retain(|name| !has_default(name));
        names
    }

    /// The types that a value here can have.
    #[must_use]
    pub fn types(&self) -> JsonTypes {
        let walk = SchemaReader::new(self.files);
        let each = self.schemas.iter().map(|at| walk.types(*at, 0));
        let types = each.reduce(JsonTypes::or).unwrap_or(JsonTypes::ALL);
        if walk.is_spent() { JsonTypes::ALL } else { types }
    }

    /// Returns whether a value here can equal this one.
    #[must_use]
    pub fn may_be(&self, value: &Value) -> bool {
        let walk = SchemaReader::new(self.files);
        self.schemas.iter().any(|at| walk.may_be(*at, value, 0)) || walk.is_spent()
    }

    /// The values that an `enum` lists here, as written.
    #[must_use]
    pub fn listed_values(&self) -> Vec<&'a Value> {
        let lists = self.schemas.iter().filter_map(|(_, schema)| schema.get("enum")?.as_array());
        lists.flatten().collect()
    }
}

/// Reads schemas for one query, and counts them.
struct SchemaReader<'a> {
    files: &'a SchemaFiles,
    left: Cell<usize>,
}

impl<'a> SchemaReader<'a> {
    fn new(files: &'a SchemaFiles) -> Self {
        Self { files, left: Cell::new(MAX_SCHEMAS) }
    }

    fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    /// Follows references to the schema itself; `None` where they cannot be followed.
    fn enter(&self, (mut file, mut schema): SchemaAt<'a>, depth: usize) -> Option<SchemaAt<'a>> {
        if depth > MAX_NESTING {
            self.left.set(0);
        }
        for _ in 0..MAX_NESTING {
            let left = self.left.get().checked_sub(1)?;
            self.left.set(left);
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
                return Some((file, schema));
            };
            schema = refs::target(self.files, file, reference).ok()?;
            if let Some(other) = refs::file_of_ref(reference, file).ok()? {
                file = self.files.get_key_value(&other)?.0;
            }
        }
        None
    }

    fn describe(&self, at: SchemaAt<'a>, ask: SchemaQuestion<'_>, depth: usize) -> SchemaAnswer<'a> {
        let Some((file, schema)) = self.enter(at, depth) else { return SchemaAnswer::Open };
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(false) => return SchemaAnswer::Never,
            _ => return SchemaAnswer::Nothing,
        };
        let mut said = describe_own(file, members, ask);
        for branch in branches(members, "allOf") {
            said = said.and(self.describe((file, branch), ask, depth + 1));
        }
        for choice in ["anyOf", "oneOf"] {
            let each = branches(members, choice).map(|branch| self.describe((file, branch), ask, depth + 1));
            if let Some(one) = each.reduce(SchemaAnswer::or) {
                said = said.and(one);
            }
        }
        if members.contains_key("if") {
            let side = |word: &str| match members.get(word) {
                Some(branch) => self.describe((file, branch), ask, depth + 1),
                None => SchemaAnswer::Nothing,
            };
            said = said.and(side("then").or(side("else")));
        }
        said
    }

    fn names(&self, at: SchemaAt<'a>, found: &mut BTreeSet<&'a str>, depth: usize) {
        let Some((file, Value::Object(members))) = self.enter(at, depth) else { return };
        let own = members.get("properties").and_then(Value::as_object);
        found.extend(own.into_iter().flat_map(|own| own.keys().map(String::as_str)));
        let all = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|word| branches(members, word));
        for branch in all.chain(members.get("then")).chain(members.get("else")) {
            self.names((file, branch), found, depth + 1);
        }
    }

    fn collect_required(&self, at: SchemaAt<'a>, found: &mut Vec<&'a str>, depth: usize) {
        let Some((file, Value::Object(members))) = self.enter(at, depth) else { return };
        let own = members.get("required").and_then(Value::as_array);
        found.extend(own.into_iter().flatten().filter_map(Value::as_str));
        branches(members, "allOf").for_each(|branch| self.collect_required((file, branch), found, depth + 1));
    }

    fn types(&self, at: SchemaAt<'a>, depth: usize) -> JsonTypes {
        let Some((file, schema)) = self.enter(at, depth) else { return JsonTypes::ALL };
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(false) => return JsonTypes::NONE,
            _ => return JsonTypes::ALL,
        };
        let mut types = own_types(members);
        for branch in branches(members, "allOf") {
            types = types.and(self.types((file, branch), depth + 1));
        }
        for choice in ["anyOf", "oneOf"] {
            let each = branches(members, choice).map(|branch| self.types((file, branch), depth + 1));
            types = types.and(each.reduce(JsonTypes::or).unwrap_or(JsonTypes::ALL));
        }
        types
    }

    fn may_be(&self, at: SchemaAt<'a>, value: &Value, depth: usize) -> bool {
        let Some((file, schema)) = self.enter(at, depth) else { return true };
        let Value::Object(members) = schema else { return *schema != Value::Bool(false) };
        let listed = members.get("enum").and_then(Value::as_array);
        let inside = |word: &str| {
            let mut each = branches(members, word).peekable();
            each.peek().is_none() || each.any(|branch| self.may_be((file, branch), value, depth + 1))
        };
        listed.is_none_or(|listed| listed.iter().any(|each| is_equal(each, value)))
            && members.get("const").is_none_or(|only| is_equal(only, value))
            && !own_types(members).and(JsonTypes::from_value(value)).is_empty()
            && branches(members, "allOf").all(|branch| self.may_be((file, branch), value, depth + 1))
            && inside("anyOf")
            && inside("oneOf")
    }
}

/// The answer of one schema's own keywords, without those that contain other schemas for the same value.
fn describe_own<'a>(
    file: &'a str,
    schema: &'a Map<String, Value>,
    ask: SchemaQuestion<'_>,
) -> SchemaAnswer<'a> {
    let wanted = match ask {
        SchemaQuestion::Member(_) => JsonTypes::from_word("object"),
        SchemaQuestion::Item => JsonTypes::ARRAY,
    };
    if own_types(schema).and(wanted).is_empty() {
        return SchemaAnswer::Never;
    }
    // An `enum` or `const` lists whole values, so their inner parts are not described.
    if schema.contains_key("enum") || schema.contains_key("const") {
        return SchemaAnswer::Open;
    }
    match ask {
        SchemaQuestion::Member(name) => own_member(file, schema, name),
        SchemaQuestion::Item => match schema.get("items") {
            Some(items @ (Value::Object(_) | Value::Bool(_))) => SchemaAnswer::Here(vec![(file, items)]),
            Some(_) => SchemaAnswer::Open,
            None => SchemaAnswer::Nothing,
        },
    }
}

fn own_member<'a>(file: &'a str, schema: &'a Map<String, Value>, name: &str) -> SchemaAnswer<'a> {
    let described = schema.get("properties").and_then(Value::as_object);
    if let Some(member) = described.and_then(|described| described.get(name)) {
        return if *member == Value::Bool(false) {
            SchemaAnswer::Never
        } else {
            SchemaAnswer::Here(vec![(file, member)])
        };
    }
    // A pattern can admit any name, so the matching names are not computed.
    if schema.contains_key("patternProperties") {
        return SchemaAnswer::Open;
    }
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => SchemaAnswer::Never,
        Some(others @ Value::Object(_)) => SchemaAnswer::Here(vec![(file, others)]),
        Some(_) => SchemaAnswer::Open,
        None if described.is_some_and(|described| !described.is_empty()) => SchemaAnswer::Undescribed,
        None => SchemaAnswer::Nothing,
    }
}

fn own_types(schema: &Map<String, Value>) -> JsonTypes {
    let written = match schema.get("type") {
        Some(Value::String(word)) => JsonTypes::from_word(word),
        Some(Value::Array(words)) => {
            let each = words.iter().filter_map(Value::as_str).map(JsonTypes::from_word);
            each.fold(JsonTypes::NONE, JsonTypes::or)
        }
        _ => JsonTypes::ALL,
    };
    let listed = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    let listed = listed.or_else(|| schema.get("const").map(std::slice::from_ref));
    let listed =
        listed.map(|values| values.iter().map(JsonTypes::from_value).fold(JsonTypes::NONE, JsonTypes::or));
    written.and(listed.unwrap_or(JsonTypes::ALL))
}

fn branches<'a>(schema: &'a Map<String, Value>, word: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(word).and_then(Value::as_array).into_iter().flatten()
}

/// Returns whether two values are equal; `1` and `1.0` are.
fn is_equal(one: &Value, other: &Value) -> bool {
    one == other
        || one.as_f64().zip(other.as_f64()).is_some_and(|(one, other)| one.to_bits() == other.to_bits())
}

#[cfg(test)]
mod tests;
