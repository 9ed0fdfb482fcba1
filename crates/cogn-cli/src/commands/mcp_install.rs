//! `cogn mcp install CLIENT`: adds this program to the configuration of a client that starts servers. Shows the
//! difference first, saves a backup, and changes only the entry `cogn`. A file that is not plain JSON is left
//! unchanged, and the entry is printed for pasting.

use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_net::Kind;
use cognitive_setup::{env_vars, out_file, wiring};
use serde_json::{Map, Value, json};
use similar::{ChangeTag, TextDiff};

use super::fail;
use crate::printer::{BAD, Exit, FAINT, GOOD, NOTE, Printer, plain};

/// The name of the entry.
const ENTRY: &str = "cogn";
/// The maximum number of backups of a file, so that the search for a free name ends.
const MAX_BACKUPS: u32 = 1_000;

/// Options of `mcp install`.
#[derive(Debug, clap::Args)]
pub struct InstallArgs {
    /// The client
    #[arg(value_enum)]
    client: McpClient,
    /// Tools that the client sees, as for `cogn mcp --tools`
    #[arg(long, value_name = "WHICH")]
    tools: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Print JSON; never asks, so without `--yes` nothing is written
    #[arg(long)]
    json: bool,
}

/// Clients whose files are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum McpClient {
    /// Claude Desktop, for the user
    ClaudeDesktop,
    /// Claude Code, for the project: `.mcp.json`
    ClaudeCode,
    /// Cursor, for the user
    Cursor,
    /// Visual Studio Code, for the project: `.vscode/mcp.json`
    Vscode,
    /// Windsurf, for the user
    Windsurf,
    /// Gemini CLI, for the user
    GeminiCli,
}

impl McpClient {
    /// Returns the path of the client's configuration.
    fn file(self) -> Result<PathBuf, Failure> {
        let home =
            || wiring::home().ok_or_else(|| Failure::config_fault("no home folder: `HOME` is not set"));
        Ok(match self {
            Self::ClaudeDesktop => app_folder(&home()?).join("Claude/claude_desktop_config.json"),
            Self::ClaudeCode => wiring::project_root().join(".mcp.json"),
            Self::Cursor => home()?.join(".cursor/mcp.json"),
            Self::Vscode => wiring::project_root().join(".vscode/mcp.json"),
            Self::Windsurf => home()?.join(".codeium/windsurf/mcp_config.json"),
            Self::GeminiCli => home()?.join(".gemini/settings.json"),
        })
    }

    /// Returns the folder that the server has to start in; `None` if the client starts it in the project.
    fn folder(self) -> Option<String> {
        match self {
            Self::ClaudeCode => None,
            // Its file belongs to the project and may be checked in.
            Self::Vscode => Some("${workspaceFolder}".to_owned()),
            Self::ClaudeDesktop | Self::Cursor | Self::Windsurf | Self::GeminiCli => {
                let root = wiring::project_root();
                let root = root.canonicalize().unwrap_or(root);
                Some(root.display().to_string())
            }
        }
    }

    /// Returns the notation for the value of a variable; `None` if the client replaces none. A key itself never goes
    /// into a file.
    fn reference(self, variable: &str) -> Option<String> {
        match self {
            Self::ClaudeDesktop => None,
            Self::ClaudeCode | Self::GeminiCli => Some(format!("${{{variable}}}")),
            Self::Cursor | Self::Vscode | Self::Windsurf => Some(format!("${{env:{variable}}}")),
        }
    }

    /// Returns the member that holds the servers.
    fn member(self) -> &'static str {
        if self == Self::Vscode { "servers" } else { "mcpServers" }
    }
}

/// Returns the folder of application data on Windows, macOS or Linux.
fn app_folder(home: &Path) -> PathBuf {
    let mac = home.join("Library/Application Support");
    let named = |variable| wiring::environment(variable).map(PathBuf::from);
    match named("APPDATA") {
        Some(roaming) => roaming,
        None if mac.is_dir() => mac,
        None => named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
    }
}

/// Shows the change, and writes it after confirmation.
pub(super) fn install(args: &InstallArgs, printer: &Printer) -> Exit {
    match change(args) {
        Ok(change) => finish(args, &change, printer),
        Err(failure) => fail(&failure, printer),
    }
}

/// The contents of a file before and after.
struct ConfigChange {
    file: PathBuf,
    before: Option<String>,
    after: String,
}

