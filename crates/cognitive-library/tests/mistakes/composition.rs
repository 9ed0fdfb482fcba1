//! Mistakes in composed modules: parts, versions, paths, mappings, rules and calls.

use crate::Mistake;

const FILE: &str = "module.yaml";

pub(crate) const FLOW: &[Mistake] = &[
    Mistake {
        what: "a part that is not installed",
        edits: &[
            (FILE, "- name: ticket", "- name: tickets"),
            (FILE, "to: ticket\n", "to: tickets\n"),
            (FILE, "[input, ticket.output]", "[input, tickets.output]"),
            (FILE, "[ticket.output, answer", "[tickets.output, answer"),
            (
                FILE,
                "\"$.ticket.data.team != 'sales' && $.ticket.meta",
                "\"$.tickets.data.team != 'sales' && $.tickets.meta",
            ),
            (FILE, "team: $.ticket.", "team: $.tickets."),
            (FILE, "team: $.ticket.", "team: $.tickets."),
        ],
        finds: &[
            "error composition/part module.yaml:10:13 ~ not installed: `tickets` ~ Did you mean `ticket`?",
        ],
    },
    Mistake {
        what: "a version that is not there",
        edits: &[(FILE, "\"^1.0.0\"", "\"^9.0.0\"")],
        finds: &[
            "error composition/version module.yaml:11:16 ~ `ticket` is there in version `1.0.0`, which `^9.0.0` does not take ~ \"^1.0.0\"",
        ],
    },
    Mistake {
        what: "a version of an optional part that is not there",
        edits: &[(FILE, "\">=1.0.0\"", "\">=2.0.0\"")],
        finds: &["warning composition/version module.yaml:13:16 ~ version `1.2.0`"],
    },
    Mistake {
        what: "a version range that is none",
        edits: &[(FILE, "\"^1.0.0\"", "\"one\"")],
        finds: &["error manifest/value module.yaml:11:16 ~ expected a version range"],
    },
    Mistake {
        what: "a misspelt key of a part",
        edits: &[(FILE, "optional: true", "optinal: true")],
        finds: &["warning manifest/unknown-key module.yaml:14:7 ~ `optinal` ~ Did you mean `optional`?"],
    },
    Mistake {
        what: "a module that is made of itself",
        edits: &[(
            FILE,
            "- name: answer\n      version: \">=1.0.0\"\n      optional: true",
            "- name: answer\n      version: \">=1.0.0\"\n    - name: desk",
        )],
        finds: &["error composition/circle module.yaml:14:13 ~ desk → desk"],
    },
    Mistake {
        what: "a condition on a member that the data never has",
        edits: &[(FILE, "$.ticket.data.team != 'sales'", "$.ticket.data.taem != 'sales'")],
        finds: &[
            "error composition/path module.yaml:22:33 ~ `taem` is never there: `$.ticket.data` has only `rationale`, `team` ~ Did you mean `team`?",
        ],
    },
    Mistake {
        what: "a condition on a member of the envelope that there is not",
        edits: &[(FILE, "$.ticket.data.team != 'sales'", "$.ticket.dta.team != 'sales'")],
        finds: &[
            "error composition/path module.yaml:22:28 ~ `dta` is never there: `$.ticket` has only ~ Did you mean `data`?",
        ],
    },
    Mistake {
        what: "a condition on a member of meta that nobody knows",
        edits: &[(FILE, "$.ticket.meta.confidence", "$.ticket.meta.confidens")],
        finds: &[
            "warning composition/path module.yaml:22:66 ~ nothing describes `confidens` ~ Did you mean `confidence`?",
        ],
    },
    Mistake {
        what: "a condition on a source that the step does not have",
        edits: &[(FILE, "$.ticket.data.team != 'sales'", "$.answer.data.reply != 'sales'")],
        finds: &["warning manifest/composition module.yaml:22:18 ~ begins with none of the sources"],
    },
    Mistake {
        what: "a comparison with a value that is not in the list",
        edits: &[(FILE, "!= 'sales'", "!= 'sale'")],
        finds: &["error composition/value module.yaml:22:41 ~ is never `\"sale\"` ~ Did you mean `sales`?"],
    },
    Mistake {
        what: "one equals sign in a condition",
        edits: &[(FILE, "!= 'sales'", "= 'sales'")],
        finds: &["error manifest/value module.yaml:22:18 ~ condition ~ `==`"],
    },
    Mistake {
        what: "a path into a text",
        edits: &[(FILE, "team: $.ticket.data.team\n    - from", "team: $.ticket.data.team.name\n    - from")],
        finds: &[
            "error composition/path module.yaml:25:34 ~ `name` is never there: `$.ticket.data.team` has no members",
        ],
    },
    Mistake {
        what: "a list that is a text",
        edits: &[(FILE, "$.answer.data.lines[*].text", "$.answer.data.reply[*].text")],
        finds: &[
            "error composition/path module.yaml:31:35 ~ `[*]` is never there: `$.answer.data.reply` has no members and no entries",
        ],
    },
    Mistake {
        what: "a member of entries that nobody describes",
        edits: &[(FILE, "lines[*].text", "lines[*].txt")],
        finds: &[
            "warning composition/path module.yaml:31:39 ~ nothing describes `txt` ~ Did you mean `text`?",
        ],
    },
    Mistake {
        what: "a misspelt member of the own input",
        edits: &[(FILE, "ticket: $.text", "ticket: $.txet")],
        finds: &[
            "warning composition/path module.yaml:19:19 ~ nothing describes `txet`: `$` is described with `size`, `text` ~ Did you mean `text`?",
        ],
    },
    Mistake {
        what: "a path that is none",
        edits: &[(FILE, "ticket: $.text", "ticket: text")],
        finds: &["error manifest/value module.yaml:19:17 ~ a path such as"],
    },
    Mistake {
        what: "a member that the part does not take, in place of one that it needs",
        edits: &[(FILE, "        ticket: $.text", "        txt: $.text")],
        finds: &[
            "error composition/input module.yaml:19:9 ~ `ticket` takes no `txt`, only `language`, `ticket`",
            "error composition/input module.yaml:18:7 ~ `ticket` requires `ticket`, and no step gives it ~ mapping",
        ],
    },
    Mistake {
        what: "a member that an open part does not describe",
        edits: &[(
            FILE,
            "        team: $.ticket.data.team\n    - from",
            "        team: $.ticket.data.team\n        wrods: $.input.size\n    - from",
        )],
        finds: &[
            "warning composition/input module.yaml:26:9 ~ `answer` does not describe `wrods` ~ Did you mean `words`?",
        ],
    },
    Mistake {
        what: "a number for a text",
        edits: &[(FILE, "ticket: $.input.text", "ticket: $.input.size")],
        finds: &[
            "error composition/input module.yaml:24:9 ~ `ticket` of `answer` is string, and this is number",
        ],
    },
    Mistake {
        what: "a required member that no step gives",
        edits: &[(FILE, "        team: $.ticket.data.team\n    - from", "    - from")],
        finds: &[
            "error composition/input module.yaml:23:7 ~ `answer` requires `team`, and no step gives it ~ `team: $.…`",
        ],
    },
    Mistake {
        what: "all of the input for a part that takes something else",
        edits: &[(FILE, "      to: ticket\n      mapping:\n        ticket: $.text\n", "      to: ticket\n")],
        finds: &[
            "warning composition/input module.yaml:17:11 ~ `ticket` requires `ticket`, and no step gives it",
        ],
    },
    Mistake {
        what: "an answer with a member that the own contract does not allow",
        edits: &[(FILE, "        reply: $.answer", "        replay: $.answer")],
        finds: &[
            "error composition/output module.yaml:30:9 ~ `data` of this module takes no `replay` ~ Did you mean `reply`?",
        ],
    },
    Mistake {
        what: "an answer without a required member",
        edits: &[(FILE, "        team: $.ticket.data.team\n        reply", "        reply")],
        finds: &[
            "error composition/output module.yaml:28:7 ~ `data` of this module requires `team`, and no step gives it",
        ],
    },
    Mistake {
        what: "a step from a module that is no part",
        edits: &[(FILE, "[ticket.output, answer.output]", "[ticket.output, answr.output]")],
        finds: &["error manifest/value module.yaml:26:29 ~ of a module in `requires`"],
    },
    Mistake {
        what: "steps in a circle",
        edits: &[(
            FILE,
            "    - from: input\n      to: ticket",
            "    - from: answer.output\n      to: ticket",
        )],
        finds: &["error manifest/value module.yaml:16:5 ~ in a circle"],
    },
];

