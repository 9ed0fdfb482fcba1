//! Operations of authors: other models, drafts, previews, files and changes to them. Also what authors may not do.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cognitive_contract::ports::Provider;
use cognitive_http::{KeyRole, NamedModel, ServerConfig};
use cognitive_library::{Library, ModuleCache};
use cognitive_net::{Kind, ProviderConfig, Secret};
use cognitive_runtime::Host;
use cognitive_setup::module_editor::FolderEditor;
use cognitive_testkit::MemoryAuditLog;
use serde_json::{Value, json};

use crate::studio_access::{key_of, keyed};
use crate::support::{ANSWER, Script, SendJson as _, Server, client, json_of, module_cache, roomy};

/// A server with one editable module, and its audit log.
struct Shop {
    server: Server,
    audit: Arc<MemoryAuditLog>,
    script: Arc<Script>,
}

impl Shop {
    async fn open(config: ServerConfig, set_up: impl FnOnce(&mut Host, &mut ServerConfig)) -> Self {
        let (folder, _) = module_cache("both");
        // A second module that is neither offered nor editable.
        let other = folder.path().join("extra/hidden");
        fs::create_dir_all(&other).unwrap();
        for file in ["module.yaml", "prompt.md", "schema.json"] {
            let text = fs::read_to_string(folder.path().join("cognitive/modules/words").join(file)).unwrap();
            fs::write(other.join(file), text.replace("name: words", "name: hidden")).unwrap();
        }
        let library = Library::new(folder.path(), None, &[folder.path().join("extra")]);
        let (audit, script) = (Arc::new(MemoryAuditLog::default()), Script::free(&ANSWER));
        let mut host =
            Host::new(Arc::new(ModuleCache::new(library.clone())), Arc::clone(&script) as Arc<dyn Provider>);
        host.audit = Some(Arc::clone(&audit) as _);
        let mut config = config;
        let module_editor =
            FolderEditor::new(library).with_editable(&[folder.path().join("cognitive/modules")]).unwrap();
        config.module_editor = Some(Arc::new(module_editor));
        config.offers = Some(Arc::new(|name: &str| matches!(name, "words" | "summarizer")));
        set_up(&mut host, &mut config);
        Self { server: Server::with_host(folder, host, config).await, audit, script }
    }

    async fn new() -> Self {
        Self::open(roomy(), |_, _| {}).await
    }

    async fn ask(&self, method: reqwest::Method, path: &str, body: &Value) -> (u16, Value) {
        let mut request = client().request(method.clone(), self.server.url(path));
        if method != reqwest::Method::GET {
            request = request.json(body);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/json", "{path}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        (response.status().as_u16(), json_of(response).await)
    }

    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask(reqwest::Method::POST, path, &body).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(reqwest::Method::GET, path, &Value::Null).await
    }

    async fn run(&self, options: Value) -> (u16, Value) {
        self.post("/api/run/words", json!({ "input": { "text": "winter" }, "_options": options })).await
    }

    async fn save(&self, hash: &str, files: Value) -> (u16, Value) {
        let body = json!({ "hash": hash, "files": files });
        self.ask(reqwest::Method::PUT, "/v1/modules/words/files", &body).await
    }

    fn on_disk(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.server.folder.path().join("cognitive/modules/words").join(path)).ok()
    }
}

