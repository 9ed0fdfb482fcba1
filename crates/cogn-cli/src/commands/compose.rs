//! `cogn compose plan MODULE`: the parts of a module with their versions, and the steps that would run.
//! Calls no model. A composition that cannot run is reported with the error code of a run.

use cognitive_contract::Failure;
use cognitive_library::Library;
use cognitive_runtime::CostCeiling;
use cognitive_runtime::compose::{Overview, OverviewEdge, OverviewStep, overview};

use super::fail;
use super::plan_cost::{self, USUAL_INPUT_BYTES};
use crate::args::candidates;
use crate::args::provider::ProviderArgs;
use crate::figures::duration;
use crate::printer::{DOUBT, Exit, FAINT, HEAD, NOTE, Printer};
use crate::text_table::TextTable;

/// Options of `compose`.
#[derive(Debug, clap::Args)]
pub struct ComposeArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show the parts of a module and the order of their runs
    Plan(PlanArgs),
}

#[derive(Debug, clap::Args)]
struct PlanArgs {
    /// Name of an installed module, or path of a folder
    #[arg(add = candidates::modules())]
    module: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print a Mermaid graph
    #[arg(long, conflicts_with_all = ["json", "cost"])]
    mermaid: bool,
    /// Show the maximum cost of one run, by module; exit 1 if it exceeds `--max-cost`
    #[arg(long)]
    cost: bool,
    /// Input length that `--cost` assumes, in bytes
    #[arg(long, value_name = "N", default_value_t = USUAL_INPUT_BYTES)]
    input_bytes: u64,
    #[command(flatten)]
    provider: ProviderArgs,
}

/// Prints the plan.
pub fn compose(args: &ComposeArgs, library: &Library, printer: &Printer) -> Exit {
    let Action::Plan(args) = &args.action;
    if !args.cost
        && let Err(failure) = args.provider.refuse_without("`--cost`")
    {
        let _always_bad = fail(&failure, printer);
        return Exit::Usage;
    }
    let (overview, ceiling) = match plan_overview(args, library) {
        Ok(planned) => planned,
        Err(failure) => return fail(&failure, printer),
    };
    if args.json {
        printer.json(&PlanWithCost { overview: &overview, at_most: ceiling.as_ref() });
    } else if args.mermaid {
        printer.print_line(overview.mermaid().trim_end());
    } else {
        show(&overview, printer);
        if let Some(ceiling) = &ceiling {
            plan_cost::show(ceiling, printer);
        }
    }
    let limit = args.provider.run.max_cost.zip(ceiling);
    if limit.is_some_and(|(limit, ceiling)| ceiling.cost > limit) { Exit::Bad } else { Exit::Good }
}

/// The plan in JSON.
#[derive(serde::Serialize)]
struct PlanWithCost<'p> {
    #[serde(flatten)]
    overview: &'p Overview,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<&'p CostCeiling>,
}

fn plan_overview(args: &PlanArgs, library: &Library) -> Result<(Overview, Option<CostCeiling>), Failure> {
    let module = library.load(&args.module)?;
    let ceiling = args.cost.then(|| plan_cost::ceiling(&module, library, &args.provider, args.input_bytes));
    Ok((overview(library, &module)?, ceiling.transpose()?))
}

fn show(overview: &Overview, printer: &Printer) {
    let version = overview.modules.first().map_or("", |member| member.version.as_str());
    printer.print_line(format!("{HEAD}{}{HEAD:#} {version}", overview.module));
    let runs =
        if overview.runs.is_empty() { "nothing".to_owned() } else { overview.runs.join(order(overview)) };
    let answer = match overview.answer {
        "parts" => "assembled from the parts, without another model call",
        "chosen part" => "the result of the last part",
        _ => "by its own prompt, with the results of its parts",
    };
    #[expect(clippy::cast_precision_loss, reason = "a limit of a few minutes")]
    let time = duration(overview.timeout_ms as f64);
    let facts = [
        ("pattern", overview.pattern.to_owned()),
        ("runs", runs),
        ("answer", answer.to_owned()),
        ("time limit", time),
        ("model calls", format!("at least {}, depth {}", overview.calls, overview.depth)),
    ];
    printer.table(&TextTable::facts(facts).indent(2));
    if !overview.steps.is_empty() {
        printer.print_line(format!("\n{HEAD}flow{HEAD:#}"));
    }
    for step in &overview.steps {
        show_step(step, overview, printer);
    }
    if let Some(first) = overview.runs.first().filter(|_| !overview.rules.is_empty()) {
        printer.print_line(format!("\n{HEAD}after {first}{HEAD:#}"));
        let rules = overview.rules.iter().map(|rule| {
            let next = rule.next.as_deref().unwrap_or("answer");
            vec![format!("if {}", rule.condition), format!("{NOTE}──▶{NOTE:#} {next}")]
        });
        printer.table(&TextTable::without_headings(2).prose(0).indent(2).with(rules));
    }
    for member in overview.modules.iter().filter(|member| !member.needs.is_empty()) {
        printer.print_line(format!("\n{HEAD}{} {}{HEAD:#} needs", member.name, member.version));
        printer.table(&TextTable::without_headings(4).indent(2).with(member.needs.iter().map(cells)));
    }
}

/// Returns the separator between parts: an arrow if one waits for the other.
fn order(overview: &Overview) -> &'static str {
    if overview.pattern == "parallel" { ", " } else { " ──▶ " }
}

/// Prints the arrow of a step from source to target, and below it the condition and the mapped values.
fn show_step(step: &OverviewStep, overview: &Overview, printer: &Printer) {
    let target = |name: &String| {
        let found = overview.modules.iter().find(|member| member.name == *name);
        found.map_or_else(|| name.clone(), |member| format!("{name} {FAINT}{}{FAINT:#}", member.version))
    };
    let to: Vec<String> = step.to.iter().map(target).collect();
    let row = vec![step.from.join(" + "), format!("{NOTE}──▶{NOTE:#}"), to.join(", ")];
    printer.table(&TextTable::without_headings(3).narrow().indent(2).with([row]));
    let condition =
        step.condition.iter().map(|condition| vec![format!("{DOUBT}if{DOUBT:#}"), condition.clone()]);
    printer.table(&TextTable::without_headings(2).indent(6).with(condition));
    let carried = step
        .mapping
        .iter()
        .map(|each| vec![each.member.clone(), format!("{FAINT}◀─{FAINT:#} {}", each.path)]);
    printer.table(&TextTable::without_headings(2).indent(6).with(carried));
}

fn cells(edge: &OverviewEdge) -> Vec<String> {
    let version = edge.version.clone().unwrap_or_else(|| format!("{DOUBT}missing{DOUBT:#}"));
    let fallback = edge.fallback.as_ref().map(|name| format!("else {name}")).unwrap_or_default();
    let optional = if edge.optional { "optional" } else { "" };
    vec![edge.name.clone(), version, optional.to_owned(), fallback]
}
