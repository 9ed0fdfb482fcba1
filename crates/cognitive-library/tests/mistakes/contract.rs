//! Mistakes in `schema.json`, `prompt.md` and the tests of a module.

use crate::Mistake;

const FILE: &str = "schema.json";

pub(crate) const SCHEMA: &[Mistake] = &[
    Mistake {
        what: "a comma that is missing",
        edits: &[(FILE, "\"minLength\": 1 },\n      \"language\"", "\"minLength\": 1 }\n      \"language\"")],
        finds: &["error schema/syntax schema.json:8:7 ~ not JSON"],
    },
    Mistake {
        what: "a comma too many",
        edits: &[(FILE, "\"language\": { \"type\": \"string\" }", "\"language\": { \"type\": \"string\" },")],
        finds: &["error schema/syntax schema.json:9:5 ~ not JSON"],
    },
    Mistake {
        what: "a type that does not exist",
        edits: &[(FILE, "\"language\": { \"type\": \"string\" }", "\"language\": { \"type\": \"text\" }")],
        finds: &["error schema/contract schema.json:8:29 ~ expected one of `array`"],
    },
    Mistake {
        what: "a reference to nothing",
        edits: &[(
            FILE,
            "\"language\": { \"type\": \"string\" }",
            "\"language\": { \"$ref\": \"#/$defs/lang\" }",
        )],
        finds: &["error schema/contract schema.json:8:29 ~ `$ref` points to nothing"],
    },
    Mistake {
        what: "no input",
        edits: &[(FILE, "\"input\":", "\"inputs\":")],
        finds: &["error schema/contract schema.json:1:1 ~ section `input` is missing"],
    },
    Mistake {
        what: "a required member that is misspelt in a closed object",
        edits: &[(FILE, "[\"rationale\", \"team\"]", "[\"rationale\", \"taem\"]")],
        finds: &[
            "error schema/required schema.json:13:31 ~ `taem` is required and not allowed ~ Did you mean `team`?",
        ],
    },
    Mistake {
        what: "a required member that nobody describes",
        edits: &[
            (
                FILE,
                "    \"additionalProperties\": false,\n    \"properties\": {\n      \"ticket\"",
                "    \"properties\": {\n      \"ticket\"",
            ),
            (FILE, "[\"ticket\"]", "[\"ticket\", \"customer\"]"),
            ("tests/one.input.json", "\"I was charged twice.\"", "\"t\", \"customer\": 1"),
        ],
        finds: &["warning schema/required schema.json:4:28 ~ `customer` is required ~ Describe `customer`"],
    },
    Mistake {
        what: "a required member of an entry that nobody describes",
        edits: &[(
            FILE,
            "\"team\": { \"type\": \"string\", \"enum\": [\"billing\", \"technical\", \"sales\"] }",
            "\"team\": { \"type\": \"string\" },\n      \"steps\": { \"type\": \"array\", \"items\": { \"type\": \"object\", \"required\": [\"txt\"], \"properties\": { \"text\": {} } } }",
        )],
        finds: &["warning schema/required schema.json:18:77 ~ `txt` is required ~ Did you mean `text`?"],
    },
    Mistake {
        what: "a copy from an input member that is not there",
        edits: &[(
            FILE,
            "\"rationale\": { \"type\": \"string\",",
            "\"rationale\": { \"type\": \"string\", \"x-copy-from\": \"tickt\",",
        )],
        finds: &[
            "warning schema/origin schema.json:16:55 ~ `x-copy-from` ~ `tickt` ~ Did you mean `ticket`?",
        ],
    },
    Mistake {
        what: "a decision about an input member that is not there",
        edits: &[(
            FILE,
            "\"team\": { \"type\": \"string\",",
            "\"team\": { \"type\": \"string\", \"x-decide\": { \"about\": \"text\", \"by\": [] },",
        )],
        finds: &["warning schema/origin schema.json:17:58 ~ `x-decide.about` ~ `text`"],
    },
    Mistake {
        what: "a format that judges nothing",
        edits: &[(
            FILE,
            "\"rationale\": { \"type\": \"string\",",
            "\"due\": { \"type\": \"string\", \"format\": \"date\" },\n      \"rationale\": { \"type\": \"string\",",
        )],
        finds: &["warning schema/format schema.json:16:44 ~ `format: date` judges nothing ~ pattern"],
    },
    Mistake {
        what: "an answer without a rationale",
        edits: &[
            (FILE, "[\"rationale\", \"team\"]", "[\"team\"]"),
            (FILE, "      \"rationale\": { \"type\": \"string\", \"minLength\": 1 },\n", ""),
        ],
        finds: &[
            "error schema/rationale schema.json:15:19 ~ does not declare `rationale` ~ properties",
            "error schema/rationale schema.json:13:17 ~ does not require `rationale` ~ required",
        ],
    },
    Mistake {
        what: "no section for meta",
        edits: &[(
            FILE,
            "  \"meta\": {\n    \"required\": [\"confidence\", \"risk\", \"explain\"],\n    \"properties\": { \"explain\": { \"type\": \"string\", \"maxLength\": 280 } }\n  }\n",
            "  \"error\": {}\n",
        )],
        finds: &["error schema/meta schema.json:1:1 ~ section `meta` is missing ~ confidence"],
    },
    Mistake {
        what: "an explanation without a limit",
        edits: &[(FILE, "\"type\": \"string\", \"maxLength\": 280", "\"type\": \"string\"")],
        finds: &["error schema/explain schema.json:22:32 ~ no `maxLength` ~ 280"],
    },
    Mistake {
        what: "a rule beside a reference",
        edits: &[(
            FILE,
            "\"language\": { \"type\": \"string\" }",
            "\"language\": { \"$ref\": \"#/data/properties/team\", \"maxLength\": 2 }",
        )],
        finds: &["warning schema/beside-ref schema.json:8:68 ~ `maxLength` beside `$ref` is ignored ~ allOf"],
    },
    Mistake {
        what: "a member twice",
        edits: &[(
            FILE,
            "\"language\": { \"type\": \"string\" }",
            "\"language\": { \"type\": \"string\" },\n      \"language\": {}",
        )],
        finds: &["warning schema/repeated schema.json:9:19 ~ written twice"],
    },
    Mistake {
        what: "a form for new values in a strict module",
        edits: &[(
            FILE,
            "{ \"type\": \"string\", \"enum\": [\"billing\", \"technical\", \"sales\"] }",
            "{ \"oneOf\": [{ \"enum\": [\"billing\"] }, { \"type\": \"object\", \"required\": [\"custom\", \"reason\"], \"properties\": { \"custom\": { \"type\": \"string\" }, \"reason\": { \"type\": \"string\" } } }] }",
        )],
        finds: &[
            "warning schema/custom-value schema.json:17:52 ~ always refused: `enums.strategy` is `strict` ~ `enums: {strategy: extensible}`",
        ],
    },
    Mistake {
        what: "an `exec` module whose lists may grow",
        edits: &[
            ("module.yaml", "tier: decision", "tier: exec"),
            ("module.yaml", "strategy: strict", "strategy: extensible"),
        ],
        finds: &[
            "warning manifest/enums module.yaml:7:19 ~ may answer with a value that no list has ~ `enums: {strategy: strict}`",
        ],
    },
];

