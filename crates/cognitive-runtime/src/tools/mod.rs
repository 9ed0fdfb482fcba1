//! Tools for models that can call functions: the two built-in ones, and the dialogue in which a model uses them. A
//! tool that the module or a caller of it denies is neither offered nor run. (POL-001…006, S-35)
//!
//! `built_in` is the default tool box of every [`Host`](crate::Host); the program that builds the host can add more.
//! Tool results are data: they go to the model unchanged and are not interpreted here.

mod current_time;
mod execute;
mod hold_back;
mod json_query;
mod tool_loop;

use cognitive_contract::tools::ToolBox;

use crate::clock::Clock;

pub use current_time::CurrentTime;
pub(crate) use hold_back::HeldText;
pub use json_query::JsonQuery;
pub(crate) use tool_loop::{MAX_ROUNDS, ToolLoop, instruct, offered_tools};

/// Returns the built-in tools: `current_time` and `json_query`. Neither accesses anything outside.
#[must_use]
pub fn built_in(clock: &Clock) -> ToolBox {
    ToolBox::default().with_trusted(CurrentTime::new(clock.clone())).with_trusted(JsonQuery)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_fit_into_a_box_and_need_nothing() {
        let tools = ToolBox::default().with(CurrentTime::new(Clock::new())).unwrap().with(JsonQuery).unwrap();
        let built_in = built_in(&Clock::new());
        assert!(tools.specs().eq(built_in.specs()));
        let names: Vec<&str> = tools.specs().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["current_time", "json_query"]);
        assert!(tools.specs().all(|spec| spec.needs.is_empty()));
    }
}