pub(crate) const RULES: &[Mistake] = &[
    Mistake {
        what: "a rule about a member that is never there",
        edits: &[(FILE, "$.ticket.data.team == 'billing'", "$.ticket.data.kategory == 'billing'")],
        finds: &["error composition/path module.yaml:14:33 ~ `kategory` is never there"],
    },
    Mistake {
        what: "a rule about a value that is never there",
        edits: &[(FILE, "== 'billing'", "== 'biling'")],
        finds: &[
            "error composition/value module.yaml:14:41 ~ is never `\"biling\"` ~ Did you mean `billing`?",
        ],
    },
    Mistake {
        what: "a rule about a risk that does not exist",
        edits: &[(FILE, "== 'low'", "== 'lo'")],
        finds: &["error composition/value module.yaml:16:41 ~ is never `\"lo\"`"],
    },
    Mistake {
        what: "a rule about a part that has not run",
        edits: &[(FILE, "$.ticket.data.team == 'billing'", "$.answer.meta.confidence > 0.5")],
        finds: &[
            "error composition/path module.yaml:14:19 ~ `answer` has not run when the rules are asked ~ `ticket`",
        ],
    },
    Mistake {
        what: "a rule about a module that is no part",
        edits: &[(FILE, "$.ticket.data.team == 'billing'", "$.tiket.data.team == 'billing'")],
        finds: &["warning manifest/composition module.yaml:14:18 ~ begins with no module in `requires`"],
    },
    Mistake {
        what: "a rule that leads to a module that is no part",
        edits: &[(FILE, "next: answer", "next: answr")],
        finds: &["error manifest/value module.yaml:15:13 ~ a module in `requires`"],
    },
    Mistake {
        what: "rules where no rule is asked",
        edits: &[(FILE, "pattern: conditional", "pattern: sequential")],
        finds: &["warning manifest/composition module.yaml:14:5 ~ only where `pattern` is `conditional`"],
    },
];

