//! Tool calls on the wire: assembly from fragments, and the JSON shapes shared by several services. Runs no tool and
//! validates nothing; calls are returned as the model wrote them. Stores only as much as the runtime uses, so that a
//! turn with thousands of calls exhausts neither memory nor the next request.

use cognitive_contract::ports::ModelCall;
use cognitive_contract::tools::{MAX_CALLS, ToolCall, ToolReply, ToolSpec};
use serde_json::{Map, Value};

use crate::llm::borrowed_body::Node;
use crate::llm::frame_value::FrameValue;

/// The longest text of all calls of one turn together, in bytes. No legitimate turn reaches it.
const MAX_LENGTH: usize = 1 << 20;
/// The longest id and name of a call together, in bytes. Both are repeated in records and in the next request.
const MAX_LABEL_LENGTH: usize = 1 << 10;

/// Returns whether the model may call a tool in this call.
pub(crate) fn offers(call: &ModelCall) -> bool {
    !call.tools.is_empty() && !call.answer_now
}

/// The calls of one turn received so far: at most `MAX_CALLS`, and one more that represents all excess calls.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    slots: Vec<Slot>,
    /// The number of bytes in the slots.
    kept: usize,
    /// The number of bytes received.
    came: usize,
    /// The number of calls that are not stored.
    more: u64,
    /// The index and the id of the last call that was not stored.
    last: (u64, String),
}

#[derive(Debug)]
struct Slot {
    index: u64,
    call: ToolCall,
}

impl Slot {
    fn bytes(&self) -> usize {
        self.call.id.len() + self.call.name.len() + self.call.arguments.len()
    }

    /// Adds a fragment of a call; `room` is the maximum size of the whole call in bytes.
    fn take(&mut self, id: &str, name: &str, arguments: &str, room: usize) {
        let call = &mut self.call;
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        call.name.push_str(name);
        if !call.too_long {
            call.arguments.push_str(arguments);
        }
        if call.name.len() > MAX_LABEL_LENGTH {
            call.name.truncate(call.name.floor_char_boundary(MAX_LABEL_LENGTH));
            call.too_long = true;
        }
        if self.bytes() > room {
            self.call.too_long = true;
        }
        if self.call.too_long {
            // Truncated JSON is invalid. The arguments become an empty object, because a service may parse them when
            // the turn is sent back.
            self.call.arguments = String::from("{}");
        }
    }
}

impl Calls {
    /// Adds a fragment and returns whether its call is stored. Some services give all calls of a turn the same index;
    /// a named fragment with a different id then starts a new call.
    pub(crate) fn piece(&mut self, index: u64, id: &str, name: &str, arguments: &str) -> bool {
        self.came = self.came.saturating_add(id.len() + name.len() + arguments.len());
        let goes_on = |known: &str| name.is_empty() || id.is_empty() || known == id;
        if self.more > 0 && self.last.0 == index && goes_on(&self.last.1) {
            return false;
        }
        let slot = self.slots.iter_mut().rev().find(|slot| slot.index == index);
        if let Some(slot) = slot.filter(|slot| goes_on(&slot.call.id)) {
            let before = slot.bytes();
            slot.take(id, name, arguments, (MAX_LENGTH + before).saturating_sub(self.kept));
            self.kept = self.kept + slot.bytes() - before;
            return true;
        }
        let label = id.len() + name.len();
        if self.slots.len() > MAX_CALLS || label > MAX_LABEL_LENGTH || self.kept + label > MAX_LENGTH {
            self.more += 1;
            self.last = (index, id.to_owned());
            return false;
        }
        let mut slot = Slot { index, call: ToolCall::new(id, name, "") };
        slot.take("", "", arguments, MAX_LENGTH.saturating_sub(self.kept));
        self.kept += slot.bytes();
        self.slots.push(slot);
        true
    }

    /// Adds a complete call, of which fragments may have arrived before.
    pub(crate) fn settle(&mut self, index: u64, id: &str, name: &str, arguments: &str) {
        let known = self.slots.iter().rev().find(|slot| slot.index == index && slot.call.id == id);
        match known {
            None => self.piece(index, id, name, arguments),
            Some(slot) => slot.call.arguments.is_empty() && self.piece(index, id, "", arguments),
        };
    }

    /// Adds arguments to a call that has begun. Blocks of other types with this index are ignored.
    pub(crate) fn append_arguments(&mut self, index: u64, arguments: &str) {
        if self.slots.iter().any(|slot| slot.index == index) {
            self.piece(index, "", "", arguments);
        } else {
            self.came = self.came.saturating_add(arguments.len());
        }
    }

