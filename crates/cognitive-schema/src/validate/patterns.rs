//! Estimates the cost of a pattern from its characters alone. Compiles no pattern.
//!
//! Most patterns are matched by an automaton in one pass. It stays small unless many positions follow an unbounded
//! repetition. `[01]*1[01]{3000}2` has three thousand of them, and every character of the text then costs three
//! thousand steps. Look-around and back-references are matched by backtracking, which can take far longer. Only
//! look-aheads directly after `^` are as cheap as the rest.

/// Characters of one pattern. No real one is longer, and compiling takes time with the length.
const MAX_LENGTH: usize = 2_000;

/// With at most this many positions after an unbounded repetition, the automaton stays small for any text.
const FEW_POSITIONS: u64 = 12;

/// With more of these positions than this, only short texts are matched.
const MANY_POSITIONS: u64 = 200;

/// Positions times characters for a pattern with many positions: about fifty milliseconds.
const MAX_POSITION_STEPS: u64 = 2_000_000;

/// Positions of a pattern that is matched by backtracking. Backtracking takes time that doubles with each position.
const MAX_TRIED_POSITIONS: u64 = 24;

/// Characters of a text that is matched by backtracking. Backtracking may start again at every character.
const MAX_TRIED_TEXT_LENGTH: u64 = 500;

/// A repetition with a higher maximum than this counts as unbounded.
const LARGE_COUNT: u64 = 100;

/// The cost of matching a pattern, for each character of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Effort {
    /// One lookup in a small table.
    #[default]
    Light,
    /// Up to one step for every position of the pattern.
    Heavy,
    /// Backtracking, up to the limit of the validator.
    Tried,
}

/// The estimated cost of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) effort: Effort,
    /// The longest text that is matched, in characters; `None` for any length.
    pub(super) longest_text: Option<u64>,
    /// Approximate number of states of the automaton.
    pub(super) states: u64,
}

/// Estimates the cost of a pattern, or says why it is refused.
pub(super) fn weigh(pattern: &str) -> Result<Weight, String> {
    if !crate::text::fits(pattern, MAX_LENGTH) {
        return Err(format!("the pattern has more than {MAX_LENGTH} characters"));
    }
    let scan = Scan::new(pattern)?;
    let Sum { positions, hazard, states, .. } = scan.whole;
    let (effort, longest_text) = if scan.is_tried {
        if positions > MAX_TRIED_POSITIONS {
            return Err("a pattern with look-around or a back-reference must be shorter, unless it only \
                 looks ahead, right after `^`"
                .to_owned());
        }
        (Effort::Tried, Some(MAX_TRIED_TEXT_LENGTH))
    } else {
        let effort = if hazard > FEW_POSITIONS { Effort::Heavy } else { Effort::Light };
        (effort, (hazard > MANY_POSITIONS).then(|| MAX_POSITION_STEPS / hazard))
    };
    Ok(Weight { effort, longest_text, states })
}

/// The totals of one part of a pattern.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    /// Characters and classes, multiplied by their repetitions.
    positions: u64,
    /// Positions inside or after an unbounded repetition.
    hazard: u64,
    states: u64,
    /// True if a part repeats without bound.
    is_endless: bool,
}

impl Sum {
    fn atom(states: u64) -> Self {
        Self { positions: 1, states, ..Self::default() }
    }

    /// This part followed by `next`. After an unbounded repetition, every position counts as a hazard.
    fn then(self, next: Self) -> Self {
        let hazard = if self.is_endless { next.positions } else { next.hazard };
        Self {
            positions: self.positions.saturating_add(next.positions),
            hazard: self.hazard.saturating_add(hazard),
            states: self.states.saturating_add(next.states),
            is_endless: self.is_endless || next.is_endless,
        }
    }

    fn repeat(self, count: PatternCount) -> Self {
        let is_endless = count.is_endless || count.most > LARGE_COUNT;
        let positions = self.positions.saturating_mul(count.most);
        Self {
            positions,
            hazard: if is_endless { positions } else { self.hazard.saturating_mul(count.most) },
            states: self.states.saturating_mul(count.most),
            is_endless: is_endless || self.is_endless,
        }
    }
}

#[derive(Clone, Copy)]
struct PatternCount {
    most: u64,
    is_endless: bool,
}

