//! Exact money: US dollars as a whole number of picodollars, so that sums never round. A price per million
//! tokens with up to six decimals is a whole number of picodollars per token.
//! Refuses amounts that it cannot represent exactly.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Number, Value};

/// The currency of every amount.
pub const CURRENCY: &str = "USD";
/// Units per dollar.
const PER_DOLLAR: u64 = 1_000_000_000_000;
/// The decimals of a dollar in that unit.
const DECIMALS: usize = 12;

/// An amount of US dollars. Sums saturate at about 18 million dollars, which is above every limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash, JsonSchema)]
#[schemars(with = "f64", inline, description = "US dollars", extend("minimum" = 0))]
pub struct Money(u64);

impl Money {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The maximum, above every limit.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates an amount from picodollars.
    #[must_use]
    pub const fn from_pico(pico: u64) -> Self {
        Self(pico)
    }

    /// Returns the amount in picodollars.
    #[must_use]
    pub const fn pico(self) -> u64 {
        self.0
    }

    /// Parses an amount in dollars, such as `0.05`. Returns `None` if it is not a number, is negative, or has
    /// more than twelve decimals.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.contains(['e', 'E']) {
            return Self::from_scientific(text);
        }
        let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
        let rest = rest.trim_end_matches('0');
        let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        if text.is_empty()
            || (whole.is_empty() && rest.is_empty())
            || rest.len() > DECIMALS
            || !is_number(whole)
            || !is_number(rest)
        {
            return None;
        }
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let part: u64 = format!("{rest:0<DECIMALS$}").parse().ok()?;
        whole.checked_mul(PER_DOLLAR)?.checked_add(part).map(Self)
    }

    /// Parses scientific notation, in which many programs print small floats.
    fn from_scientific(text: &str) -> Option<Self> {
        let (digits, exponent) = text.split_once(['e', 'E'])?;
        let exponent: i32 = exponent.parse().ok()?;
        let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
        let point = i32::try_from(whole.len()).ok()?.checked_add(exponent)?;
        let all = format!("{whole}{rest}");
        let plain = match usize::try_from(point) {
            Err(_) => format!("0.{}{all}", "0".repeat(usize::try_from(point.checked_neg()?).ok()?.min(64))),
            Ok(point) if point >= all.len() => format!("{all:0<width$}", width = point.min(64)),
            Ok(point) => format!("{}.{}", all.get(..point)?, all.get(point..)?),
        };
        Self::parse(&plain)
    }

    /// Returns the sum, saturating.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the difference; zero if the other amount is larger.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the product, saturating.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// Converts into a JSON number, in dollars. Exact up to nine thousand dollars.
    #[must_use]
    pub fn to_number(self) -> Number {
        let text = self.to_string();
        // A whole amount is written as an integer, because other languages would drop the `.0` anyway.
        if let Ok(whole) = text.parse::<u64>() {
            return whole.into();
        }
        let dollars = text.parse::<f64>().ok().and_then(Number::from_f64);
        dollars.unwrap_or_else(|| Number::from(0))
    }

    /// Parses a JSON number, or a string that contains one.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Self::parse(&number.to_string()),
            Value::String(text) => Self::parse(text),
            _ => None,
        }
    }
}

impl std::iter::Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::plus)
    }
}

/// Prints dollars without trailing zeros: `0.0125`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:0>DECIMALS$}", self.0 / PER_DOLLAR, self.0 % PER_DOLLAR);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_number().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(&value)
            .ok_or_else(|| de::Error::custom(format!("expected an amount in US dollars: `{value}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written_exactly() {
        for (text, pico) in [
            ("0", 0),
            ("5", 5 * PER_DOLLAR),
            ("0.05", 50_000_000_000),
            (".5", 500_000_000_000),
            ("0.000000000001", 1),
            ("1e-12", 1),
            ("2.5e-7", 250_000),
            ("1.5E1", 15 * PER_DOLLAR),
            ("0.10", 100_000_000_000),
        ] {
            assert_eq!(Money::parse(text), Some(Money(pico)), "{text}");
        }
        for text in
            ["", ".", "-1", "1.2.3", "x", "0.0000000000001", "99999999999999", "1e99", "NaN", "1e-999999999"]
        {
            assert_eq!(Money::parse(text), None, "{text}");
        }
        assert_eq!(Money(12_500_000_000).to_string(), "0.0125");
        assert_eq!(Money(3 * PER_DOLLAR).to_string(), "3");
    }

    #[test]
    fn what_json_carries_comes_back() {
        let mut pico = 1_u64;
        while pico < 9_000 * PER_DOLLAR {
            let number = serde_json::to_string(&Money(pico)).unwrap();
            let back: Money = serde_json::from_str(&number).unwrap();
            assert_eq!(back, Money(pico), "{number}");
            pico = pico * 7 / 3 + 1;
        }
        assert!(serde_json::from_str::<Money>("[]").is_err());
    }

    #[test]
    fn sums_stay_at_the_end_of_the_scale() {
        assert_eq!(Money::MAX.plus(Money(1)), Money::MAX);
        assert_eq!(Money(2).times(u64::MAX), Money::MAX);
        assert_eq!(Money(1).minus(Money(2)), Money::ZERO);
        assert_eq!([Money(1), Money(2)].into_iter().sum::<Money>(), Money(3));
    }
}
