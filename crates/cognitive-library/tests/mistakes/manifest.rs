//! Mistakes in `module.yaml`: as YAML, and as a manifest.

use crate::Mistake;

const FILE: &str = "module.yaml";

pub(crate) const YAML: &[Mistake] = &[
    Mistake {
        what: "a tab for indentation",
        edits: &[(FILE, "overflow: {enabled: false}", "overflow:\n\tenabled: false")],
        finds: &["error manifest/syntax module.yaml:7:1 ~ a tab stands ~ Indent with spaces"],
    },
    Mistake {
        what: "a line that is indented too far",
        edits: &[(FILE, "overflow: {enabled: false}", "overflow:\n  enabled: true\n   max_items: 3")],
        finds: &["error manifest/syntax module.yaml:8:4 ~ indented further ~ indentation of the line above"],
    },
    Mistake {
        what: "a line between two levels",
        edits: &[(FILE, "overflow: {enabled: false}", "overflow:\n  enabled: true\n max_items: 3")],
        finds: &["error manifest/syntax module.yaml:8:2 ~ fits no line above ~ exactly below"],
    },
    Mistake {
        what: "a colon in a text without quotes",
        edits: &[(FILE, "Say which team answers", "Task: say who answers")],
        finds: &[
            "error manifest/syntax module.yaml:3:21 ~ a colon and a space ~ `responsibility: \"Task: say who answers a support ticket.\"`",
        ],
    },
    Mistake {
        what: "no space behind the colon",
        edits: &[(FILE, "tier: decision", "tier:decision")],
        finds: &[
            "error manifest/syntax module.yaml:4:5 ~ expected a key and a value ~ Put a space behind the colon: `tier: decision`",
        ],
    },
    Mistake {
        what: "an equals sign for a colon",
        edits: &[(FILE, "tier: decision", "tier = decision")],
        finds: &["error manifest/syntax module.yaml:4:6 ~ expected a key and a value ~ `tier: decision`"],
    },
    Mistake {
        what: "a text that begins with a sign of YAML",
        edits: &[(FILE, "Say which", "@support: say which")],
        finds: &["error manifest/syntax module.yaml:3:17 ~ begins with `@` ~ between quotes"],
    },
    Mistake {
        what: "a text that begins in bold",
        edits: &[(FILE, "Say which", "*Say* which")],
        finds: &["error manifest/syntax module.yaml:3:17 ~ begins with `*` ~ `responsibility: \"*Say* which"],
    },
    Mistake {
        what: "an apostrophe within single quotes",
        edits: &[(FILE, "Say which team answers a support ticket.", "'Say who's asked'")],
        finds: &["error manifest/syntax module.yaml:3:17 ~ behind its closing quote ~ twice"],
    },
    Mistake {
        what: "a key twice",
        edits: &[(FILE, "enums: {strategy: strict}", "enums: {strategy: strict}\ntier: exec")],
        finds: &["error manifest/syntax module.yaml:8:1 ~ duplicate mapping key: tier ~ Keep one"],
    },
    Mistake {
        what: "a list that is not closed",
        edits: &[(FILE, "[answering the customer]", "[answering the customer")],
        finds: &["error manifest/syntax module.yaml:5:11 ~ this `[` is not closed ~ Close it with `]`"],
    },
    Mistake {
        what: "a merge conflict",
        edits: &[(FILE, "tier: decision", "<<<<<<< HEAD\ntier: decision")],
        finds: &["error manifest/syntax module.yaml:4:1 ~ merge conflict ~ Keep one side"],
    },
];