/// A group that is still open.
#[derive(Default)]
struct Group {
    before: Sum,
    looks: bool,
    /// True for a look-ahead directly after `^`, which costs no more than other groups.
    leads: bool,
}

struct Scan<'a> {
    rest: &'a str,
    /// The innermost group so far, without its last part.
    whole: Sum,
    /// The last part, to which a repetition applies.
    last: Sum,
    groups: Vec<Group>,
    /// True while only `^` and look-aheads have been read.
    is_leading: bool,
    last_looks: bool,
    is_tried: bool,
}

impl<'a> Scan<'a> {
    fn new(pattern: &'a str) -> Result<Self, String> {
        // Without `^`, a match may start anywhere, as after an unbounded repetition.
        let anchored = pattern.strip_prefix('^').filter(|rest| !has_open_alternative(rest));
        let whole = Sum { is_endless: anchored.is_none(), ..Sum::default() };
        let mut scan = Self {
            rest: anchored.unwrap_or(pattern),
            whole,
            last: Sum::default(),
            groups: Vec::new(),
            is_leading: anchored.is_some(),
            last_looks: false,
            is_tried: false,
        };
        while let Some(character) = scan.next() {
            scan.read(character)?;
        }
        scan.settle();
        Ok(scan)
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn settle(&mut self) {
        self.whole = self.whole.then(std::mem::take(&mut self.last));
    }

    fn push(&mut self, part: Sum) {
        self.settle();
        self.last = part;
        self.last_looks = false;
        self.is_leading = false;
    }

    fn read(&mut self, character: char) -> Result<(), String> {
        match character {
            '(' => return self.open(),
            ')' => self.close(),
            '[' => self.class(),
            '\\' => self.escape(),
            '*' | '+' => self.repeat(PatternCount { most: 1, is_endless: true }),
            '?' => self.repeat(PatternCount { most: 1, is_endless: false }),
            '{' => match self.count() {
                Some(count) => self.repeat(count),
                None => self.push(Sum::atom(1)),
            },
            '|' | '^' | '$' => self.push(Sum::default()),
            '.' => self.push(Sum::atom(WIDE)),
            other => self.push(Sum::atom(if other.is_ascii() { 1 } else { 4 })),
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(), String> {
        let ahead = self.skip("?=") || self.skip("?!");
        let looks = ahead || self.skip("?<=") || self.skip("?<!");
        if looks && self.groups.iter().any(|group| group.looks) {
            return Err("look-arounds in a pattern cannot be nested".to_owned());
        }
        let leads = ahead && self.is_leading && self.groups.is_empty();
        // `(?>` and `(?(` are matched by backtracking as well.
        self.is_tried |= (looks && !leads) || self.rest.starts_with("?>") || self.rest.starts_with("?(");
        for plain in ["?:", "?"] {
            if self.skip(plain) {
                break;
            }
        }
        self.settle();
        let before = std::mem::take(&mut self.whole);
        self.whole.is_endless = before.is_endless && !leads;
        self.groups.push(Group { before, looks, leads });
        Ok(())
    }

    fn close(&mut self) {
        self.settle();
        let Some(Group { before, looks, leads }) = self.groups.pop() else { return };
        let mut inner = std::mem::replace(&mut self.whole, before);
        if leads {
            // A look-ahead is matched separately, and the rest starts at the same position.
            inner.is_endless = false;
        }
        self.last = inner;
        self.last_looks = looks;
        self.is_leading = leads;
    }

    fn class(&mut self) {
        let mut states = if self.skip("^") { WIDE } else { 1 };
        // Some dialects read a leading `]` as a literal; here it ends the class.
        while let Some(character) = self.next() {
            match character {
                ']' => break,
                '\\' => states = states.max(self.escaped_states()),
                other if !other.is_ascii() => states = states.max(WIDE),
                _ => {}
            }
        }
        self.push(Sum::atom(states));
    }

    fn escape(&mut self) {
        let is_back_reference = self.rest.starts_with(|next: char| matches!(next, '1'..='9' | 'k' | 'g'));
        self.is_tried |= is_back_reference || self.rest.starts_with(['K', 'G']);
        let states = self.escaped_states();
        self.push(if states == 0 { Sum::default() } else { Sum::atom(states) });
    }

    /// Reads what follows a backslash.
    fn escaped_states(&mut self) -> u64 {
        match self.next() {
            Some('p' | 'P') => {
                if self.skip("{") {
                    while self.next().is_some_and(|next| next != '}') {}
                }
                UNICODE
            }
            Some('D' | 'W' | 'S' | 'u' | 'x') => WIDE,
            Some('b' | 'B') | None => 0,
            Some(_) => 1,
        }
    }

    fn repeat(&mut self, count: PatternCount) {
        self.last = self.last.repeat(count);
        // A possessive `a++` or a repeated look-around is matched by backtracking.
        self.is_tried |= self.last_looks || self.skip("+");
        self.skip("?");
        self.is_leading = false;
    }

    /// Reads `n}`, `n,}` or `n,m}`. Any other brace is a literal.
    fn count(&mut self) -> Option<PatternCount> {
        let (inner, rest) = self.rest.split_once('}')?;
        let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(least) || !(most.is_empty() || is_number(most)) {
            return None;
        }
        self.rest = rest;
        let number = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX).max(1);
        let is_endless = most.is_empty();
        Some(PatternCount { most: number(if is_endless { least } else { most }), is_endless })
    }
}

/// Returns whether a pattern has a `|` outside all groups. Its `^` then applies only to the first alternative.
fn has_open_alternative(pattern: &str) -> bool {
    let (mut depth, mut in_class, mut is_escaped) = (0_i64, false, false);
    pattern.chars().any(|character| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        match character {
            '\\' => is_escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth -= 1,
            '|' if !in_class => return depth == 0,
            _ => {}
        }
        false
    })
}

/// States for "any character" and other classes beyond ASCII, which the automaton encodes byte by byte.
const WIDE: u64 = 10;

/// States for a class such as `\p{L}`.
const UNICODE: u64 = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn effort(pattern: &str) -> (Effort, Option<u64>) {
        let weight = weigh(pattern).unwrap();
        (weight.effort, weight.longest_text)
    }