const PROMPT: &str = "prompt.md";
const SCHEMA: &str = "schema.json";

/// Without a step to `output`, the prompt is sent with the answers of the parts.
const MANIFEST: &str = "module.yaml";

pub(crate) const CALLS: &[Mistake] = &[
    Mistake {
        what: "a value of a part that its data never has",
        edits: &[
            (
                MANIFEST,
                "      to: output\n      mapping:\n        team: $.ticket.data.team\n        reply: $.answer.data.reply\n        lines: $.answer.data.lines[*].text\n",
                "      to: answer\n",
            ),
            (MANIFEST, "[ticket.output, answer.output]", "ticket.output"),
            ("prompt.md", "", "The team is {{ticket.data.taem}}. Answer with an envelope.\n"),
        ],
        finds: &[
            "warning prompt/insert prompt.md:1:13 ~ `taem` is never there: `ticket.data` has only ~ Did you mean `team`?",
        ],
    },
    Mistake {
        what: "a value of a part whose name is misspelt",
        edits: &[
            (
                MANIFEST,
                "      to: output\n      mapping:\n        team: $.ticket.data.team\n        reply: $.answer.data.reply\n        lines: $.answer.data.lines[*].text\n",
                "      to: answer\n",
            ),
            (MANIFEST, "[ticket.output, answer.output]", "ticket.output"),
            ("prompt.md", "", "The team is {{tiket.data.team}}. Answer with an envelope.\n"),
        ],
        finds: &["warning prompt/insert prompt.md:1:13 ~ no part has this name ~ Did you mean `ticket`?"],
    },
    Mistake {
        what: "a call of a module that is not installed",
        edits: &[
            (
                MANIFEST,
                "",
                "name: desk\nversion: 1.0.0\nresponsibility: Ask another module.\ntier: decision\nexcludes: [x]\noverflow: {enabled: false}\nenums: {strategy: strict}\n",
            ),
            ("prompt.md", "", "First @call:tickets($INPUT), then answer with an envelope.\n"),
        ],
        finds: &["error composition/part prompt.md:1:7 ~ not installed: `tickets` ~ Did you mean `ticket`?"],
    },
    Mistake {
        what: "an optional call of a module that is not installed",
        edits: &[
            (
                MANIFEST,
                "",
                "name: desk\nversion: 1.0.0\nresponsibility: Ask another module.\ntier: decision\nexcludes: [x]\noverflow: {enabled: false}\nenums: {strategy: strict}\n",
            ),
            ("prompt.md", "", "First @call:tickets($INPUT)[optional], then answer with an envelope.\n"),
        ],
        finds: &["warning composition/part prompt.md:1:7 ~ not installed: `tickets`"],
    },
];