fn change(args: &InstallArgs) -> Result<ConfigChange, Failure> {
    let file = args.client.file()?;
    let before = match fs::read_to_string(&file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unreadable(&file, &error)),
    };
    let after =
        with_entry(before.as_deref().unwrap_or_default(), args.client, entry(args)).map_err(|reason| {
            let entry = json!({ ENTRY: entry(args) });
            Failure::new(ErrorCode::InvalidInput, format!("`{}` is not plain JSON: {reason}", file.display()))
                .suggest(format!("Add this to `{}` yourself: {entry}", args.client.member()))
        })?;
    Ok(ConfigChange { file, before, after })
}

fn unreadable(file: &Path, error: &io::Error) -> Failure {
    Failure::new(ErrorCode::InternalError, format!("cannot read or write `{}`: {error}", file.display()))
}

fn entry(args: &InstallArgs) -> Value {
    let mut words = vec!["mcp".to_owned()];
    words.extend(args.client.folder().into_iter().flat_map(|folder| ["--folder".to_owned(), folder]));
    words.extend(args.tools.iter().flat_map(|tools| ["--tools".to_owned(), tools.clone()]));
    let mut entry = json!({ "command": this_program(), "args": words });
    let named = variables().into_iter();
    let env: Map<String, Value> =
        named.filter_map(|name| Some((name.to_owned(), Value::from(args.client.reference(name)?)))).collect();
    if !env.is_empty()
        && let Some(members) = entry.as_object_mut()
    {
        members.insert("env".to_owned(), Value::Object(env));
    }
    if args.client == McpClient::Vscode
        && let Some(members) = entry.as_object_mut()
    {
        members.insert("type".to_owned(), Value::from("stdio"));
    }
    entry
}

/// Returns the names of the variables that choose the model here and are set: a client starts the program without them.
fn variables() -> Vec<&'static str> {
    let of_services =
        Kind::all().flat_map(|kind| kind.key_variable().into_iter().chain([kind.base_url_variable()]));
    let mut names: Vec<&str> =
        [env_vars::PROVIDER, env_vars::MODEL, env_vars::WEIGHTS, env_vars::MODULES_PATH]
            .into_iter()
            .chain(of_services)
            .filter(|name| wiring::environment(name).is_some_and(|value| !value.is_empty()))
            .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the path of this program: a client starts it in another folder, with another search path.
fn this_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("cogn"))
}

/// Adds our entry to the text of a configuration. Everything else keeps its value and order.
fn with_entry(text: &str, client: McpClient, entry: Value) -> Result<String, String> {
    let mut root: Map<String, Value> = if text.trim().is_empty() {
        Map::new()
    } else {
        serde_json::from_str(text).map_err(|error| error.to_string())?
    };
    match root.entry(client.member()).or_insert_with(|| json!({})) {
        Value::Object(servers) => servers.insert(ENTRY.to_owned(), entry),
        _ => return Err(format!("`{}` is not an object", client.member())),
    };
    let mut text = serde_json::to_string_pretty(&root).map_err(|error| error.to_string())?;
    text.push('\n');
    Ok(text)
}

fn finish(args: &InstallArgs, change: &ConfigChange, printer: &Printer) -> Exit {
    let is_there = change.before.as_deref() == Some(change.after.as_str());
    if !args.json {
        printer.err(format!("{NOTE}{}{NOTE:#}", change.file.display()));
        if !is_there {
            show(change, printer);
        }
    }
    let wanted = !is_there && (args.yes || (!args.json && confirm(printer)));
    let backup = if wanted { write(change) } else { Ok(None) };
    let backup = match backup {
        Ok(backup) => backup,
        Err(error) => return fail(&unreadable(&change.file, &error), printer),
    };
    if args.json {
        printer.json(&json!({
            "file": change.file, "written": wanted, "up_to_date": is_there || wanted, "backup": backup,
        }));
    } else if is_there {
        printer.err("no change needed");
    } else if wanted {
        let unset: Vec<&str> =
            variables().into_iter().filter(|name| args.client.reference(name).is_none()).collect();
        if !unset.is_empty() {
            let names = unset.join("`, `");
            printer.warning(&format!(
                "this client passes no variables on; add to `env` of the entry: `{names}`"
            ));
        }
        let kept = backup.map(|path| format!(", backup: {}", path.display())).unwrap_or_default();
        printer.err(format!("{GOOD}written{GOOD:#}{kept}; restart the client"));
    } else {
        printer.err("nothing was written; `--yes` writes without asking");
    }
    Exit::Good
}

