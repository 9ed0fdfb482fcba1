//! `current_time`: the time of the host's clock, as text. Knows no time zone but UTC and makes no request.

use std::time::SystemTime;

use cognitive_contract::ports::PortFuture;
use cognitive_contract::tools::{Tool, ToolError, ToolSpec};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::Clock;

/// The tool `current_time`.
#[derive(Debug, Clone)]
pub struct CurrentTime {
    clock: Clock,
}

impl CurrentTime {
    /// A tool that reads this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock }
    }
}

impl Tool for CurrentTime {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        ToolSpec::new("current_time", "The present date and time in UTC, as of RFC 3339.", parameters)
    }

    fn call<'a>(&'a self, _: &'a Value) -> PortFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move { text(self.clock.now()).map(|time| json!({ "time": time })) })
    }
}

/// Formats whole seconds: a model has no use for more, and two calls in one answer should agree.
fn text(now: SystemTime) -> Result<String, ToolError> {
    let time = Timestamp::try_from(now).map_err(|_| ToolError::new("the clock shows no time"))?;
    Ok(format!("{time:.0}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_time_is_rfc_3339_in_utc() {
        let at = |seconds, nanos| text(SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos)).unwrap();
        assert_eq!(at(0, 0), "1970-01-01T00:00:00Z");
        assert_eq!(at(1_793_000_000, 999_000_000), "2026-10-26T07:33:20Z");
    }
}
