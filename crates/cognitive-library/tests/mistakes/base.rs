//! The valid modules that the table changes: `ticket` has no parts, `desk` and `guess` use `ticket` and `answer`, and
//! `caller` calls `ticket`.

use std::collections::BTreeMap;

type Files = BTreeMap<String, String>;

fn files(list: &[(&str, &str)]) -> Files {
    list.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

pub(crate) fn ticket() -> Files {
    files(&[
        ("module.yaml", TICKET),
        ("prompt.md", TICKET_PROMPT),
        ("schema.json", TICKET_SCHEMA),
        ("tests/one.input.json", "{\n  \"ticket\": \"I was charged twice.\"\n}\n"),
        ("tests/one.expected.json", "{\n  \"ok\": true,\n  \"team\": \"billing\"\n}\n"),
    ])
}

const TICKET: &str = r#"name: ticket
version: "1.0.0"
responsibility: Say which team answers a support ticket.
tier: decision
excludes: [answering the customer]
overflow: {enabled: false}
enums: {strategy: strict}
meta: {risk_rule: explicit}
tests: [tests/one.input.json -> tests/one.expected.json]
"#;

const TICKET_PROMPT: &str = r#"You sort support tickets. A refund above $100 is for billing; so is anything in US$.

- `data`:
  - `rationale`: why, in one sentence
  - `team`: who answers

Answer with an envelope, and fill `data.team`:

```json
{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Money"},
 "data": {"rationale": "Money was lost.", "team": "billing"}}
```

The ticket: $INPUT
"#;

const TICKET_SCHEMA: &str = r#"{
  "input": {
    "type": "object",
    "required": ["ticket"],
    "additionalProperties": false,
    "properties": {
      "ticket": { "type": "string", "minLength": 1 },
      "language": { "type": "string" }
    }
  },
  "data": {
    "type": "object",
    "required": ["rationale", "team"],
    "additionalProperties": false,
    "properties": {
      "rationale": { "type": "string", "minLength": 1 },
      "team": { "type": "string", "enum": ["billing", "technical", "sales"] }
    }
  },
  "meta": {
    "required": ["confidence", "risk", "explain"],
    "properties": { "explain": { "type": "string", "maxLength": 280 } }
  }
}
"#;

pub(crate) fn answer() -> Files {
    files(&[
        ("module.yaml", ANSWER),
        ("prompt.md", "Answer the ticket. Use an envelope.\n"),
        ("schema.json", ANSWER_SCHEMA),
    ])
}

const ANSWER: &str = r#"name: answer
version: "1.2.0"
responsibility: Answer a ticket as a member of a team.
tier: decision
excludes: [promising anything]
overflow: {enabled: false}
enums: {strategy: strict}
"#;

/// The data is described and open: it may have more members than the schema declares.
const ANSWER_SCHEMA: &str = r#"{
  "input": {
    "type": "object",
    "required": ["ticket", "team"],
    "properties": {
      "ticket": { "type": "string" },
      "team": { "type": "string" },
      "words": { "type": "integer", "default": 100 },
      "notes": { "type": "object" }
    }
  },
  "data": {
    "type": "object",
    "required": ["rationale", "reply"],
    "properties": {
      "rationale": { "type": "string" },
      "reply": { "type": "string" },
      "lines": { "type": "array", "items": { "type": "object", "properties": { "text": { "type": "string" } } } }
    }
  },
  "meta": {
    "required": ["confidence", "risk", "explain"],
    "properties": { "explain": { "type": "string", "maxLength": 280 } }
  }
}
"#;

pub(crate) fn desk() -> Files {
    files(&[
        ("module.yaml", DESK),
        ("prompt.md", "The parts answer with an envelope.\n"),
        ("schema.json", DESK_SCHEMA),
    ])
}

const DESK: &str = r#"name: desk
version: "1.0.0"
responsibility: Sort a ticket and answer it.
tier: decision
excludes: [promising anything]
overflow: {enabled: false}
enums: {strategy: strict}
composition:
  requires:
    - name: ticket
      version: "^1.0.0"
    - name: answer
      version: ">=1.0.0"
      optional: true
  dataflow:
    - from: input
      to: ticket
      mapping:
        ticket: $.text
    - from: [input, ticket.output]
      to: answer
      condition: "$.ticket.data.team != 'sales' && $.ticket.meta.confidence > 0.5"
      mapping:
        ticket: $.input.text
        team: $.ticket.data.team
    - from: [ticket.output, answer.output]
      to: output
      mapping:
        team: $.ticket.data.team
        reply: $.answer.data.reply
        lines: $.answer.data.lines[*].text
"#;

const DESK_SCHEMA: &str = r#"{
  "input": {
    "type": "object",
    "required": ["text"],
    "properties": { "text": { "type": "string" }, "size": { "type": "integer" } }
  },
  "data": {
    "type": "object",
    "required": ["rationale", "team"],
    "additionalProperties": false,
    "properties": {
      "rationale": { "type": "string", "minLength": 1 },
      "team": { "type": "string" },
      "reply": { "type": "string" },
      "lines": { "type": "array", "items": { "type": "string" } }
    }
  },
  "meta": {
    "required": ["confidence", "risk", "explain"],
    "properties": { "explain": { "type": "string", "maxLength": 280 } }
  }
}
"#;

pub(crate) fn guess() -> Files {
    files(&[
        ("module.yaml", GUESS),
        ("prompt.md", "The parts answer with an envelope.\n"),
        ("schema.json", GUESS_SCHEMA),
    ])
}

const GUESS: &str = r#"name: guess
version: "1.0.0"
responsibility: Sort a ticket, and answer it where that was sure.
tier: decision
excludes: [promising anything]
overflow: {enabled: false}
enums: {strategy: strict}
composition:
  pattern: conditional
  requires: [{name: ticket}, {name: answer}]
  dataflow:
    - {from: [input, ticket.output], to: answer, mapping: {ticket: $.input.ticket, team: $.ticket.data.team}}
  routing:
    - condition: "$.ticket.data.team == 'billing'"
      next: answer
    - condition: "$.ticket.meta.risk == 'low' || exists($.ticket.data.team)"
      next: null
"#;

const GUESS_SCHEMA: &str = r#"{
  "input": { "type": "object", "required": ["ticket"], "properties": { "ticket": { "type": "string" } } },
  "data": {
    "type": "object",
    "required": ["rationale"],
    "properties": { "rationale": { "type": "string", "minLength": 1 }, "team": { "type": "string" } }
  },
  "meta": {
    "required": ["confidence", "risk", "explain"],
    "properties": { "explain": { "type": "string", "maxLength": 280 } }
  }
}
"#;

/// A module without parts whose prompt calls another one.
pub(crate) fn caller() -> Files {
    files(&[
        ("module.yaml", CALLER),
        ("prompt.md", "First @call:ticket($.text), then answer with an envelope.\n"),
        ("schema.json", DESK_SCHEMA),
    ])
}

const CALLER: &str = r#"name: caller
version: "1.0.0"
responsibility: Ask another module, and answer.
tier: decision
excludes: [promising anything]
overflow: {enabled: false}
enums: {strategy: strict}
"#;
