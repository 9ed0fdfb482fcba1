//! The tested commands, one line each.

/// A command in the prepared folder.
#[derive(Debug)]
pub(crate) struct Scene {
    /// The name of its snapshot file.
    pub(crate) name: String,
    /// The arguments of `cogn`.
    pub(crate) line: String,
    /// The contents of stdin.
    pub(crate) stdin: &'static str,
    /// True if no line may be wider than the terminal. False for JSON, scripts and single long words.
    pub(crate) fits: bool,
    /// The other participant of the scene.
    pub(crate) with: SceneCompany,
}

/// The participants of a scene besides the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SceneCompany {
    Nobody,
    /// A hosted model that answers with recorded replies.
    Model,
    /// An operator that stops the program once it listens.
    Operator,
}

impl Scene {
    pub(crate) fn new(name: &str, line: &str) -> Self {
        let (name, line) = (name.to_owned(), line.to_owned());
        Self { name, line, stdin: "", fits: false, with: SceneCompany::Nobody }
    }

    fn fits(name: &str, line: &str) -> Self {
        Self { fits: true, ..Self::new(name, line) }
    }

    fn with(self, with: SceneCompany) -> Self {
        Self { with, ..self }
    }
}

/// The commands whose help is tested.
const COMMANDS: &str = "run batch prompt lower types export import compose media list info init validate test eval train verify migrate add remove update versions search pack sign publish registry serve studio store deploy prices mcp audit review context doctor model trust capabilities completions man explain schema check conformance";

/// Returns all scenes.
pub(crate) fn scenes() -> Vec<Scene> {
    let helps = COMMANDS.split(' ').chain(["audit list"]).map(|command| {
        Scene::fits(&format!("help-{}", command.replace(' ', "-")), &format!("{command} --help"))
    });
    helps.chain(of_modules()).chain(of_runs()).chain(of_records()).chain(of_this_machine()).collect()
}

fn of_modules() -> Vec<Scene> {
    vec![
        Scene::fits("help", "--help"),
        Scene::new("wrong-command", "frobnicate"),
        Scene::fits("list", "list"),
        Scene::fits("info", "info code-reviewer"),
        Scene::new("info-missing", "info code-reviever"),
        Scene::new("init", "init invoice-reader"),
        Scene::new("init-json", "init invoice-reader --json"),
        Scene::new("validate", "validate"),
        Scene::new("validate-wrong", "validate ./odd --v22"),
        Scene::new("test", "test greeter"),
        Scene::new("test-coverage", "test greeter --coverage"),
        Scene::fits("eval", "eval text-classifier --cases cases.jsonl").with(SceneCompany::Model),
        Scene::new(
            "batch-dry-run",
            "batch text-classifier cases.jsonl --dry-run --provider openai --model gpt-4.1-mini",
        ),
        Scene::new("batch-unknown", "batch greeter rows.txt -o answers.jsonl"),
        Scene::new("eval-nothing", "eval greeter --cases no-such-file.jsonl"),
        Scene::new("verify", "verify greeter"),
        Scene::new("migrate", "migrate ./old --dry-run"),
        Scene::fits("compose-plan", "compose plan code-review-pipeline"),
        Scene::fits("compose-plan-conditional", "compose plan smart-processor"),
        Scene::fits("compose-plan-parallel", "compose plan multi-reviewer"),
        Scene::new("compose-plan-mermaid", "compose plan code-review-pipeline --mermaid"),
        Scene::new("lower", "lower greeter --target openai"),
        Scene::new("types", "types greeter --lang typescript"),
        Scene::new("export-unknown", "export skill no-such-module"),
        Scene::new("import", "import hello.prompty"),
        Scene::new("import-dry-run", "import hello.prompty --dry-run"),
        Scene::new("import-json", "import hello.prompty --json"),
        Scene::new("import-refused", "import agent.prompty"),
        Scene::new("add", "add cognitive/modules/greeter --dry-run"),
        Scene::new("add-json", "add cognitive/modules/greeter --dry-run --json"),
        Scene::new("add-unknown", "add ftp://example.com/x"),
        Scene::new("remove-outside", "remove ../../x"),
        Scene::new("update-unknown", "update greeter"),
        Scene::new("versions-nowhere", "versions greeter"),
        Scene::new("search-nowhere", "search greeting"),
        Scene::new("pack-unknown", "pack no-such-module"),
        Scene::new("sign-nothing", "sign nowhere.tar.gz --secret-key nowhere.key"),
        Scene::new("publish", "publish greeter oci://registry.example.com/team/greeter --dry-run"),
        Scene::new("registry-empty", "registry build cognitive --namespace acme --author Acme"),
        Scene::new("prompt", "prompt greeter --set name=Ann"),
        Scene::new("schema", "schema envelope"),
        Scene::new("conformance", "conformance vectors"),
    ]
}

