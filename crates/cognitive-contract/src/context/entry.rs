//! Stored context: its owner, its lifetime, and the choice among several entries for a module.
//! Does not read the clock: callers pass in an age or a time.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::key::{Key, Variables, default_pattern, key};
use crate::manifest::Accept;

/// The lifetime of context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// During the request that emitted it, its submodules included; never stored.
    Request,
    /// This many seconds after it was emitted. At exactly that age it has expired.
    Seconds(u64),
    /// Never expires.
    Forever,
}

impl Ttl {
    /// Parses the notation of manifests: 0, seconds, or -1. Returns `None` for other negative numbers.
    #[must_use]
    pub fn parse(seconds: i64) -> Option<Self> {
        match seconds {
            0 => Some(Self::Request),
            -1 => Some(Self::Forever),
            _ => u64::try_from(seconds).ok().map(Self::Seconds),
        }
    }

    /// The notation of manifests.
    #[must_use]
    pub fn seconds(self) -> i64 {
        match self {
            Self::Request => 0,
            Self::Seconds(seconds) => i64::try_from(seconds).unwrap_or(i64::MAX),
            Self::Forever => -1,
        }
    }

    /// Returns whether context of this age may be used outside the request that emitted it.
    #[must_use]
    pub fn covers(self, age: Duration) -> bool {
        match self {
            Self::Request => false,
            Self::Seconds(seconds) => age < Duration::from_secs(seconds),
            Self::Forever => true,
        }
    }
}

/// Returns whether emitted context may be used. Both the emitter's limit and the accepting module's limit apply. Within
/// one request, request-only context is usable too.
#[must_use]
pub fn usable(emitted: Ttl, accepted: Option<Ttl>, age: Duration, same_request: bool) -> bool {
    let within = |ttl: Ttl| match ttl {
        Ttl::Request => same_request,
        other => other.covers(age),
    };
    within(emitted) && accepted.is_none_or(within)
}

/// The owner of context. No owner sees another owner's context. An owner without a name is a separate owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Owner {
    tenant: String,
    user: String,
}

impl Owner {
    /// An owner; an empty name counts as absent.
    #[must_use]
    pub fn new(tenant: Option<&str>, user: Option<&str>) -> Self {
        Self { tenant: tenant.unwrap_or_default().to_owned(), user: user.unwrap_or_default().to_owned() }
    }

    /// A user in a system without tenants.
    #[must_use]
    pub fn user(user: Option<&str>) -> Self {
        Self::new(None, user)
    }

    /// The tenant; empty if there is none.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// The user; empty if there is none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.user
    }

    /// The user as a variable of key patterns.
    #[must_use]
    pub fn user_id(&self) -> Option<&str> {
        Some(self.user.as_str()).filter(|user| !user.is_empty())
    }
}

/// One piece of stored context.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ContextEntry {
    /// Its type, such as `session_state`.
    pub kind: String,
    /// Its key, unique for this type and owner, with the session and input it is bound to.
    pub key: Key,
    /// The value as it was emitted.
    pub value: Value,
    /// Its lifetime.
    pub ttl: Ttl,
    /// The time at which it was emitted.
    pub created: SystemTime,
    /// The module that emitted it; empty if a user did.
    pub module: String,
}

impl ContextEntry {
    /// An entry without a module.
    #[must_use]
    pub fn new(kind: &str, key: Key, value: Value, ttl: Ttl, created: SystemTime) -> Self {
        Self { kind: kind.to_owned(), key, value, ttl, created, module: String::new() }
    }

    /// Sets the module that emitted it.
    #[must_use]
    pub fn with_module(mut self, module: &str) -> Self {
        module.clone_into(&mut self.module);
        self
    }

    /// Returns the entry's age; zero if the clock was set back.
    #[must_use]
    pub fn age(&self, now: SystemTime) -> Duration {
        now.duration_since(self.created).unwrap_or_default()
    }

    /// Returns whether the entry was emitted in the future. The clock was wrong then, so the age is unknown.
    fn is_from_the_future(&self, now: SystemTime) -> bool {
        self.created.duration_since(now).is_ok_and(|ahead| ahead > SKEW)
    }