#[tokio::test]
async fn a_run_may_name_a_model_that_is_listed() {
    let built = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&built);
    let shop = Shop::open(roomy(), |_, config| {
        let other: [&str; 1] = [r#"{"ok": true, "meta": {"confidence": 0.7, "risk": "low", "explain": "Other"}, "data": {"rationale": "r", "words": []}}"#];
        let make = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(Script::free(&other) as Arc<dyn Provider>)
        };
        config.models = vec![NamedModel { name: "script/other".to_owned(), is_local: true, make: Arc::new(make) }];
    })
    .await;
    let (_, listed) = shop.get("/v1/models").await;
    let names: Vec<&str> =
        listed["models"].as_array().unwrap().iter().map(|model| model["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["script", "script/other"]);
    assert_eq!(
        (&listed["models"][0]["is_default"], &listed["models"][1]["is_default"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(built.load(Ordering::SeqCst), 0, "nothing is built for a list");
    for _ in 0..2 {
        let (status, envelope) = shop.run(json!({ "model": "script/other" })).await;
        assert_eq!((status, &envelope["meta"]["explain"]), (200, &json!("Other")), "{envelope}");
    }
    assert_eq!((built.load(Ordering::SeqCst), shop.script.calls()), (1, 0));
    assert_eq!(shop.run(json!({ "model": "script" })).await.1["meta"]["explain"], "Two words");
    let (status, refused) = shop.run(json!({ "model": "openai/gpt" })).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("E1001")));
    let models: Vec<String> = shop
        .audit
        .records()
        .iter()
        .filter(|record| record.event == "run")
        .map(|record| record.model.clone())
        .collect();
    assert_eq!(models, ["script/stub", "script/stub", "script/stub"]);
}

// The operator's `local_only` applies to a named model too.
#[tokio::test]
async fn a_module_that_stays_here_is_asked_nobody_elsewhere() {
    let away =
        ProviderConfig::new(Kind::parse("openai").unwrap()).with_key(Secret::new("sk-none-0123456789abcdef"));
    let away =
        cognitive_net::provider(away.with_model("m").with_base_url("https://away.example/v1")).unwrap();
    let shop = Shop::open(roomy(), |host, config| {
        let local = cognitive_runtime::ModuleSettings { local_only: true, ..Default::default() };
        host.configure("words", local);
        config.models = vec![NamedModel::from_provider(away)];
    })
    .await;
    let (status, refused) = shop.run(json!({ "model": "openai/m" })).await;
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("E4007")), "{refused}");
    let renamed = "name: free\nversion: 1.0.0\nresponsibility: x\ntier: decision\n";
    let (status, refused) =
        shop.run(json!({ "model": "openai/m", "draft": { "module.yaml": renamed } })).await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (403, &json!("E4007")),
        "a draft does not get around it: {refused}"
    );
}

#[tokio::test]
async fn a_draft_runs_once_and_is_written_nowhere() {
    let shop = Shop::new().await;
    let draft = json!({ "prompt.md": "Find all words." });
    let (status, envelope) = shop.run(json!({ "draft": draft, "receipt": true })).await;
    assert_eq!(status, 200, "{envelope}");
    let (_, plain) = shop.run(json!({ "receipt": true })).await;
    assert_ne!(
        envelope["meta"]["provenance"]["sha256"]["module"],
        plain["meta"]["provenance"]["sha256"]["module"]
    );
    let versions: Vec<String> = shop
        .audit
        .records()
        .into_iter()
        .filter(|record| record.event == "run")
        .map(|record| record.version)
        .collect();
    assert!(
        versions[0].starts_with("1.0.0+draft.") && versions[0].len() == "1.0.0+draft.".len() + 8,
        "{versions:?}"
    );
    assert_eq!(versions[1], "1.0.0");
    assert_eq!(shop.on_disk("prompt.md").as_deref(), Some("Find the words."));
    let stream = client().post(shop.server.url("/api/run/words")).header("accept", "application/x-ndjson");
    let stream = stream
        .json(&json!({ "input": { "text": "a" }, "_options": { "draft": draft } }))
        .send()
        .await
        .unwrap();
    assert!(stream.text().await.unwrap().contains("\"final\":true"));
    assert!(shop.audit.records().last().unwrap().version.contains("+draft."), "streams too");
}

#[tokio::test]
async fn hostile_drafts_fail_cleanly() {
    let shop = Shop::new().await;
    let manifest =
        |more: &str| format!("name: words\nversion: 1.0.0\nresponsibility: x\ntier: decision\n{more}");
    let many: BTreeMap<String, &str> = (0..500).map(|number| (format!("f{number}"), "x")).collect();
    for (draft, status) in [
        (json!({ "../prompt.md": "x" }), 400),
        (json!({ "/etc/passwd": "x" }), 400),
        (json!({ "a/../../x": "x" }), 400),
        (json!({ ".env": "x" }), 400),
        (json!({ "": "x" }), 400),
        (json!({ "module.yaml": "name: [" }), 400),
        (json!({ "module.yaml": "a: &a [1]\nb: [*a, *a, *a]\nc: *nothing" }), 400),
        (json!({ "module.yaml": null }), 400),
        (json!({ "schema.json": "{".repeat(100_000) }), 400),
        (json!({ "schema.json": "\"<script>alert(1)</script>\"" }), 400),
        (json!({ "prompt.md": "x".repeat((1 << 20) + 1) }), 400),
        (json!(many), 413),
        (json!({ "prompt.md": 7 }), 400),
        (json!([]), 400),
        (json!({ "module.yaml": manifest("policies: {network: allow}\n") }), 403),
        (json!({ "module.yaml": manifest("tools: {allowed: [shell]}\n") }), 403),
        (json!({ "prompt.md": "@call:hidden\n" }), 403),
        (
            json!({ "module.yaml": manifest("composition: {pattern: sequential, requires: [{name: hidden}]}\n") }),
            403,
        ),
    ] {
        let (answered, envelope) = shop.run(json!({ "draft": draft })).await;
        let shown: String = draft.to_string().chars().take(80).collect();
        assert_eq!(answered, status, "{shown}: {envelope}");
        assert_eq!(envelope["ok"], false);
        let (checked, _) = shop.post("/v1/modules/words/check", json!({ "files": draft })).await;
        assert!(checked < 500, "{shown}");
    }
    assert_eq!(shop.script.calls(), 0);
    let huge = json!({ "prompt.md": "x".repeat(3 << 20) });
    assert_eq!(shop.run(json!({ "draft": huge })).await.0, 413);
}