/// Calls of existing modules, in the prompt of a module whose input has `text` and `size`.
pub(crate) const ARGUMENTS: &[Mistake] = &[
    Mistake {
        what: "a call with an input that the module does not take",
        edits: &[(PROMPT, "$.text", "$INPUT")],
        finds: &[
            "error prompt/call-input prompt.md:1:7 ~ `ticket` takes no `text`, only `language`, `ticket`",
            "warning prompt/call-input prompt.md:1:7 ~ `ticket` requires `ticket`, and the input does not describe it",
            "warning prompt/call-input prompt.md:1:7 ~ `ticket` takes no `size`",
        ],
    },
    Mistake {
        what: "a call with a member of another type",
        edits: &[
            (PROMPT, "$.text", "$INPUT"),
            (
                SCHEMA,
                "\"text\": { \"type\": \"string\" }, \"size\": { \"type\": \"integer\" }",
                "\"ticket\": { \"type\": \"integer\" }",
            ),
            (SCHEMA, "[\"text\"]", "[\"ticket\"]"),
        ],
        finds: &[
            "error prompt/call-input prompt.md:1:7 ~ `ticket` of `ticket` is string, and that of the input is number",
        ],
    },
    Mistake {
        what: "a call with a path into the input that is not described",
        edits: &[(PROMPT, "$.text", "$.txt")],
        finds: &["warning prompt/call-input prompt.md:1:7 ~ nothing describes `txt` ~ Did you mean `text`?"],
    },
    Mistake {
        what: "a call with a path that the answer before it never has",
        edits: &[(PROMPT, ", then", ", @call:answer($.data.taem), then")],
        finds: &[
            "error prompt/call-input prompt.md:1:29 ~ `taem` is never there: `$.data` has only ~ Did you mean `team`?",
        ],
    },
    Mistake {
        what: "a call with a number for a module that takes an object",
        edits: &[(PROMPT, "$.text", "$.size")],
        finds: &[
            "error prompt/call-input prompt.md:1:7 ~ `$.size` is number and goes to `ticket` as `value`, which takes only",
        ],
    },
    Mistake {
        what: "a call with an answer that lacks what the module requires",
        edits: &[(PROMPT, ", then", ", @call:answer($.data), then")],
        finds: &[
            "error prompt/call-input prompt.md:1:29 ~ `answer` requires `ticket`, and `$.data` does not describe it",
        ],
    },
    Mistake {
        what: "an optional call with a value that does not fit",
        edits: &[(PROMPT, "($.text)", "($.size)[optional]")],
        finds: &["warning prompt/call-input prompt.md:1:7 ~ `$.size` is number"],
    },
    Mistake {
        what: "a value of a called module that its data never has",
        edits: &[(PROMPT, ", then", ": {{ticket.data.taem}}, then")],
        finds: &["warning prompt/insert prompt.md:1:29 ~ `taem` is never there ~ Did you mean `team`?"],
    },
];