    /// Returns whether the entry may still be used.
    #[must_use]
    pub fn is_live(&self, now: SystemTime) -> bool {
        let ages = matches!(self.ttl, Ttl::Seconds(_));
        self.ttl.covers(self.age(now)) && !(ages && self.is_from_the_future(now))
    }

    /// Returns whether a reader with these variables finds the entry: its key pattern has to give the reader the same
    /// key. Everything that belongs to the owner finds what the owner set. (D-22)
    #[must_use]
    pub fn is_found(&self, reader: &Variables<'_>) -> bool {
        if self.module.is_empty() {
            return true;
        }
        let Some(pattern) = &self.key.pattern else {
            // Stored before patterns were kept: read by the default pattern, as far as the entry has its variables.
            let hash = || self.key.input_hash.clone().unwrap_or_default();
            let (module, session_id) = (self.module.as_str(), self.key.session.as_deref());
            let emitter = Variables { module, input_hash: &hash, session_id, ..*reader };
            let pattern = default_pattern(&self.kind);
            let [own, theirs] = [&emitter, reader].map(|side| key(&pattern, side).map(|key| key.text));
            return own.is_some() && own == theirs;
        };
        key(pattern, reader).is_some_and(|key| key.text == self.key.text)
    }

    /// Returns the time of expiry; `None` if it never expires or the time is out of range.
    #[must_use]
    pub fn ends(&self) -> Option<SystemTime> {
        match self.ttl {
            Ttl::Request => Some(self.created),
            Ttl::Seconds(seconds) => self.created.checked_add(Duration::from_secs(seconds)),
            Ttl::Forever => None,
        }
    }
}

/// Selects entries of an owner. The default selects all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContextFilter<'a> {
    /// Only this type.
    pub kind: Option<&'a str>,
    /// Only entries visible from this scope.
    pub from: Option<ContextScope<'a>>,
}

/// The scope of a reader. Entries bound to a session or an input are visible only from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContextScope<'a> {
    /// The session.
    pub session: Option<&'a str>,
    /// The hash of the input.
    pub input_hash: Option<&'a str>,
}

impl ContextFilter<'_> {
    /// Returns whether an entry is selected.
    #[must_use]
    pub fn means(&self, entry: &ContextEntry) -> bool {
        let open = |bound: &Option<String>, here: Option<&str>| bound.is_none() || bound.as_deref() == here;
        self.kind.is_none_or(|kind| kind == entry.kind)
            && self.from.is_none_or(|place| {
                open(&entry.key.session, place.session) && open(&entry.key.input_hash, place.input_hash)
            })
    }
}

/// Returns the entry for an accepted type: the newest that the module may still use. `entries` are the entries of one
/// owner that are visible from the run, newest first. `reader` has the variables of the run; `from_module`
/// replaces its name.
#[must_use]
pub fn choose<'a>(
    accept: &Accept,
    entries: &'a [ContextEntry],
    reader: &Variables<'_>,
    now: SystemTime,
) -> Option<&'a ContextEntry> {
    let reader = Variables { module: accept.from_module.as_deref().unwrap_or(reader.module), ..*reader };
    let limit = accept.ttl.and_then(Ttl::parse);
    let ages = |entry: &ContextEntry| matches!(limit.unwrap_or(entry.ttl), Ttl::Seconds(_));
    entries.iter().find(|entry| {
        entry.kind == accept.kind
            && entry.is_live(now)
            && !(ages(entry) && entry.is_from_the_future(now))
            && usable(entry.ttl, limit, entry.age(now), false)
            && comes_from(accept, &entry.value)
            && entry.is_found(&reader)
    })
}

/// Returns whether the value is a result of the module in `from_module`; true if it names none.
pub(super) fn comes_from(accept: &Accept, value: &Value) -> bool {
    let module = value.get("module").and_then(Value::as_str);
    accept.from_module.as_deref().is_none_or(|wanted| module == Some(wanted))
}

