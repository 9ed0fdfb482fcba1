//! Chooses the variant of a function: the one with the highest weight among those that are a single model call. Records
//! all other variants as lost.

use cognitive_contract::Failure;
use toml::{Table, Value as TomlValue};

use crate::loss::LossList;
use crate::source::{SourceFile, quote, refuse};

/// The parts of a variant that become a prompt.
#[derive(Debug)]
pub(super) struct FunctionVariant {
    /// Roles with the paths of their templates, the system role first.
    pub(super) templates: Vec<(String, String)>,
}

/// Chooses a variant, and records everything that is left out.
pub(super) fn choose_variant(
    function: &Table,
    place: &str,
    source: &SourceFile,
    losses: &mut LossList,
) -> Result<FunctionVariant, Failure> {
    let variants = function.get("variants").and_then(TomlValue::as_table);
    let variants: Vec<(&String, &Table)> =
        variants.into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_table()?))).collect();
    if variants.is_empty() {
        return Err(refuse(
            format!("`{place}` has no variant, so there is no prompt"),
            "Add a variant with templates",
        ));
    }
    let is_call = |variant: &Table| {
        variant.get("type").and_then(TomlValue::as_str).is_none_or(|kind| {
            matches!(kind, "chat_completion" | "experimental_chain_of_thought" | "chain_of_thought")
        })
    };
    let weight = |name: &str, variant: &Table| {
        let candidates = function.get("experimentation").and_then(|table| table.get("candidate_variants"));
        let weight = candidates.and_then(|table| table.get(name)).or_else(|| variant.get("weight"));
        weight.and_then(|weight| {
            weight
                .as_float()
                .or_else(|| weight.as_integer().and_then(|whole| i32::try_from(whole).ok()).map(f64::from))
        })
    };
    let best = variants.iter().filter(|(_, variant)| is_call(variant)).fold(
        None,
        |best: Option<(&String, &Table, f64)>, (name, variant)| {
            let own = weight(name, variant).unwrap_or(0.0);
            match best {
                Some((_, _, most)) if own <= most => best,
                _ => Some((name, variant, own)),
            }
        },
    );
    let Some((name, variant, _)) = best else {
        let message = format!("`{place}` has no variant that is a single call of a model");
        return Err(refuse(message, "Import a function with a variant of the type `chat_completion`"));
    };
    for (other, _) in variants.iter().filter(|(other, _)| *other != name) {
        let why = "the variant with the greatest weight is imported; compare prompts with `cogn eval`";
        losses.add_lost(format!("the variant {}", quote(other)), &source.name, why);
    }
    if function.contains_key("experimentation") {
        losses.add_lost(format!("`[{place}.experimentation]`"), &source.name, "a module has one prompt");
    }
    let place = format!("{place}.variants.{name}");
    let templates = templates(variant, &place)?;
    list_losses(variant, &place, source, losses);
    Ok(FunctionVariant { templates })
}

fn templates(variant: &Table, place: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut found = Vec::new();
    for role in ["system", "user", "assistant"] {
        if let Some(path) = variant.get(&format!("{role}_template")).and_then(TomlValue::as_str) {
            found.push((role.to_owned(), path.to_owned()));
        }
    }
    for (role, value) in variant.get("templates").and_then(TomlValue::as_table).into_iter().flatten() {
        if let Some(path) = value.get("path").unwrap_or(value).as_str() {
            found.push((role.clone(), path.to_owned()));
        }
    }
    found.sort_by_key(|(role, _)| role != "system");
    if found.iter().any(|(role, _)| role == "assistant") {
        return Err(refuse(
            format!(
                "`{place}` has a template for turns of the assistant: it continues a conversation, but a \
                 module makes a single judgement"
            ),
            "Import a variant that answers once",
        ));
    }
    if found.iter().filter(|(role, _)| role != "system").count() > 1 {
        return Err(refuse(
            format!("`{place}` has several templates for the user's turn, and each call chooses one"),
            "Keep only one of them in the imported file",
        ));
    }
    if found.is_empty() {
        let message = format!("`{place}` has no template, so there is no prompt");
        return Err(refuse(message, "Import a variant with a `system_template` or a `user_template`"));
    }
    Ok(found)
}

fn list_losses(variant: &Table, place: &str, source: &SourceFile, losses: &mut LossList) {
    for (key, value) in variant {
        match key.as_str() {
            "weight" | "templates" => {}
            key if key.ends_with("_template") => {}
            "type" if value.as_str() == Some("chat_completion") => {}
            "type" => {
                losses.add_changed(
                    format!("`{place}.type`"),
                    &source.name,
                    "the model writes its `rationale` before it answers",
                );
            }
            "model" => {
                let what = format!("the model {}", quote(value.as_str().unwrap_or_default()));
                losses.add_lost(what, &source.name, "the caller chooses the model and its settings");
            }
            "json_mode" => losses.add_lost(
                format!("`{place}.json_mode`"),
                &source.name,
                "answers are always validated against the contract",
            ),
            _ => {
                let why = "the caller chooses the model and its settings";
                losses.add_lost(format!("`{place}.{key}`"), &source.name, why);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(text: &str) -> Result<(FunctionVariant, Vec<String>), String> {
        let table: Table = text.parse().unwrap();
        let mut losses = LossList::default();
        let source = SourceFile::memory("t.toml", "");
        let variant = choose_variant(&table, "functions.f", &source, &mut losses)
            .map_err(|failure| failure.message().to_owned())?;
        Ok((variant, losses.finish().into_iter().map(|loss| loss.what).collect()))
    }

    #[test]
    fn the_greatest_weight_wins_and_the_rest_is_listed() {
        let (variant, losses) = choose(
            "[variants.a]\ntype = \"chat_completion\"\nweight = 1\nsystem_template = \"a\"\n\
             [variants.b]\ntype = \"chat_completion\"\nweight = 2.5\nuser_template = \"u\"\nsystem_template = \"b\"\nmodel = \"m\"\n\
             [variants.c]\ntype = \"experimental_best_of_n_sampling\"\nweight = 9\n",
        )
        .unwrap();
        assert_eq!(
            variant.templates,
            [("system".to_owned(), "b".to_owned()), ("user".to_owned(), "u".to_owned())]
        );
        assert_eq!(losses, ["the variant `a`", "the variant `c`", "the model `m`"]);
    }

    #[test]
    fn templates_of_the_new_form_are_read() {
        let (variant, _) =
            choose("[variants.a]\ntemplates.topic.path = \"t\"\ntemplates.system.path = \"s\"\n").unwrap();
        assert_eq!(
            variant.templates,
            [("system".to_owned(), "s".to_owned()), ("topic".to_owned(), "t".to_owned())]
        );
        assert!(
            choose("[variants.a]\ntemplates.x.path = \"t\"\ntemplates.y.path = \"s\"\n")
                .unwrap_err()
                .contains("several")
        );
        assert!(choose("[variants.a]\nmodel = \"m\"").unwrap_err().contains("no template"));
        assert!(choose("[variants.a]\nassistant_template = \"m\"").unwrap_err().contains("conversation"));
        assert!(
            choose("[variants.a]\ntype = \"experimental_dynamic_in_context_learning\"")
                .unwrap_err()
                .contains("single call")
        );
    }
}