    /// Adds a complete call of a service that does not number calls. Returns the call if it is stored.
    pub(crate) fn add_complete(
        &mut self,
        id: &str,
        name: &str,
        arguments: Option<&FrameValue<'_>>,
    ) -> Option<&ToolCall> {
        let arguments = arguments.map(ToString::to_string).unwrap_or_default();
        let index = self.slots.len() as u64 + self.more;
        let is_kept = self.piece(index, id, name, &arguments);
        self.slots.last().filter(|_| is_kept).map(|slot| &slot.call)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ToolCall> {
        self.slots.iter().map(|slot| &slot.call)
    }

    /// Applies a change to every id, every name and all arguments.
    pub(crate) fn each_member(&mut self, change: impl Fn(&mut String)) {
        for Slot { call, .. } in &mut self.slots {
            [&mut call.id, &mut call.name, &mut call.arguments].into_iter().for_each(&change);
        }
    }

    /// Applies a change to every name and all arguments.
    pub(crate) fn each_text(&mut self, change: impl Fn(&mut String)) {
        for Slot { call, .. } in &mut self.slots {
            [&mut call.name, &mut call.arguments].into_iter().for_each(&change);
        }
    }

    /// Returns the number of calls that are not stored.
    pub(crate) fn dropped_count(&self) -> u64 {
        self.more
    }

    /// Returns the number of bytes received, including those of calls that are not stored.
    pub(crate) fn bytes(&self) -> usize {
        self.came
    }

    /// Returns the arguments of the call with this index as an object, empty if they are invalid; `None` if the call
    /// is not stored.
    pub(crate) fn arguments(&self, index: u64) -> Option<Value> {
        self.slots.iter().find(|slot| slot.index == index).map(|slot| object(&slot.call))
    }
}

/// Returns the arguments of a call as an object, empty if they are invalid.
pub(crate) fn object(call: &ToolCall) -> Value {
    let value = serde_json::from_str::<Map<String, Value>>(&call.arguments);
    Value::Object(value.unwrap_or_default())
}

/// Builds the tool declarations in the shape of most services.
pub(crate) fn functions(call: &ModelCall) -> Node<'_> {
    Node::List(call.tools.iter().map(|spec| function_of(spec)).collect())
}

fn function_of(spec: &ToolSpec) -> Node<'_> {
    Node::object([("type", "function".into()), ("function", declaration(spec, "parameters"))])
}

/// Builds a tool declaration: name, description, and the argument schema under the service's member name.
pub(crate) fn declaration<'a>(spec: &'a ToolSpec, parameters: &'static str) -> Node<'a> {
    Node::object([
        ("name", Node::from(&spec.name)),
        ("description", Node::from(&spec.description)),
        (parameters, Node::from(&spec.parameters)),
    ])
}

/// Builds the turns with tool calls, followed by a message for each reply, in the shape of most services.
pub(crate) fn rounds<'a>(
    call: &'a ModelCall,
    reply: impl Fn(&'a ToolCall, &'a ToolReply) -> Node<'a> + Copy,
) -> impl Iterator<Item = Node<'a>> {
    call.rounds.iter().flat_map(move |round| {
        let replies = round.calls.iter().map(move |(call, told)| reply(call, told));
        [Node::from(&round.turn)].into_iter().chain(replies)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(pieces: &[(u64, &str, &str, &str)]) -> Vec<(String, String, String)> {
        let mut calls = Calls::default();
        for (index, id, name, arguments) in pieces {
            calls.piece(*index, id, name, arguments);
        }
        calls.iter().map(|call| (call.id.clone(), call.name.clone(), call.arguments.clone())).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn pieces_of_the_same_number_are_one_call() {
        let pieces = [(0, "a", "f", ""), (0, "", "", "{\"x\""), (1, "b", "g", "{}"), (0, "", "", ":1}")];
        assert_eq!(calls(&pieces), [call("a", "f", "{\"x\":1}"), call("b", "g", "{}")]);
    }

    // Some servers number all calls of a turn with 0; others repeat the id, or generate a new one, in every fragment.
    #[test]
    fn another_name_with_another_id_is_another_call() {
        assert_eq!(
            calls(&[(0, "a", "f", "{}"), (0, "b", "f", "{}")]),
            [call("a", "f", "{}"), call("b", "f", "{}")]
        );
        assert_eq!(calls(&[(0, "a", "f", "{"), (0, "a", "", "}")]), [call("a", "f", "{}")]);
        assert_eq!(calls(&[(0, "a", "f", "{"), (0, "z", "", "}")]), [call("a", "f", "{}")]);
    }

    #[test]
    fn of_a_turn_that_never_stops_calling_only_the_first_calls_are_kept() {
        for same_number in [true, false] {
            let mut calls = Calls::default();
            for index in 0..100_000_u64 {
                let number = if same_number { 0 } else { index };
                calls.piece(number, &format!("id{index}"), "name", "{");
                calls.piece(number, "", "", "}");
            }
            assert_eq!((calls.iter().count(), calls.dropped_count()), (MAX_CALLS + 1, 99_983));
            assert!(calls.iter().all(|call| call.arguments == "{}" && !call.too_long));
        }
        let mut calls = Calls::default();
        let kept = (0..40).filter(|_| calls.add_complete("", "name", None).is_some()).count();
        assert_eq!((kept, calls.dropped_count()), (MAX_CALLS + 1, 23), "a service without numbers and ids");
    }

    #[test]
    fn a_call_that_is_too_long_stays_a_call_without_arguments() {
        let mut calls = Calls::default();
        calls.piece(0, "a", "f", "{}");
        for _ in 0..3_000 {
            calls.piece(1, "", "", &"x".repeat(1_000));
        }
        calls.piece(1, "b", "", "");
        calls.piece(2, "c", "g", "{}");
        calls.piece(3, &"d".repeat(2_000), "g", "{}");
        calls.piece(4, "e", &"g".repeat(800), "");
        calls.piece(4, "", &"h".repeat(800), "{}");
        let found: Vec<(&str, &str, bool)> =
            calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str(), call.too_long)).collect();
        assert_eq!(found, [("a", "{}", false), ("b", "{}", true), ("c", "{}", false), ("e", "{}", true)]);
        assert_eq!(calls.dropped_count(), 1, "an id that nobody would send back");
        assert!(calls.kept < 2_000 && calls.bytes() > 3_000_000);
    }
}
