//! Programs as surfaces: the library in this process, the Python package and the TypeScript client. Null instead of an
//! envelope if the language is not on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use clap::Parser as _;
use cogn::Runtime;
use cognitive_contract::RunSettings;
use cognitive_library::Library;
use cognitive_setup::config::Config;
use cognitive_testkit::{Home, Lack, skip};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::surfaces::{Ask, server};

/// The options that a program sets for all runs of its runtime, written as flags.
#[derive(clap::Parser)]
struct TypedSettings {
    #[command(flatten)]
    run: RunSettings,
}

/// Runs the module with the library. Its service needs no key, because the environment of this process is not its own.
pub(crate) fn library(home: &Home, ask: &Ask<'_>) -> Value {
    let written = fs::read_to_string(home.path(".cognitive/config.yaml")).unwrap_or_default();
    let base_url = ask.environment.iter().rfind(|(name, _)| name.ends_with("BASE_URL"));
    let service = json!({ "provider": "vllm", "model": "fake", "base_url": base_url.map(|(_, url)| url) });
    // Models on this machine are free, so without a price no limit of cost could be seen.
    let prices = json!({ "prices": { "as_of": "2026-11-17", "models": { "vllm/fake": { "input": 2, "output": 8 } } } });
    let database = json!({ "audit": { "path": home.path("cognitive.db") } });
    let config =
        [service, prices, database].into_iter().fold(Config::parse(&written).unwrap(), |config, more| {
            config.or(Config::parse(&more.to_string()).unwrap())
        });
    let modules = Library::new(home.folder(), None, &[]);
    let typed = TypedSettings::parse_from([&["program"], ask.flags].concat());
    let builder = Runtime::builder().config(config).run_settings(typed.run);
    let runtime = builder.module_source(modules).build().unwrap();
    let mut run = runtime.module_or_envelope(ask.module).input(ask.input.clone());
    if ask.options == json!({ "schemas": false }) {
        run = run.without_schemas();
    } else if !ask.options.is_null() {
        let settings = serde_json::from_value(ask.options.clone()).unwrap();
        run = run.options(|options| options.settings = settings);
    }
    let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    serde_json::to_value(waiting.block_on(run.run())).unwrap()
}

/// The package of this checkout with the native half of this build.
fn site() -> &'static Path {
    static SITE: OnceLock<TempDir> = OnceLock::new();
    let site = SITE.get_or_init(|| {
        let site = tempfile::tempdir().unwrap();
        let sources = root().join("packaging/python/src/cogn");
        let package = site.path().join("cogn");
        fs::create_dir(&package).unwrap();
        for file in fs::read_dir(sources).unwrap().map(Result::unwrap) {
            if file.path().is_file() {
                fs::copy(file.path(), package.join(file.file_name())).unwrap();
            }
        }
        let native = std::env::current_exe().unwrap().with_file_name("libcogn_python.so");
        let place = package.join("_native.abi3.so");
        fs::hard_link(&native, &place).or_else(|_| fs::copy(&native, &place).map(drop)).unwrap();
        site
    });
    site.path()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs the module with `cogn.run`. A misspelt option raises an exception, which is returned as text.
pub(crate) fn python(home: &Home, ask: &Ask<'_>) -> Value {
    const PROGRAM: &str = "import cogn, json, sys\n\
        module, given, options = json.loads(sys.argv[1])\n\
        try: print(json.dumps(dict(cogn.run(module, given, **options))))\n\
        except TypeError as error: print(json.dumps(str(error)))\n";
    let check = "import sys; assert sys.version_info >= (3, 10)";
    let found = Command::new("python3").args(["-c", check]).status().is_ok_and(|status| status.success());
    if !found {
        skip(Lack::PythonTests);
        return Value::Null;
    }
    let options = if ask.options.is_null() { json!({}) } else { ask.options.clone() };
    let asked = json!([ask.module, ask.input, options]).to_string();
    let mut command = cognitive_testkit::command("python3");
    command.args(["-c", PROGRAM, &asked]).current_dir(home.folder()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home.folder());
    command.env("PYTHONPATH", site()).env("COGN_OFFLINE", "1").envs(ask.environment.iter().copied());
    printed(command)
}

/// The client, compiled once.
fn client() -> Option<&'static Path> {
    static CLIENT: OnceLock<Option<TempDir>> = OnceLock::new();
    let client = CLIENT.get_or_init(|| {
        let compiler =
            PathBuf::from(std::env::var_os("COGN_TEST_NODE")?).join("node_modules/typescript/bin/tsc");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("package.json"), r#"{ "type": "module" }"#).unwrap();
        let mut compile = cognitive_testkit::command("node");
        compile.arg(compiler.exists().then_some(compiler)?).args(["-p", "tsconfig.json", "--outDir"]);
        let done = compile.arg(folder.path()).current_dir(root().join("typescript")).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        Some(folder)
    });
    client.as_ref().map(TempDir::path)
}

/// Runs the module with the TypeScript client at a server with the same files and flags.
pub(crate) fn typescript(home: &Home, ask: &Ask<'_>) -> Value {
    const PROGRAM: &str = "
        const [folder, baseUrl, asked] = process.argv.slice(1);
        const { Cogn } = await import(`${folder}/index.js`);
        const [module, input, options] = JSON.parse(asked);
        const camel = (name) => name === 'timeout' ? 'callTimeout' : name.replace(/_(.)/g, (_, c) => c.toUpperCase());
        const named = Object.fromEntries(Object.entries(options).map(([name, value]) => [camel(name), value]));
        console.log(JSON.stringify(await new Cogn({ baseUrl }).run(module, input, named)));";
    let Some(client) = client() else {
        skip(Lack::TypescriptGenerator);
        return Value::Null;
    };
    let server = server(home, ask);
    let options = if ask.options.is_null() { json!({}) } else { ask.options.clone() };
    let mut command = cognitive_testkit::command("node");
    command.args(["--input-type=module", "-e", PROGRAM]).arg(client);
    command
        .arg(format!("http://{}", server.address))
        .arg(json!([ask.module, ask.input, options]).to_string());
    printed(command.env("NO_PROXY", "127.0.0.1"))
}

/// The JSON in the last line that a program prints.
fn printed(mut command: impl std::borrow::BorrowMut<Command>) -> Value {
    let output = command.borrow_mut().output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}
