//! Calls of tools on the wire: how they are put together from pieces, and the words that several services share.
//! Calls nothing and judges nothing: what a model asks for is handed on as it wrote it.

use cognitive_contract::ports::ModelCall;
use cognitive_contract::tools::{ToolCall, ToolReply, ToolSpec};
use serde_json::{Map, Value};

use crate::llm::borrowed::Node;

/// The longest text that the calls of one turn may have together, in bytes. Nobody means more.
const LONGEST: usize = 1 << 20;

/// Whether a model may call something in this call.
pub(crate) fn offers(call: &ModelCall) -> bool {
    !call.tools.is_empty() && !call.answer_now
}

/// The calls of one turn, as far as they have come.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    slots: Vec<Slot>,
    bytes: usize,
}

#[derive(Debug)]
struct Slot {
    index: u64,
    call: ToolCall,
}

impl Calls {
    /// Takes a piece. Services number calls; some give all of them the same number, and then another id begins another.
    pub(crate) fn piece(&mut self, index: u64, id: &str, name: &str, arguments: &str) {
        self.bytes = self.bytes.saturating_add(id.len() + name.len() + arguments.len());
        if self.bytes > LONGEST {
            return;
        }
        let slot = self.slots.iter_mut().rev().find(|slot| slot.index == index);
        match slot.filter(|slot| name.is_empty() || id.is_empty() || slot.call.id == id) {
            Some(Slot { call, .. }) => {
                if call.id.is_empty() {
                    id.clone_into(&mut call.id);
                }
                call.name.push_str(name);
                call.arguments.push_str(arguments);
            }
            None => {
                let call = ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() };
                self.slots.push(Slot { index, call });
            }
        }
    }

    /// Takes more of the arguments of a call that has begun; whatever else has this number is no call of ours.
    pub(crate) fn more(&mut self, index: u64, arguments: &str) {
        if self.slots.iter().any(|slot| slot.index == index) {
            self.piece(index, "", "", arguments);
        }
    }

    /// Takes a whole call of a service that does not number them.
    pub(crate) fn whole(&mut self, id: &str, name: &str, arguments: Option<&Value>) {
        let arguments = arguments.map(ToString::to_string).unwrap_or_default();
        self.piece(self.slots.len() as u64, id, name, &arguments);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ToolCall> {
        self.slots.iter().map(|slot| &slot.call)
    }

    /// The arguments of the call with this number, as an object; nothing if they are none.
    pub(crate) fn arguments(&self, index: u64) -> Value {
        self.slots
            .iter()
            .find(|slot| slot.index == index)
            .map_or_else(|| Value::Object(Map::new()), |slot| object(&slot.call))
    }
}

/// The arguments of a call, as an object; nothing if they are none.
pub(crate) fn object(call: &ToolCall) -> Value {
    let value = serde_json::from_str::<Map<String, Value>>(&call.arguments);
    Value::Object(value.unwrap_or_default())
}

/// The tools in the form that most services take.
pub(crate) fn functions(call: &ModelCall) -> Node<'_> {
    Node::List(call.tools.iter().map(|spec| function_of(spec)).collect())
}

fn function_of(spec: &ToolSpec) -> Node<'_> {
    Node::object([("type", "function".into()), ("function", declaration(spec, "parameters"))])
}

/// A tool: name, description, and the schema of its arguments under the service's word for it.
pub(crate) fn declaration<'a>(spec: &'a ToolSpec, parameters: &'static str) -> Node<'a> {
    Node::object([
        ("name", Node::from(&spec.name)),
        ("description", Node::from(&spec.description)),
        (parameters, Node::from(&spec.parameters)),
    ])
}

/// The turns in which tools were called, with a message for each reply, in the form that most services take.
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

    // Some servers number all calls of a turn with 0; others repeat the id, or make up a new one, in every piece.
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
    fn a_service_that_never_stops_calling_fills_no_memory() {
        let mut calls = Calls::default();
        for index in 0..100_000 {
            calls.piece(index, "id", "name", &"x".repeat(100));
        }
        assert!(calls.iter().count() < 20_000);
    }
}