    #[test]
    fn ordinary_patterns_are_light_and_take_any_text() {
        for pattern in [
            r"\S",
            r"^\s*\S",
            "^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$",
            "^(image|audio|video)/[a-z0-9.+-]+$",
            "^data:image/(png|jpeg);base64,[A-Za-z0-9+/=]+$",
            "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
            "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
            r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[a-z]{2,}$",
            r"^https?://\S+$",
            r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z\d@$!%*?&]{8,64}$",
            r"^(?!.*--)[a-z-]+$",
            "",
            "a{x}",
        ] {
            assert_eq!(effort(pattern), (Effort::Light, None), "{pattern}");
        }
    }

    #[test]
    fn positions_after_an_endless_repetition_make_a_pattern_heavy() {
        assert_eq!(effort("[01]*1[01]{30}2"), (Effort::Heavy, None));
        assert_eq!(effort("^(?:[01]*1[01]{3000}2|[01]*1[01]{2900}3)"), (Effort::Heavy, Some(338)));
        assert_eq!(effort("^[01]{0,5000}1[01]{30}2"), (Effort::Heavy, Some(397)));
        assert_eq!(effort("1[01]{30}2"), (Effort::Heavy, None));
        assert_eq!(effort("^a|1[01]{30}2"), (Effort::Heavy, None));
        assert_eq!(effort("((((a{99}){99}){99}){99}){99}").1, Some(0));
    }

    #[test]
    fn look_around_and_back_references_are_tried_on_short_texts_only() {
        for pattern in [
            "^(a+)+(?=b)$",
            "^(?:(?!foo).)*$",
            r#"^(["']).*\1$"#,
            r"(?<!\d)\d{4}(?!\d)",
            "(?=.*a)b",
            "^(?=a)*b",
            "^(?>a*)b",
            "a++",
        ] {
            assert_eq!(effort(pattern), (Effort::Tried, Some(MAX_TRIED_TEXT_LENGTH)), "{pattern}");
        }
        assert!(weigh("^(?:a(?=(?:a(?=[^c]*))*))*$").unwrap_err().contains("cannot be nested"));
        assert!(weigh(r"(a*)\1(?:[ab]*a[ab]{200}c)?b").unwrap_err().contains("must be shorter"));
        assert!(weigh(&"a".repeat(MAX_LENGTH + 1)).is_err());
    }
}