const PROMPT_FILE: &str = "prompt.md";

pub(crate) const PROMPT: &[Mistake] = &[
    Mistake {
        what: "a misspelt placeholder",
        edits: &[(PROMPT_FILE, "$INPUT", "$INPTU")],
        finds: &[
            "warning prompt/placeholder prompt.md:14:13 ~ `$INPTU` is no placeholder ~ Did you mean `$INPUT`?",
        ],
    },
    Mistake {
        what: "a misspelt placeholder for the schema",
        edits: &[(PROMPT_FILE, "Answer with", "Follow $SHEMA. Answer with")],
        finds: &["warning prompt/placeholder prompt.md:7:8 ~ `$SHEMA` ~ Did you mean `$SCHEMA`?"],
    },
    Mistake {
        what: "a placeholder for one member",
        edits: &[(PROMPT_FILE, "$INPUT", "$TICKET")],
        finds: &[
            "warning prompt/placeholder prompt.md:14:13 ~ `$TICKET` is no placeholder ~ cannot place one member ~ `ticket`",
        ],
    },
    Mistake {
        what: "the braces of another tool around a member",
        edits: &[(PROMPT_FILE, "$INPUT", "{{ticket}}")],
        finds: &["warning prompt/placeholder prompt.md:14:13 ~ `{{ticket}}` ~ cannot place one member"],
    },
    Mistake {
        what: "the braces of another tool around a placeholder",
        edits: &[(PROMPT_FILE, "$INPUT", "${INPUT}")],
        finds: &["warning prompt/placeholder prompt.md:14:13 ~ `${INPUT}` ~ Write `$INPUT`"],
    },
    Mistake {
        what: "a call with a mistake in it",
        edits: &[(PROMPT_FILE, "$INPUT", "@call:answer($INPUT")],
        finds: &["warning prompt/call prompt.md:14:13 ~ syntax error and stays text ~ @call:"],
    },
    Mistake {
        what: "an example with a member that the schema does not allow",
        edits: &[(PROMPT_FILE, "\"team\": \"billing\"}}", "\"team\": \"billing\", \"urgency\": \"high\"}}")],
        finds: &[
            "error prompt/field prompt.md:11:62 ~ asks for `urgency`, which the schema does not allow ~ take it out of the prompt",
        ],
    },
    Mistake {
        what: "a list of members with one that the schema lacks",
        edits: &[(PROMPT_FILE, "  - `team`: who answers", "  - `verdict`: accept or reject")],
        finds: &["error prompt/field prompt.md:5:6 ~ asks for `verdict`"],
    },
    Mistake {
        what: "a member that is called otherwise in the prompt",
        edits: &[(PROMPT_FILE, "fill `data.team`", "fill `data.teams`")],
        finds: &["error prompt/field prompt.md:7:41 ~ asks for `teams` ~ Did you mean `team`?"],
    },
    Mistake {
        what: "a sentence about data with a member that is described nowhere",
        edits: &[
            (PROMPT_FILE, "fill `data.team`", "write `data` with `rationale`, `team` and `mood`"),
            (
                FILE,
                "    \"additionalProperties\": false,\n    \"properties\": {\n      \"rationale\"",
                "    \"properties\": {\n      \"rationale\"",
            ),
        ],
        finds: &["warning prompt/field prompt.md:7:73 ~ asks for `mood`, which the schema does not describe"],
    },
    Mistake {
        what: "a prompt that says nothing about the envelope",
        edits: &[(PROMPT_FILE, "", "Sort the ticket.\n")],
        finds: &["error prompt/envelope prompt.md ~ does not explain the envelope ~ $ENVELOPE"],
    },
];