/// The clock skew that is tolerated before an entry counts as emitted in the future. Servers with slightly different
/// clocks share a store.
const SKEW: Duration = Duration::from_mins(1);

/// The capacity of a store; the oldest entries are evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Maximum number of entries.
    pub entries: usize,
    /// Maximum number of bytes of all entries together.
    pub bytes: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self { entries: 1_000, bytes: 10 << 20 }
    }
}

impl Caps {
    /// The size limit of a single entry, so that one entry cannot evict all others.
    #[must_use]
    pub fn largest(&self) -> usize {
        self.bytes / 10
    }

    /// Returns the size of an entry in bytes; an error if it is too large to store.
    pub fn weigh(&self, owner: &Owner, entry: &ContextEntry, value_bytes: usize) -> Result<usize, String> {
        let bound = [&entry.key.session, &entry.key.input_hash, &entry.key.pattern];
        let bound = bound.into_iter().flatten().map(String::len).sum::<usize>();
        let names = [&entry.kind, &entry.key.text, &entry.module, &owner.tenant, &owner.user];
        let names = names.into_iter().map(String::len).sum::<usize>();
        let bytes = value_bytes.saturating_add(names).saturating_add(bound).saturating_add(OVERHEAD);
        if bytes > self.largest() {
            return Err(format!("the context has {bytes} bytes, the limit is {}", self.largest()));
        }
        Ok(bytes)
    }
}