fn show(change: &ConfigChange, printer: &Printer) {
    let before = change.before.clone().unwrap_or_default();
    let diff = TextDiff::from_lines(before.as_str(), &change.after);
    for line in diff.iter_all_changes() {
        let (sign, style) = match line.tag() {
            ChangeTag::Delete => ('-', BAD),
            ChangeTag::Insert => ('+', GOOD),
            ChangeTag::Equal => (' ', FAINT),
        };
        let text = line.value().trim_end_matches(['\n', '\r']);
        printer.err(format!("{style}{sign} {}{style:#}", plain(text)));
    }
}

/// Asks the user. In a pipe the answer is no.
fn confirm(printer: &Printer) -> bool {
    if !io::stdin().is_terminal() {
        return false;
    }
    printer.err("Write it? [y/N]");
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Writes the file, and returns the path of the backup.
fn write(change: &ConfigChange) -> io::Result<Option<PathBuf>> {
    if let Some(folder) = change.file.parent() {
        fs::create_dir_all(folder)?;
    }
    let backup = match &change.before {
        Some(before) => Some(keep(&change.file, before)?),
        None => None,
    };
    out_file::write(&change.file, change.after.as_bytes())?;
    Ok(backup)
}

/// Saves a backup under a free name: an older backup is never replaced.
fn keep(file: &Path, before: &str) -> io::Result<PathBuf> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    for number in 1..=MAX_BACKUPS {
        let copy = file.with_file_name(format!("{name}.{number}.bak"));
        match fs::File::create_new(&copy) {
            Ok(mut created) => {
                io::Write::write_all(&mut created, before.as_bytes())?;
                return Ok(copy);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many backups of the file exist"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_else_stays_in_its_order() {
        let text = r#"{"zoom": 2, "mcpServers": {"other": {"command": "x"}}, "a": 1}"#;
        let after = with_entry(text, McpClient::Cursor, json!({ "command": "cogn" })).unwrap();
        let value: Value = serde_json::from_str(&after).unwrap();
        let names: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(names, ["zoom", "mcpServers", "a"]);
        assert_eq!(
            value["mcpServers"],
            json!({ "other": { "command": "x" }, "cogn": { "command": "cogn" } })
        );
        assert_eq!(with_entry(&after, McpClient::Cursor, json!({ "command": "cogn" })).unwrap(), after);
    }

    /// The client starts the program in another folder and without the variables of this one. A key is never written.
    #[test]
    fn an_entry_names_the_folder_and_the_variables_in_the_form_of_its_client() {
        let forms = [
            (McpClient::Cursor, true, Some("${env:OPENAI_API_KEY}")),
            (McpClient::Windsurf, true, Some("${env:OPENAI_API_KEY}")),
            (McpClient::GeminiCli, true, Some("${OPENAI_API_KEY}")),
            (McpClient::ClaudeDesktop, true, None),
            (McpClient::ClaudeCode, false, Some("${OPENAI_API_KEY}")),
            (McpClient::Vscode, true, Some("${env:OPENAI_API_KEY}")),
        ];
        for (client, has_folder, variable) in forms {
            let args = InstallArgs { client, tools: None, yes: false, json: false };
            let words = entry(&args)["args"].clone();
            assert_eq!(words.get(1) == Some(&json!("--folder")), has_folder, "{client:?}: {words}");
            assert_eq!(client.reference("OPENAI_API_KEY").as_deref(), variable, "{client:?}");
        }
        assert_eq!(McpClient::Vscode.folder().as_deref(), Some("${workspaceFolder}"));
        assert!(McpClient::Cursor.folder().is_some_and(|folder| Path::new(&folder).is_absolute()));
    }

    #[test]
    fn what_is_no_plain_json_is_left_alone() {
        for text in ["{ // mine\n}", "[1]", r#"{"mcpServers": []}"#] {
            assert!(with_entry(text, McpClient::Cursor, json!({})).is_err(), "{text}");
        }
        assert!(with_entry("", McpClient::Vscode, json!({})).unwrap().contains("\"servers\""));
    }

    #[test]
    fn an_older_copy_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("mcp.json");
        let first = keep(&file, "one").unwrap();
        let second = keep(&file, "two").unwrap();
        assert_eq!(fs::read_to_string(first).unwrap(), "one");
        assert_eq!(fs::read_to_string(second).unwrap(), "two");
    }
}