pub(crate) const KEYS: &[Mistake] = &[
    Mistake {
        what: "a misspelt key",
        edits: &[(FILE, "excludes:", "exlcudes:")],
        finds: &[
            "warning manifest/excludes module.yaml:1:1 ~ `excludes` is missing",
            "warning manifest/unknown-key module.yaml:5:1 ~ unknown key, kept and ignored: `exlcudes` ~ Did you mean `excludes`?",
        ],
    },
    Mistake {
        what: "a misspelt key within a block",
        edits: &[(FILE, "{enabled: false}", "{enabled: false, max_item: 3}")],
        finds: &["warning manifest/unknown-key module.yaml:6:28 ~ `max_item` ~ Did you mean `max_items`?"],
    },
    Mistake {
        what: "a key of another tool",
        edits: &[(FILE, "tier: decision", "tier: decision\ntemperature: 0.2")],
        finds: &[
            "warning manifest/unknown-key module.yaml:5:1 ~ unknown key, kept and ignored: `temperature`",
        ],
    },
    Mistake {
        what: "a word that is not in the list",
        edits: &[(FILE, "tier: decision", "tier: descision")],
        finds: &["error manifest/closed-list module.yaml:4:7 ~ `tier`: ~ decision"],
    },
    Mistake {
        what: "a text for a truth value",
        edits: &[(FILE, "{enabled: false}", "{enabled: no}")],
        finds: &[
            "error manifest/value module.yaml:6:21 ~ `overflow.enabled`: expected boolean ~ Write `true` or `false`",
        ],
    },
    Mistake {
        what: "a number in quotes",
        edits: &[(FILE, "{enabled: false}", "{enabled: true, max_items: \"5\"}")],
        finds: &[
            "error manifest/value module.yaml:6:38 ~ `overflow.max_items`: expected integer ~ without quotes",
        ],
    },
    Mistake {
        what: "a number above the limit",
        edits: &[(FILE, "{enabled: false}", "{enabled: false, max_items: 50}")],
        finds: &["error manifest/value module.yaml:6:39 ~ `overflow.max_items` ~ 20"],
    },
    Mistake {
        what: "dashes without a space",
        edits: &[(FILE, "excludes: [answering the customer]", "excludes:\n  -answering\n  -promising")],
        finds: &[
            "error manifest/value module.yaml:6:3 ~ `excludes`: expected array ~ Put a space behind each dash",
        ],
    },
    Mistake {
        what: "one word for a list",
        edits: &[(FILE, "[answering the customer]", "answering")],
        finds: &[
            "error manifest/value module.yaml:5:11 ~ `excludes`: expected array ~ Write a list: `[answering]`",
        ],
    },
    Mistake {
        what: "a version of two numbers",
        edits: &[(FILE, "\"1.0.0\"", "1.0")],
        finds: &["error manifest/value module.yaml:2:10 ~ `version` ~ three numbers"],
    },
    Mistake {
        what: "a blank in the name",
        edits: &[(FILE, "name: ticket", "name: my ticket")],
        finds: &["error manifest/value module.yaml:1:7 ~ `name` ~ lower-case letters"],
    },
    Mistake {
        what: "no responsibility",
        edits: &[(FILE, "responsibility: Say which team answers a support ticket.\n", "")],
        finds: &["error manifest/required module.yaml:1:1 ~ `responsibility` ~ one sentence"],
    },
    Mistake {
        what: "no tier",
        edits: &[(FILE, "tier: decision\n", "")],
        finds: &["error manifest/tier module.yaml:1:1 ~ `tier` is missing ~ tier: exec"],
    },
    Mistake {
        what: "no word about enums",
        edits: &[(FILE, "enums: {strategy: strict}\n", "")],
        finds: &["error manifest/block module.yaml:1:1 ~ `enums` is missing ~ strategy"],
    },
    Mistake {
        what: "insights that nobody describes",
        edits: &[(FILE, "{enabled: false}", "{enabled: true}")],
        finds: &["error schema/extensions schema.json:1:1 ~ insights are not described ~ enabled: false"],
    },
    Mistake {
        what: "a risk rule about a list that is not there",
        edits: &[(FILE, "risk_rule: explicit", "risk_rule: max_issues_risk")],
        finds: &["warning manifest/risk-rule module.yaml:8:19 ~ `data.issues` ~ risk_rule: explicit"],
    },
    Mistake {
        what: "a risk rule about entries without a risk",
        edits: &[
            (FILE, "risk_rule: explicit", "risk_rule: max_changes_risk"),
            (
                "schema.json",
                "\"rationale\": { \"type\": \"string\", \"minLength\": 1 },",
                "\"rationale\": { \"type\": \"string\", \"minLength\": 1 },\n      \"changes\": { \"type\": \"array\", \"items\": { \"type\": \"object\", \"properties\": { \"text\": { \"type\": \"string\" } } } },",
            ),
        ],
        finds: &["warning manifest/risk-rule module.yaml:8:19 ~ each counts as medium ~ Describe `risk`"],
    },
    Mistake {
        what: "an own error code in the range of the runtime",
        edits: &[(FILE, "tier: decision", "tier: decision\nerror_codes: {E1001: mine}")],
        finds: &["warning manifest/error-codes module.yaml:5:22 ~ E5000 to E9999"],
    },
    Mistake {
        what: "a tool that the policies never offer",
        edits: &[(FILE, "tier: decision", "tier: decision\ntools: {allowed: [shell]}")],
        finds: &["warning manifest/tools module.yaml:5:19 ~ never offered ~ policies"],
    },
    Mistake {
        what: "a section in a file that is not there",
        edits: &[(FILE, "tier: decision", "tier: decision\nio: {data: ./answer.json#/data}")],
        finds: &["error files/missing answer.json ~ `answer.json` is missing"],
    },
    Mistake {
        what: "a section that leads out of the module",
        edits: &[(FILE, "tier: decision", "tier: decision\nio: {input: ../schema.json#/input}")],
        finds: &["error manifest/io module.yaml:5:13 ~ points out of the module"],
    },
];