pub(crate) const TESTS: &[Mistake] = &[
    Mistake {
        what: "a test input that the module does not take",
        edits: &[("tests/one.input.json", "\"ticket\"", "\"text\"")],
        finds: &[
            "error tests/input tests/one.input.json:2:11 ~ no member `text`",
            "error tests/input tests/one.input.json:1:1 ~ required member `ticket`",
        ],
    },
    Mistake {
        what: "a test that is not there",
        edits: &[("module.yaml", "one.expected.json]", "two.expected.json]")],
        finds: &["warning tests/missing module.yaml:9:9 ~ no such file: `tests/two.expected.json`"],
    },
    Mistake {
        what: "a test without an arrow",
        edits: &[("module.yaml", " -> ", " => ")],
        finds: &["error tests/entry module.yaml:9:9 ~ an arrow ~ tests/case.input.json ->"],
    },
    Mistake {
        what: "an expectation that is not JSON",
        edits: &[("tests/one.expected.json", "true,", "true")],
        finds: &["error tests/syntax tests/one.expected.json:3:3 ~ not JSON"],
    },
    Mistake {
        what: "an example that breaks the contract",
        edits: &[("examples/output.json", "", "{\n  \"rationale\": \"r\",\n  \"team\": \"press\"\n}\n")],
        finds: &["error tests/output examples/output.json:3:11 ~ does not fit the output schema"],
    },
    Mistake {
        what: "an example input under another published name",
        edits: &[("examples/refund-input.json", "", "{\n  \"ticket\": 7\n}\n")],
        finds: &["error tests/input examples/refund-input.json:2:13 ~ does not fit the input schema"],
    },
    Mistake {
        what: "a worked example whose answer breaks the contract",
        edits: &[
            ("examples/1.input.json", "", "{\"ticket\": \"t\"}\n"),
            (
                "examples/1.answer.json",
                "",
                "{\"ok\": true, \"meta\": {\"confidence\": 0.9, \"risk\": \"low\", \"explain\": \"e\"},\n \"data\": {\"rationale\": \"r\", \"team\": \"press\"}}\n",
            ),
        ],
        finds: &["error examples/answer examples/1.answer.json:2:37 ~ expected one of"],
    },
];
