//! Version ranges of `requires`: `1.2.3`, `>=1.2.3`, `^1.2.3`, `~1.2.3`, `*`, joined by space, comma or `||`.
//! (COMP-020)
//! A bare version is exact. A pre-release matches only a range that names it. Invalid ranges are rejected, not guessed.
//! Versions are parsed by `semver`, but its ranges differ: there a bare version is a caret range, and `||`, spaces and
//! hyphens are not supported.

use semver::Version;

use crate::text::fits;

/// The longest range in characters. Ranges come from untrusted packages, and no real one is longer.
const MAX_LENGTH: usize = 256;

/// A compiled range.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VersionRange {
    /// At least one of these must match; an empty list matches any stable version.
    alternatives: Vec<Vec<VersionBound>>,
}

/// One bound of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
struct VersionBound {
    limit: Limiting,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limiting {
    AtLeast,
    Above,
    AtMost,
    Below,
}

impl VersionRange {
    /// Any stable version.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Parses a range; `None` if invalid. Empty text and `latest` match any stable version.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if !fits(text, MAX_LENGTH) {
            return None;
        }
        if matches!(text, "" | "latest") {
            return Some(Self::any());
        }
        let alternatives: Vec<Vec<VersionBound>> =
            text.split("||").map(alternative).collect::<Option<_>>()?;
        let is_any = alternatives.iter().any(Vec::is_empty);
        Some(if is_any { Self::any() } else { Self { alternatives } })
    }

    /// Returns whether a version is in the range. Text that is not a version matches only the range of any version.
    #[must_use]
    pub fn matches(&self, version: &str) -> bool {
        match version_of(version) {
            Some(version) => self.contains(&version),
            None => self.alternatives.is_empty(),
        }
    }

    fn contains(&self, version: &Version) -> bool {
        let is_stable = version.pre.is_empty();
        let fits = |bounds: &Vec<VersionBound>| {
            let named =
                is_stable || bounds.iter().any(|bound| version.cmp_precedence(&bound.version).is_eq());
            named && bounds.iter().all(|bound| bound.admits(version))
        };
        if self.alternatives.is_empty() { is_stable } else { self.alternatives.iter().any(fits) }
    }
}

impl VersionBound {
    fn admits(&self, version: &Version) -> bool {
        let order = version.cmp_precedence(&self.version);
        match self.limit {
            Limiting::AtLeast => order.is_ge(),
            Limiting::Above => order.is_gt(),
            Limiting::AtMost => order.is_le(),
            Limiting::Below => order.is_lt(),
        }
    }
}

/// Bounds that must all hold; an empty list for any version.
fn alternative(text: &str) -> Option<Vec<VersionBound>> {
    // An empty part next to `||` is invalid.
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

/// Converts one comparator to bounds. Missing numbers are free: `1.2` is every `1.2.x`.
fn comparator(operator: &str, version: &str) -> Option<Vec<VersionBound>> {
    let (low, given) = partial(version)?;
    let bound = |limit: Limiting, version: &Version| VersionBound { limit, version: version.clone() };
    let core = [low.major, low.minor, low.patch];
    let next = |place: usize| stable(bump_version(core, place));
    let until = |place: usize| vec![bound(Limiting::AtLeast, &low), bound(Limiting::Below, &next(place))];
    if given == 0 {
        return matches!(operator, "" | "=" | "^" | "~" | ">=" | "<=").then(Vec::new);
    }
    let whole = given == 3;
    let bounds = match operator {
        "" | "=" if whole => vec![bound(Limiting::AtLeast, &low), bound(Limiting::AtMost, &low)],
        "" | "=" => until(given - 1),
        ">=" => vec![bound(Limiting::AtLeast, &low)],
        "<" => vec![bound(Limiting::Below, &low)],
        ">" if whole => vec![bound(Limiting::Above, &low)],
        ">" => vec![bound(Limiting::AtLeast, &next(given - 1))],
        "<=" if whole => vec![bound(Limiting::AtMost, &low)],
        "<=" => vec![bound(Limiting::Below, &next(given - 1))],
        "~" => until(given.min(2) - 1),
        // The leftmost non-zero number stays fixed; in `^0.0` all given numbers do.
        "^" => until(core.iter().take(given).position(|number| *number > 0).unwrap_or(given - 1)),
        _ => return None,
    };
    Some(bounds)
}

fn stable([major, minor, patch]: [u64; 3]) -> Version {
    Version::new(major, minor, patch)
}

/// The first version in which the number at `place` is one higher.
fn bump_version(core: [u64; 3], place: usize) -> [u64; 3] {
    let mut raised = [0; 3];
    for (index, (to, from)) in raised.iter_mut().zip(core).enumerate().take(place + 1) {
        *to = from.saturating_add(u64::from(index == place));
    }
    raised
}

/// Parses a version that may be short, such as `1`, `1.2` or `1.x`. Missing numbers are zero; also returns how many are
/// given.
fn partial(text: &str) -> Option<(Version, usize)> {
    if let Some(version) = version_of(text) {
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
    (open || given < 3).then(|| (stable(core), given))
}

/// Parses a full version. Build metadata after `+` is ignored in comparisons.
fn version_of(text: &str) -> Option<Version> {
    if fits(text, MAX_LENGTH) { Version::parse(text).ok() } else { None }
}

/// Parses a number without a sign and without leading zeros.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;