#[tokio::test]
async fn a_preview_shows_the_request_without_its_key() {
    let key = "sk-secret-0123456789abcdef";
    let service = ProviderConfig::new(Kind::parse("openai").unwrap()).with_key(Secret::new(key));
    let service =
        cognitive_net::provider(service.with_model("gpt-x").with_base_url("https://ai.example/v1")).unwrap();
    let shop =
        Shop::open(roomy(), |_, config| config.models = vec![NamedModel::from_provider(service)]).await;
    let preview = |options: Value| {
        shop.post(
            "/v1/modules/words/preview",
            json!({ "input": { "text": "it's $(id)" }, "_options": options }),
        )
    };
    let (status, shown) =
        preview(json!({ "model": "openai/gpt-x", "draft": { "prompt.md": "Count them." } })).await;
    assert_eq!(status, 200, "{shown}");
    let calls = shown["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 1, "{shown}");
    let shown = &calls[0];
    assert_eq!(shown["module"], "words");
    assert!(shown["instructions"].as_str().unwrap().contains("Count them."));
    assert!(
        shown["estimated_tokens"].as_u64().unwrap() > 10
            && shown["input"].as_str().unwrap().contains("$(id)")
    );
    assert_eq!(shown["request"]["url"], "https://ai.example/v1/chat/completions");
    assert_eq!(shown["request"]["headers"]["authorization"], "Bearer $OPENAI_API_KEY");
    assert_eq!(shown["request"]["body"]["model"], "gpt-x");
    let curl = shown["curl"].as_str().unwrap();
    assert!(curl.starts_with("curl -X 'POST' 'https://ai.example/v1/chat/completions'"), "{curl}");
    assert!(
        curl.contains(r#"-H "authorization: Bearer $OPENAI_API_KEY""#) && curl.contains(r"it'\''s $(id)"),
        "{curl}"
    );
    assert!(!shown.to_string().contains(key));
    let (_, plain) = preview(json!({})).await;
    let plain = &plain["calls"][0];
    assert!(plain["request"].is_null() && plain["curl"].is_null(), "this model sends no request");
    assert_eq!(shop.script.calls(), 0, "nobody is asked");
    let (status, refused) = shop.post("/v1/modules/words/preview", json!({ "input": { "text": 7 } })).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("E1001")), "what a run refuses is refused");
}

