//! Mistakes in the expectations of golden tests.

use crate::Mistake;

const FILE: &str = "tests/one.expected.json";
const MEMBER: &str = "\"team\": \"billing\"";

/// The expectation in `FILE` begins with `ok` in line 2, so the changed text is in line 3.
pub(crate) const EXPECTED: &[Mistake] = &[
    Mistake {
        what: "an expected member that the data never has",
        edits: &[(FILE, "team", "taem")],
        finds: &[
            "error tests/expected tests/one.expected.json:3:3 ~ `taem` is never there: `data` has only ~ Did you mean `team`?",
        ],
    },
    Mistake {
        what: "an expected member within an object that never has it",
        edits: &[(FILE, MEMBER, "\"data\": {\"taem\": \"billing\"}")],
        finds: &[
            "error tests/expected tests/one.expected.json:3:12 ~ `taem` is never there ~ Did you mean `team`?",
        ],
    },
    Mistake {
        what: "an expected path behind a text",
        edits: &[(FILE, MEMBER, "\"data.team.name\": \"billing\"")],
        finds: &[
            "error tests/expected tests/one.expected.json:3:3 ~ `name` is never there: `data.team` has no members",
        ],
    },
    Mistake {
        what: "an expected member of `meta` that is not described",
        edits: &[(FILE, MEMBER, "\"meta.confidens\": {\"$min\": 0.5}")],
        finds: &[
            "warning tests/expected tests/one.expected.json:3:3 ~ `confidens` ~ Did you mean `confidence`?",
        ],
    },
    Mistake {
        what: "an expected value that no list has",
        edits: &[(FILE, "billing", "biling")],
        finds: &[
            "error tests/expected tests/one.expected.json:3:11 ~ never `biling` ~ Did you mean `billing`?",
        ],
    },
    Mistake {
        what: "a rule that does not exist",
        edits: &[(FILE, MEMBER, "\"team\": {\"$inn\": [\"billing\"]}")],
        finds: &["error tests/expected tests/one.expected.json:3:11 ~ `$inn` ~ $in"],
    },
    Mistake {
        what: "a rule with an argument that makes no sense",
        edits: &[(FILE, MEMBER, "\"confidence\": {\"$min\": \"high\"}")],
        finds: &["error tests/expected tests/one.expected.json:3:17 ~ `confidence ~ number"],
    },
    Mistake {
        what: "an older rule that is misspelt",
        edits: &[(FILE, MEMBER, "\"_validat\": {\"required\": [\"team\"]}")],
        finds: &["error tests/expected tests/one.expected.json:3:15 ~ `_validat`: no such rule"],
    },
    Mistake {
        what: "a required member of `_validate` that the data never has",
        edits: &[(FILE, MEMBER, "\"_validate\": {\"required\": [\"rationale\", \"taem\"]}")],
        finds: &["error tests/expected tests/one.expected.json:3:43 ~ `taem` is never there ~ `team`?"],
    },
    Mistake {
        what: "a field of `_validate` that the data never has",
        edits: &[(FILE, MEMBER, "\"_validate\": {\"taem_contains\": \"bill\"}")],
        finds: &["error tests/expected tests/one.expected.json:3:17 ~ `taem` is never there ~ `team`?"],
    },
    Mistake {
        what: "a place of `_contains` that the data never has",
        edits: &[(FILE, MEMBER, "\"_contains\": {\"taem\": [\"bill\"]}")],
        finds: &["error tests/expected tests/one.expected.json:3:17 ~ `taem` is never there ~ `team`?"],
    },
    Mistake {
        what: "a place of `$validate` that the data never has",
        edits: &[(FILE, MEMBER, "\"$validate\": {\"data.taem\": {\"type\": \"string\"}}")],
        finds: &["error tests/expected tests/one.expected.json:3:17 ~ `taem` is never there ~ `team`?"],
    },
    Mistake {
        what: "an expectation that expects nothing",
        edits: &[(FILE, "", "{\"$comment\": \"to do\"}")],
        finds: &["error tests/expected tests/one.expected.json:1:1 ~ it expects nothing"],
    },
    Mistake {
        what: "an expectation that is a list",
        edits: &[(FILE, "", "[]")],
        finds: &["error tests/expected tests/one.expected.json:1:1 ~ an expectation is an object"],
    },
];
