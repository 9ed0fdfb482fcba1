//! Version ranges of `requires`: `1.2.3`, `>=1.2.3`, `^1.2.3`, `~1.2.3`, `*`, joined by space, comma or `||`. (COMP-020)
//! A bare version is exact. A pre-release fits only a range that names it. Whatever is no range is refused, not
//! guessed at.

use std::cmp::Ordering;

use crate::text::fits;

/// A longer range is no range.
const LONGEST: usize = 256;

/// A compiled range.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VersionRange {
    /// At least one of these must hold; none at all is any version.
    alternatives: Vec<Vec<Bound>>,
}

/// One side of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    side: Side,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    AtLeast,
    Above,
    AtMost,
    Below,
}

/// A version as Semantic Versioning has it. What stands behind `+` plays no part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    core: [u64; 3],
    pre: PreRelease,
}

/// The words behind `-`; empty in a stable version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct PreRelease(Vec<Word>);

/// Numbers come before names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Number(u64),
    Name(String),
}

impl Ord for PreRelease {
    fn cmp(&self, other: &Self) -> Ordering {
        // A stable version comes after all of its pre-releases.
        self.0.is_empty().cmp(&other.0.is_empty()).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for PreRelease {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl VersionRange {
    /// Any stable version.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Reads a range; `None` if it is none. Empty text and `latest` are any version.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if !fits(text, LONGEST) {
            return None;
        }
        if matches!(text, "" | "latest") {
            return Some(Self::any());
        }
        let alternatives: Vec<Vec<Bound>> = text.split("||").map(alternative).collect::<Option<_>>()?;
        let is_any = alternatives.iter().any(Vec::is_empty);
        Some(if is_any { Self::any() } else { Self { alternatives } })
    }

    /// Whether a version is in the range. Text that is no version is only in the range of any version.
    #[must_use]
    pub fn matches(&self, version: &str) -> bool {
        match Version::parse(version) {
            Some(version) => self.contains(&version),
            None => self.alternatives.is_empty(),
        }
    }

    /// The newest of the versions that are in the range.
    #[must_use]
    pub fn newest<'a>(&self, versions: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        let parsed = versions.into_iter().filter_map(|text| Some((Version::parse(text)?, text)));
        let fitting = parsed.filter(|(version, _)| self.contains(version));
        fitting.max_by(|(left, _), (right, _)| left.cmp(right)).map(|(_, text)| text)
    }

    fn contains(&self, version: &Version) -> bool {
        let is_stable = version.pre.0.is_empty();
        let fits = |bounds: &Vec<Bound>| {
            let named = is_stable || bounds.iter().any(|bound| bound.version == *version);
            named && bounds.iter().all(|bound| bound.admits(version))
        };
        if self.alternatives.is_empty() { is_stable } else { self.alternatives.iter().any(fits) }
    }
}

impl Bound {
    fn admits(&self, version: &Version) -> bool {
        match self.side {
            Side::AtLeast => *version >= self.version,
            Side::Above => *version > self.version,
            Side::AtMost => *version <= self.version,
            Side::Below => *version < self.version,
        }
    }
}

/// Bounds that must all hold; none for any version.
fn alternative(text: &str) -> Option<Vec<Bound>> {
    // Between `||` something must stand.
    let words: Vec<&str> = text.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
    if let [from, "-", to] = *words.as_slice() {
        let mut bounds = comparator(">=", from)?;
        bounds.extend(comparator("<=", to)?);
        return Some(bounds);
    }
    let mut bounds = Vec::new();
    let mut words = words.into_iter().peekable();
    words.peek()?;
    while let Some(word) = words.next() {
        let operator_length = word.find(|letter| !matches!(letter, '<' | '>' | '=' | '^' | '~'));
        // `>= 1.0.0` with a space is one comparator.
        let (operator, version) = match operator_length {
            None => (word, words.next()?),
            Some(length) => word.split_at_checked(length)?,
        };
        bounds.extend(comparator(operator, version)?);
    }
    Some(bounds)
}

/// One comparator as bounds. What a short version leaves open is free: `1.2` is every `1.2.x`.
fn comparator(operator: &str, version: &str) -> Option<Vec<Bound>> {
    let (low, given) = partial(version)?;
    let bound = |side: Side, version: &Version| Bound { side, version: version.clone() };
    let next = |place: usize| Version { core: raised(low.core, place), pre: PreRelease::default() };
    let until = |place: usize| vec![bound(Side::AtLeast, &low), bound(Side::Below, &next(place))];
    if given == 0 {
        return matches!(operator, "" | "=" | "^" | "~" | ">=" | "<=").then(Vec::new);
    }
    let whole = given == 3;
    let bounds = match operator {
        "" | "=" if whole => vec![bound(Side::AtLeast, &low), bound(Side::AtMost, &low)],
        "" | "=" => until(given - 1),
        ">=" => vec![bound(Side::AtLeast, &low)],
        "<" => vec![bound(Side::Below, &low)],
        ">" if whole => vec![bound(Side::Above, &low)],
        ">" => vec![bound(Side::AtLeast, &next(given - 1))],
        "<=" if whole => vec![bound(Side::AtMost, &low)],
        "<=" => vec![bound(Side::Below, &next(given - 1))],
        "~" => until(given.min(2) - 1),
        // The leftmost number that is not zero stays; of `^0.0` what is written stays.
        "^" => until(low.core.iter().take(given).position(|number| *number > 0).unwrap_or(given - 1)),
        _ => return None,
    };
    Some(bounds)
}

/// The first version in which the number at `place` is one higher.
fn raised(core: [u64; 3], place: usize) -> [u64; 3] {
    let mut raised = [0; 3];
    for (index, (to, from)) in raised.iter_mut().zip(core).enumerate().take(place + 1) {
        *to = from.saturating_add(u64::from(index == place));
    }
    raised
}

/// A version that may be short, such as `1`, `1.2` or `1.x`, with zeros in place of what is not given, and how many
/// numbers are.
fn partial(text: &str) -> Option<(Version, usize)> {
    if let Some(version) = Version::parse(text) {
        return Some((version, 3));
    }
    let mut core = [0; 3];
    let mut given = 0;
    let mut open = false;
    for (index, part) in text.split('.').enumerate() {
        let place = core.get_mut(index)?;
        if matches!(part, "*" | "x" | "X") {
            open = true;
        } else if open {
            return None;
        } else {
            *place = number(part)?;
            given = index + 1;
        }
    }
    (open || given < 3).then_some((Version { core, pre: PreRelease::default() }, given))
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        if !fits(text, LONGEST) {
            return None;
        }
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        if build.is_some_and(|build| !build.split('.').all(is_word)) {
            return None;
        }
        let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
        let numbers: Vec<u64> = core.split('.').map(number).collect::<Option<_>>()?;
        let words = pre.map(|pre| pre.split('.').map(word).collect::<Option<Vec<_>>>());
        let pre = match words {
            Some(words) => words?,
            None => Vec::new(),
        };
        Some(Self { core: numbers.try_into().ok()?, pre: PreRelease(pre) })
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn word(text: &str) -> Option<Word> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return number(text).map(Word::Number);
    }
    is_word(text).then(|| Word::Name(text.to_owned()))
}

/// A number without a sign and without zeros before it.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;