#[tokio::test]
async fn files_are_shown_checked_and_changed() {
    let shop = Shop::new().await;
    let (_, shown) = shop.get("/v1/modules/words/files").await;
    assert_eq!(shown["editable"], true);
    let paths: Vec<&str> =
        shown["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["module.yaml", "prompt.md", "schema.json"]);
    assert!(shown["findings"].is_array() && shown["tests"].is_array());
    let (_, checked) = shop
        .post("/v1/modules/words/check", json!({ "files": { "schema.json": "{\n  \"data\": 1\n}" } }))
        .await;
    let mut findings = checked["findings"].as_array().unwrap().iter();
    assert!(findings.any(|finding| finding["file"] == "schema.json" && finding["line"] == 2), "{checked}");
    let hash = shown["hash"].as_str().unwrap();
    let (status, saved) =
        shop.save(hash, json!({ "prompt.md": "Find more words.", "notes/a.md": "n" })).await;
    assert_eq!(status, 200, "{saved}");
    assert_eq!(shop.on_disk("prompt.md").as_deref(), Some("Find more words."));
    assert_eq!(shop.get("/v1/modules/words/files").await.1["hash"], saved["hash"]);
    let (status, conflict) = shop.save(hash, json!({ "prompt.md": "mine" })).await;
    assert_eq!((status, &conflict["error"]["details"]["kind"]), (409, &json!("conflict")), "{conflict}");
    assert_eq!(shop.on_disk("prompt.md").as_deref(), Some("Find more words."));
    let edits: Vec<_> = shop.audit.records().into_iter().filter(|record| record.event == "edit").collect();
    assert_eq!(edits.len(), 1, "a change that was not made is not recorded as one");
    assert_eq!(
        (edits[0].module.as_str(), &edits[0].receipt["files"]),
        ("words", &json!(["notes/a.md", "prompt.md"]))
    );
}

#[tokio::test]
async fn nothing_is_changed_outside_the_folders_of_the_operator() {
    let shop = Shop::new().await;
    let (_, shown) = shop.get("/v1/modules/words/files").await;
    let hash = shown["hash"].as_str().unwrap();
    let root = shop.server.folder.path().to_owned();
    for path in ["../../../outside.txt", "/tmp/outside.txt", "a/../../outside.txt", ".git/config"] {
        let (status, refused) = shop.save(hash, json!({ path: "x" })).await;
        assert_eq!((status, &refused["error"]["code"]), (400, &json!("E1001")), "{path}");
    }
    let put = |name: &str| {
        let body = json!({ "hash": hash, "files": { "prompt.md": "x" } });
        client().put(shop.server.url(&format!("/v1/modules/{name}/files"))).json(&body).send()
    };
    assert_eq!(put("summarizer").await.unwrap().status(), 403, "bundled");
    assert_eq!(put("hidden").await.unwrap().status(), 404, "not offered");
    assert_eq!(put("..%2Fhidden").await.unwrap().status(), 404);
    #[cfg(unix)]
    {
        let module = root.join("cognitive/modules/words");
        std::os::unix::fs::symlink(&root, module.join("out")).unwrap();
        let (status, _) = shop.save(hash, json!({ "out/outside.txt": "x" })).await;
        assert!(status >= 400);
        fs::remove_file(module.join("out")).unwrap();
    }
    assert!(!root.join("outside.txt").exists() && !root.join("cognitive/outside.txt").exists());
    assert_eq!(shop.on_disk("prompt.md").as_deref(), Some("Find the words."));
}

#[tokio::test]
async fn a_change_that_cannot_be_recorded_is_not_made() {
    struct Broken;
    impl cognitive_contract::ports::AuditLog for Broken {
        fn record(&self, _: &cognitive_contract::ports::AuditRecord) -> Result<(), String> {
            Err("the disk is full".to_owned())
        }
    }
    let shop = Shop::open(roomy(), |host, _| {
        host.audit = Some(Arc::new(Broken));
        host.audit_required = true;
    })
    .await;
    let hash = shop.get("/v1/modules/words/files").await.1["hash"].as_str().unwrap().to_owned();
    let (status, refused) = shop.save(&hash, json!({ "prompt.md": "x" })).await;
    assert_eq!((status, &refused["error"]["details"]["kind"]), (500, &json!("audit")), "{refused}");
    assert_eq!(shop.on_disk("prompt.md").as_deref(), Some("Find the words."));
}

// Text of modules and models is data: it is sent as JSON, and browsers must not sniff another type.
#[tokio::test]
async fn hostile_text_stays_text() {
    let shop = Shop::new().await;
    let hostile = "<script>alert(1)</script><img src=x onerror=alert(1)> \u{202e}abc\u{2028}";
    let (_, shown) = shop.get("/v1/modules/words/files").await;
    let (status, _) =
        shop.save(shown["hash"].as_str().unwrap(), json!({ "prompt.md": hostile, "a<b>.md": hostile })).await;
    assert_eq!(status, 200);
    let (_, shown) = shop.get("/v1/modules/words/files").await;
    assert!(shown["files"].as_array().unwrap().iter().any(|file| file["text"] == hostile));
    let (_, preview) = shop.post("/v1/modules/words/preview", json!({ "input": { "text": hostile } })).await;
    assert!(preview["calls"][0]["instructions"].as_str().unwrap().contains("<script>"));
}

#[tokio::test]
async fn drafts_and_previews_count_like_any_run() {
    let mut config = keyed();
    config.runs_per_minute = 2;
    let shop = Shop::open(config, |_, _| {}).await;
    let run = || {
        let body = json!({ "input": { "text": "a" }, "_options": { "draft": { "prompt.md": "x" } } });
        client()
            .post(shop.server.url("/api/run/words"))
            .bearer_auth(key_of(KeyRole::Admin))
            .json(&body)
            .send()
    };
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(run().await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
}

// A module that is shadowed by another of its name can be requested; one with more permissions cannot.
#[tokio::test]
async fn a_run_may_name_another_version() {
    let shop = Shop::new().await;
    let (_, alone) = shop.get("/v1/modules/words/versions").await;
    assert_eq!(alone["versions"].as_array().unwrap().len(), 1, "{alone}");
    assert_eq!(
        (&alone["versions"][0]["is_current"], &alone["versions"][0]["version"]),
        (&json!(true), &json!("1.0.0"))
    );
    let root = shop.server.folder.path();
    let older = |name: &str, version: &str, more: &str, prompt: &str| {
        let folder = root.join(name).join("words");
        fs::create_dir_all(&folder).unwrap();
        let manifest = shop.on_disk("module.yaml").unwrap().replace("1.0.0", version);
        fs::write(folder.join("module.yaml"), manifest + more).unwrap();
        fs::write(folder.join("prompt.md"), prompt).unwrap();
        fs::write(folder.join("schema.json"), shop.on_disk("schema.json").unwrap()).unwrap();
    };
    older("extra", "0.9.0", "", "Find some words.");
    older(".cognitive/modules", "0.8.0", "tools: {allowed: [shell]}\n", "Find the words.");
    let (_, listed) = shop.get("/v1/modules/words/versions").await;
    let id = |version: &str| {
        let all = listed["versions"].as_array().unwrap();
        let found = all.iter().find(|each| each["version"] == version);
        found.unwrap_or_else(|| panic!("{listed}"))["id"].as_str().unwrap().to_owned()
    };
    let (status, envelope) = shop.run(json!({ "version": id("0.9.0") })).await;
    assert_eq!(status, 200, "{envelope}");
    assert_eq!(shop.audit.records().last().unwrap().version, "0.9.0");
    let (_, preview) = shop
        .post(
            "/v1/modules/words/preview",
            json!({ "input": { "text": "a" }, "_options": { "version": id("0.9.0") } }),
        )
        .await;
    let instructions = preview["calls"][0]["instructions"].as_str().unwrap();
    assert!(instructions.contains("Find some words."), "{preview}");
    for (options, status) in [
        (json!({ "version": id("0.8.0") }), 403),
        (json!({ "version": "0.9.0" }), 400),
        (json!({ "version": "../../etc" }), 400),
        (json!({ "version": id("0.9.0"), "draft": { "prompt.md": "x" } }), 400),
    ] {
        let (answered, refused) = shop.run(options.clone()).await;
        assert_eq!(answered, status, "{options}: {refused}");
    }
    assert_eq!(shop.get("/v1/modules/hidden/versions").await.0, 404);
}

// An author who may change a module can try a repair before saving it.
#[tokio::test]
async fn a_broken_module_runs_as_the_draft_that_mends_it() {
    let shop = Shop::new().await;
    let module = shop.server.folder.path().join("cognitive/modules/words");
    let (manifest, schema) = (shop.on_disk("module.yaml").unwrap(), shop.on_disk("schema.json").unwrap());
    for (file, broken, whole) in
        [("schema.json", "{ \"data\": 1 }", &schema), ("module.yaml", "name: [", &manifest)]
    {
        fs::write(module.join(file), broken).unwrap();
        let (status, refused) = shop.run(json!({})).await;
        assert!(status >= 400, "{file}: {refused}");
        let (status, mended) = shop.run(json!({ "draft": { file: whole } })).await;
        assert_eq!((status, &mended["ok"]), (200, &json!(true)), "{file}: {mended}");
        assert_eq!(shop.run(json!({ "draft": { file: broken } })).await.0, 400, "{file}");
        let wider = format!("{manifest}tools: {{allowed: [shell]}}\n");
        if file == "schema.json" {
            let (status, refused) = shop.run(json!({ "draft": { "module.yaml": wider, file: whole } })).await;
            assert_eq!(status, 403, "the manifest that can be read still bounds it: {refused}");
        }
        fs::write(module.join(file), whole).unwrap();
    }
    let (status, refused) = shop
        .post("/api/run/hidden", json!({ "input": {}, "_options": { "draft": { "prompt.md": "x" } } }))
        .await;
    assert_eq!(status, 404, "{refused}");
}

#[tokio::test]
async fn a_plan_is_what_the_command_line_prints() {
    let shop = Shop::new().await;
    let (status, plan) = shop.get("/v1/modules/words/plan").await;
    assert_eq!((status, &plan["module"], &plan["pattern"]), (200, &json!("words"), &json!("none")));
    assert_eq!(shop.get("/v1/modules/hidden/plan").await.0, 404);
}