fn of_runs() -> Vec<Scene> {
    vec![
        Scene::new("run-json", "run greeter --set name=Ann --reply reply.txt"),
        Scene::new("run-pretty", "run greeter --set name=Ann --reply reply.txt --pretty"),
        Scene::fits("run-view", "run greeter --set name=Ann --reply reply.txt --view"),
        Scene::fits("run-view-table", "run code-reviewer --set code=x --reply review.txt --view"),
        Scene::fits("run-view-failure", "run greeter --set name=Ann --reply prose.txt --view"),
        Scene::fits("run-view-partial", "run greeter --set name=Ann --reply partial.txt --view"),
        Scene::new("run-stream", "run greeter --set name=Ann --reply reply.txt --stream=text"),
        Scene::new("run-verbose", "run greeter --set name=Ann --reply reply.txt -v"),
        Scene::fits("run-trace", "run code-review-pipeline --set code=x --trace --view")
            .with(SceneCompany::Model),
        Scene::fits("run-trace-skipped", "run ./visit --set name=Ann --reply reply.txt --trace --view"),
        Scene::new("run-broken-input", "run greeter broken.json --reply reply.txt"),
        Scene::new("run-missing", "run greetr --set name=Ann"),
        Scene::new("check", "check good.json"),
        Scene::new("check-wrong", "check wrong.json"),
        Scene::new("media", "media inspect picture.png"),
        Scene::new("media-missing", "media inspect no-such-file.png"),
        Scene::fits("serve", "serve --port 0").with(SceneCompany::Operator),
        Scene::fits("mcp-cost", "mcp --cost").with(SceneCompany::Model),
        Scene::new("serve-open", "serve --host 0.0.0.0"),
    ]
}

fn of_records() -> Vec<Scene> {
    vec![
        Scene::fits("audit-list", "audit list"),
        Scene::fits("audit-show", "audit show 11111111"),
        Scene::fits("audit-show-failure", "audit show 22222222"),
        Scene::new("audit-show-unknown", "audit show 9"),
        Scene::fits("audit-stats", "audit stats"),
        Scene::new("audit-verify", "audit verify"),
        Scene::fits("review-list", "review list"),
        Scene::fits("review-decided", "review list --decided"),
        Scene::fits("review-show", "review show 1"),
        Scene::new("review-show-unknown", "review show 9"),
        Scene::fits("review-stats", "review stats"),
        Scene::new("context-list", "context list --user ann"),
        Scene::new("context-none", "context list"),
        Scene::fits("explain", "explain"),
        Scene::new("explain-code", "explain E3001"),
        Scene::new("explain-bogus", "explain bogus"),
        Scene::new("explain-json", "explain E2002 --json"),
    ]
}

fn of_this_machine() -> Vec<Scene> {
    vec![
        Scene::fits("doctor", "doctor"),
        Scene::fits("doctor-all", "doctor --all --provider anthropic"),
        Scene::fits("doctor-broken", "doctor --config broken.yaml"),
        Scene::new("model-list", "model list"),
        Scene::new("model-path", "model path"),
        Scene::new("model-rm", "model rm"),
        Scene::new("model-verify", "model verify"),
        Scene::new("model-pull-offline", "model pull"),
        Scene::new("trust", "trust shop"),
        Scene::new("trust-list", "trust --list"),
        Scene::new("capabilities", "capabilities"),
        Scene::new("completions-fish", "completions fish"),
        Scene::new("man", "man schema"),
    ]
}
