//! A simulated terminal of a reader: an empty folder next to the folders of a checkout, a temporary home, a shell, and
//! a model that answers. Files that a page shows are written there.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use cognitive_testkit::{FakeModel, Lack, bundled_replies, port_to_name, skip, weights};
use serde_json::Value;
use tempfile::TempDir;

use crate::blocks::{Block, Typed};
use crate::outcome::is_as_shown;

/// The separator between the outputs of two commands.
const MARK: &str = "--- end of a command, exit code";

pub(crate) struct Session {
    folder: TempDir,
    home: TempDir,
    model: FakeModel,
}

impl Session {
    pub(crate) fn new(root: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["conformance", "eval", "modules"] {
            std::os::unix::fs::symlink(root.join(name), folder.path().join(name)).unwrap();
        }
        Self { folder, home: tempfile::tempdir().unwrap(), model: stand_in(root) }
    }

    /// Runs a block; returns the number of commands.
    pub(crate) fn follow(&mut self, block: &Block) -> Result<usize, String> {
        if let Some(file) = block.attribute("file") {
            return self.write(file, block).map(|()| 0);
        }
        if block.language != "console" {
            return Ok(0);
        }
        if let Some(reason) = block.attribute("not-run") {
            return if reason.len() < 10 { Err("not run without a reason".to_owned()) } else { Ok(0) };
        }
        match block.attribute("needs") {
            Some("weights") if weights().is_none() => {
                skip(Lack::Weights);
                return Ok(0);
            }
            Some("curl") if !has("curl") => {
                skip(Lack::Curl);
                return Ok(0);
            }
            None | Some("weights" | "curl") => {}
            Some(other) => return Err(format!("nobody knows what needs={other} is")),
        }
        self.run(block)
    }

    fn write(&self, file: &str, block: &Block) -> Result<(), String> {
        if !block.above.contains(file) {
            return Err(format!("the text above does not say that this is `{file}`"));
        }
        let path = self.folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, block.lines.join("\n") + "\n").unwrap();
        Ok(())
    }

    fn run(&self, block: &Block) -> Result<usize, String> {
        let commands = block.commands();
        let port = port_to_name();
        let mut script = String::new();
        for command in &commands {
            let typed = on_port(&command.typed.join("\n"), port);
            let _ = write!(script, "{typed}\ncode=$?; echo; echo '{MARK}' $code\n");
        }
        script.push_str("kill $(jobs -p) 2>/dev/null\n");
        let printed = self.shell(&script, block.attribute("needs") == Some("weights"));
        let expected_exit = block.attribute("exit").unwrap_or("0");
        let mut outputs = Vec::new();
        let mut rest = printed.as_str();
        while let Some((output, after)) = rest.split_once(MARK) {
            let (code, after) = after.split_once('\n').unwrap_or((after, ""));
            outputs.push((output, code.trim()));
            rest = after;
        }
        if outputs.len() != commands.len() {
            return Err(format!("the shell stopped early:\n{printed}"));
        }
        for (index, (command, (output, code))) in commands.iter().zip(&outputs).enumerate() {
            let wanted = if index + 1 == commands.len() { expected_exit } else { "0" };
            judge(command, &output.replace(&format!(":{port}"), ":8000"), code, wanted)?;
        }
        Ok(commands.len())
    }

    /// Runs a script and returns both streams as a terminal would show them, without colours.
    fn shell(&self, script: &str, embedded: bool) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_cogn"));
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", program.parent().unwrap().display());
        let mut shell = cognitive_testkit::command("bash");
        shell.arg("-c").arg(format!("exec 2>&1\n{script}")).current_dir(self.folder.path()).env_clear();
        shell.env("HOME", self.home.path()).env("PATH", path).env("LANG", "C.UTF-8");
        if embedded {
            shell.env("COGN_MODEL", weights().unwrap_or_default());
        } else {
            shell.env("OPENAI_API_KEY", "stand-in").env("OPENAI_BASE_URL", self.model.url());
            shell.env("COGN_OFFLINE", "1");
        }
        let output = shell.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// A hosted model that answers each bundled module with a recorded reply, and the modules of the pages with those in `replies/`, such as
/// `{"prompt": "You sort support tickets.", "reply": {…}}`.
fn stand_in(root: &Path) -> FakeModel {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/replies");
    let files = fs::read_dir(folder).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let of_page = |text: String| {
        let value: Value = serde_json::from_str(&text).unwrap();
        (value["prompt"].as_str().unwrap().to_owned(), value["reply"].to_string())
    };
    FakeModel::with_known_replies(files.map(of_page).chain(bundled_replies(&root.join("modules"))).collect())
}

fn judge(command: &Typed, output: &str, code: &str, wanted: &str) -> Result<(), String> {
    let typed = command.typed.join("\n");
    if code != wanted {
        return Err(format!("`{typed}` ended with {code}, not with {wanted}:\n{output}"));
    }
    let printed: Vec<&str> = output.trim_end_matches('\n').lines().collect();
    if command.shown.is_empty() || is_as_shown(&command.shown, &printed) {
        return Ok(());
    }
    Err(format!("`{typed}` does not print what is shown, but:\n{output}"))
}

/// Replaces the port, because the documented one may be in use.
fn on_port(typed: &str, port: u16) -> String {
    let served = typed.replace("cogn serve", &format!("cogn serve --port {port}"));
    let served = if typed.contains("--port") { typed.to_owned() } else { served };
    served
        .replace("localhost:8000", &format!("localhost:{port}"))
        .replace("127.0.0.1:8000", &format!("127.0.0.1:{port}"))
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
