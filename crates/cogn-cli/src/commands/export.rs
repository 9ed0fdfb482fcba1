//! `cogn export skill MODULE`: writes a module as an agent skill, a folder that includes the module. Overwrites
//! nothing.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use cognitive_contract::Failure;
use cognitive_library::skill::export_skill;
use cognitive_library::{Library, ModuleLoadError, load};
use cognitive_setup::wiring;
use serde_json::json;

use super::fail;
use crate::args::candidates;
use crate::printer::{Exit, FAINT, GOOD, Printer};

/// Options of `export`.
#[derive(Debug, clap::Args)]
pub struct ModuleExportArgs {
    #[command(subcommand)]
    form: ExportForm,
}

#[derive(Debug, clap::Subcommand)]
enum ExportForm {
    /// Write an Agent Skill: a folder with `SKILL.md` and the module inside
    Skill(SkillArgs),
}

#[derive(Debug, clap::Args)]
struct SkillArgs {
    /// Name of an installed module, or path of a folder
    #[arg(add = candidates::modules())]
    module: String,
    /// Parent folder of the skill
    #[arg(long, short, value_name = "DIR", default_value = "skills", conflicts_with = "install")]
    output: PathBuf,
    /// Write to this client's folder for the skills of a project
    #[arg(long, value_enum, value_name = "CLIENT")]
    install: Option<SkillClient>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Clients that look for skills in a folder of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SkillClient {
    /// `.claude/skills`
    ClaudeCode,
    /// `.agents/skills`, which most clients read
    Agents,
}

impl SkillClient {
    fn folder(self) -> &'static Path {
        Path::new(match self {
            Self::ClaudeCode => ".claude/skills",
            Self::Agents => ".agents/skills",
        })
    }
}

/// Writes the module in the requested form.
pub fn export(args: &ModuleExportArgs, library: &Library, printer: &Printer) -> Exit {
    let ExportForm::Skill(args) = &args.form;
    let path = match write(args, library) {
        Ok(path) => path,
        Err(failure) => return fail(&failure, printer),
    };
    if args.json {
        printer.json(&json!({ "skill": path }));
    } else {
        printer.err(format!("{GOOD}written{GOOD:#}"));
        printer.print_line(path.display().to_string());
        printer
            .err(format!("{FAINT}agents find it by its description; `cogn` must be on their path{FAINT:#}"));
    }
    Exit::Good
}

fn write(args: &SkillArgs, library: &Library) -> Result<PathBuf, Failure> {
    let found = library.find(&args.module)?;
    let module = load(&found.folder).map_err(ModuleLoadError::into_failure)?;
    let parent = args
        .install
        .map_or_else(|| args.output.clone(), |client| wiring::project_root().join(client.folder()));
    export_skill(&parent, &found.folder, &module)
}
