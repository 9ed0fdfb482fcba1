//! `cogn lower MODULE`: the contract as a provider or the embedded model enforces it, and the constraints that are
//! lost.
//! A lost constraint is still validated in every answer. The embedded model is stricter: it refuses a contract that it
//! cannot enforce, and that is reported first.

use clap::ValueEnum;
use cognitive_library::Library;
use cognitive_schema::{Effect, Loss, ProviderSchema, SchemaTarget};

use super::fail;
use crate::args::candidates;
use crate::printer::{DOUBT, Exit, FAINT, HEAD, NOTE, Printer};
use crate::text_table::TextTable;

/// The maximum number of losses in the table, so that a large contract does not fill the terminal. The severe ones come
/// first, and `--json` has all of them.
const MAX_LOSSES_SHOWN: usize = 100;

/// Options of `lower`.
#[derive(Debug, clap::Args)]
pub struct LowerArgs {
    /// Name of an installed module, or path of a folder
    #[arg(add = candidates::modules())]
    module: String,
    /// The provider whose dialect is used
    #[arg(long, alias = "for", value_enum, value_name = "TARGET")]
    target: DialectArg,
    /// Print JSON: the schema together with the losses
    #[arg(long)]
    json: bool,
}

/// The targets that a contract can be converted to.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum DialectArg {
    /// OpenAI and compatible services: `json_schema` with `strict`
    Openai,
    /// Anthropic: `output_config.format`
    Anthropic,
    /// Gemini: `responseJsonSchema`
    Gemini,
    /// Ollama: `format`
    Ollama,
    /// The embedded model's own grammar
    #[value(alias = "embedded")]
    Grammar,
}

impl From<DialectArg> for SchemaTarget {
    fn from(dialect: DialectArg) -> Self {
        match dialect {
            DialectArg::Openai => Self::OpenAi,
            DialectArg::Anthropic => Self::Anthropic,
            DialectArg::Gemini => Self::Gemini,
            DialectArg::Ollama => Self::Ollama,
            DialectArg::Grammar => Self::Grammar,
        }
    }
}

/// Prints the schema on stdout, ready to send, and the losses on stderr.
pub fn lower(args: &LowerArgs, library: &Library, printer: &Printer) -> Exit {
    let module = match library.load(&args.module) {
        Ok(module) => module,
        Err(failure) => return fail(&failure, printer),
    };
    let lowered = module.provider_schema(args.target.into());
    if args.json {
        printer.json(&*lowered);
        return Exit::Good;
    }
    printer.json(&lowered.schema);
    show_losses(&lowered, printer);
    Exit::Good
}

fn show_losses(lowered: &ProviderSchema, printer: &Printer) {
    let target = lowered.target.word();
    if lowered.losses.is_empty() {
        printer.err(format!("{HEAD}{target}{HEAD:#} can express the whole contract"));
        return;
    }
    printer.err(format!("{HEAD}{target}{HEAD:#} {}", summary(lowered)));
    let (first, rest): (Vec<&Loss>, Vec<&Loss>) = lowered.losses.iter().partition(|loss| is_grave(loss));
    let rows = first.into_iter().chain(rest).take(MAX_LOSSES_SHOWN).map(row);
    printer.table_err(&TextTable::without_headings(3).indent(2).with(rows));
    if let Some(more) = lowered.losses.len().checked_sub(MAX_LOSSES_SHOWN).filter(|more| *more > 0) {
        printer.err(format!("  {FAINT}and {more} more; `--json` lists all of them{FAINT:#}"));
    }
}

/// Describes the effect of the losses on answers.
fn summary(lowered: &ProviderSchema) -> String {
    let places = |count: usize| if count == 1 { "one place".to_owned() } else { format!("{count} places") };
    let (losses, gaps) = (lowered.losses.len(), lowered.gaps().count());
    match (lowered.target, gaps) {
        (SchemaTarget::Grammar, 0) => {
            format!("is stricter than this contract in {}; all its answers are valid", places(losses))
        }
        (SchemaTarget::Grammar, gaps) => format!(
            "cannot express this contract in {}, so the embedded model refuses the module; use other keywords \
             there, or choose another provider",
            places(gaps)
        ),
        _ => {
            format!("cannot express this contract in {}; answers are still validated in full", places(losses))
        }
    }
}

/// Returns whether an answer may violate the contract because of it, or the model refuses the contract.
fn is_grave(loss: &Loss) -> bool {
    matches!(loss.effect, Effect::Validity | Effect::Refused)
}

fn row(loss: &Loss) -> Vec<String> {
    let path = if loss.path.is_empty() { "/" } else { &loss.path };
    let style = if is_grave(loss) { DOUBT } else { FAINT };
    vec![format!("{NOTE}{path}{NOTE:#}"), loss.keyword.clone(), format!("{style}{}{style:#}", loss.what)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_05_words_on_the_command_line_are_those_of_the_json() {
        for dialect in DialectArg::value_variants() {
            let typed = dialect.to_possible_value().unwrap();
            let target = SchemaTarget::from(*dialect);
            assert_eq!(typed.get_name(), target.word());
            assert_eq!(serde_json::to_value(target).unwrap(), target.word());
        }
        assert_eq!(DialectArg::value_variants().len(), SchemaTarget::ALL.len());
    }

    #[test]
    fn d_05_a_loss_at_the_top_has_a_path_to_show() {
        assert!(row(&loss(Effect::Validity))[0].contains('/'));
    }

    fn loss(effect: Effect) -> Loss {
        Loss { path: String::new(), keyword: "oneOf".to_owned(), what: "weakened: x".to_owned(), effect }
    }

    #[test]
    fn d_05_the_embedded_model_refuses_only_for_what_could_break_an_answer() {
        let of = |target, effects: &[Effect]| {
            let losses = effects.iter().map(|effect| loss(*effect)).collect();
            summary(&ProviderSchema::new(target, serde_json::Value::Null, losses))
        };
        let harmless = [Effect::Tightened, Effect::Annotation];
        assert!(of(SchemaTarget::Grammar, &harmless).ends_with("all its answers are valid"));
        let grave = [Effect::Tightened, Effect::Validity];
        assert!(of(SchemaTarget::Grammar, &grave).contains("in one place, so the embedded model refuses"));
        assert!(of(SchemaTarget::OpenAi, &grave).contains("2 places; answers are still validated"));
    }
}