/// The approximate overhead of an entry in bytes, in addition to its texts.
const OVERHEAD: usize = 64;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOUR: Ttl = Ttl::Seconds(3_600);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn reader() -> Variables<'static> {
        Variables { module: "m", input_hash: &|| "h".to_owned(), user_id: None, session_id: Some("s") }
    }

    // D-22: an entry of before has no pattern, and is read by the default of its type.
    #[test]
    fn d_22_an_entry_without_a_pattern_is_read_by_the_default() {
        let kept = |kind: &str, module: &str, session: Option<&str>| {
            let key = Key { session: session.map(str::to_owned), ..Key::plain("m:s:x") };
            ContextEntry::new(kind, key, json!(1), HOUR, SystemTime::UNIX_EPOCH).with_module(module)
        };
        assert!(kept("session_state", "other", Some("s")).is_found(&reader()));
        assert!(kept("notes", "m", Some("s")).is_found(&reader()));
        for (kind, module, session) in
            [("notes", "other", Some("s")), ("session_state", "m", Some("t")), ("session_state", "m", None)]
        {
            assert!(!kept(kind, module, session).is_found(&reader()), "{kind} {module} {session:?}");
        }
        assert!(kept("notes", "", None).is_found(&reader()), "a person set it");
    }

    // CTX-022: 0 is the request, N ends at N, -1 never ends.
    #[test]
    fn ctx_022_a_ttl_ends_at_its_age() {
        assert_eq!(
            [0, 5, -1, -2].map(Ttl::parse),
            [Some(Ttl::Request), Some(Ttl::Seconds(5)), Some(Ttl::Forever), None]
        );
        assert!(usable(HOUR, None, seconds(3_599), false));
        assert!(!usable(HOUR, None, seconds(3_600), false));
        assert!(!usable(HOUR, None, seconds(3_601), true), "a long request does not make it younger");
        assert!(usable(Ttl::Request, None, seconds(1), true));
        assert!(!usable(Ttl::Request, None, seconds(0), false));
        assert!(usable(Ttl::Forever, None, Duration::MAX, false));
    }

    #[test]
    fn ctx_023_the_module_that_asks_may_want_it_fresher() {
        let day = Ttl::Seconds(86_400);
        assert!(usable(day, Some(HOUR), seconds(3_599), false));
        assert!(!usable(day, Some(HOUR), seconds(3_600), false));
        assert!(!usable(HOUR, Some(day), seconds(7_200), false), "it cannot make it last longer");
        assert!(!usable(day, Some(Ttl::Request), seconds(1), false));
        assert!(usable(day, Some(Ttl::Request), seconds(1), true));
        assert!(usable(HOUR, Some(Ttl::Forever), seconds(1), false));
    }

    #[test]
    fn what_was_kept_while_the_clock_was_in_the_future_is_not_fresh() {
        let now = SystemTime::UNIX_EPOCH + seconds(1_000_000);
        let kept = |ttl, ahead| ContextEntry::new("a", Key::plain("k"), json!(1), ttl, now + seconds(ahead));
        assert!(kept(HOUR, 59).is_live(now) && !kept(HOUR, 61).is_live(now));
        assert!(!kept(HOUR, 86_400).is_live(now) && !kept(HOUR, 86_400).is_live(now + seconds(80_000)));
        assert!(kept(Ttl::Forever, 86_400).is_live(now), "what does not age is never too old");
        let accept = |ttl: Option<i64>| -> Accept {
            serde_json::from_value(json!({ "type": "a", "ttl": ttl })).unwrap()
        };
        for (entry, limit, found) in [
            (kept(HOUR, 61), None, false),
            (kept(Ttl::Forever, 61), Some(3_600), false),
            (kept(Ttl::Forever, 61), None, true),
            (kept(HOUR, 1), Some(60), true),
        ] {
            assert_eq!(choose(&accept(limit), &[entry], &reader(), now).is_some(), found, "{limit:?}");
        }
    }

    #[test]
    fn a_clock_that_was_put_back_a_little_makes_nothing_old_and_no_end_overflows() {
        let created = SystemTime::UNIX_EPOCH + seconds(50);
        let entry = ContextEntry::new("a", Key::plain("k"), json!(1), Ttl::Seconds(u64::MAX), created);
        assert!(entry.is_live(SystemTime::UNIX_EPOCH));
        assert_eq!(entry.ends(), None);
        assert_eq!(Ttl::Seconds(u64::MAX).seconds(), i64::MAX);
    }

    #[test]
    fn what_is_bound_is_seen_from_there_only() {
        let place = |session, input_hash| ContextFilter {
            kind: None,
            from: Some(ContextScope { session, input_hash }),
        };
        let mut entry = ContextEntry::new("a", Key::plain("k"), json!(1), HOUR, SystemTime::UNIX_EPOCH);
        assert!(place(None, None).means(&entry));
        entry.key.session = Some("s".to_owned());
        assert!(place(Some("s"), Some("h")).means(&entry) && !place(Some("t"), None).means(&entry));
        assert!(!place(None, None).means(&entry) && ContextFilter::default().means(&entry));
        entry.key.input_hash = Some("h".to_owned());
        assert!(place(Some("s"), Some("h")).means(&entry) && !place(Some("s"), Some("i")).means(&entry));
        assert!(!ContextFilter { kind: Some("b"), from: None }.means(&entry));
    }

    // CTX-015, CTX-023: entries that are too old or come from another module are skipped.
    #[test]
    fn ctx_015_023_the_newest_that_may_be_used_is_chosen() {
        let at = |age: u64, from: &str| {
            let created = SystemTime::UNIX_EPOCH + seconds(10_000 - age);
            ContextEntry::new(
                "previous_result",
                Key::plain("k"),
                json!({ "module": from }),
                Ttl::Forever,
                created,
            )
        };
        let entries = [at(10, "other"), at(20, "mine"), at(30, "mine")];
        let accept = |ttl, from: Option<&str>| Accept {
            kind: "previous_result".to_owned(),
            required: false,
            max_turns: None,
            fields: None,
            schema: None,
            ttl,
            from_module: from.map(str::to_owned),
        };
        let chosen = |ttl, from| {
            choose(&accept(ttl, from), &entries, &reader(), SystemTime::UNIX_EPOCH + seconds(10_000))
                .and_then(|entry| entries.iter().position(|each| each == entry))
        };
        assert_eq!(chosen(None, None), Some(0));
        assert_eq!(chosen(None, Some("mine")), Some(1));
        assert_eq!(chosen(Some(15), Some("mine")), None);
        assert_eq!(chosen(Some(0), None), None);
    }
}
