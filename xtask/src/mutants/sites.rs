//! Finds the places of a Rust file that a mutant can change, and writes the file with the changes behind a switch.

use std::collections::BTreeMap;
use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Arm, BinOp, Block, Expr, Pat, ReturnType, Signature, Type, UnOp};

/// A part of the text that replaces a place.
#[derive(Debug, Clone)]
enum MutantPiece {
    Text(&'static str),
    /// The text of the file at this range, with the mutants inside it.
    Source(Range<usize>),
}

/// One change.
#[derive(Debug)]
pub(super) struct Mutant {
    /// File, function and change. It names no line, so that edits elsewhere in the file leave it alone.
    pub(super) key: String,
    /// The line of the place.
    pub(super) line: usize,
    replacement: Vec<MutantPiece>,
}

/// The form of the choice between the original and its mutants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SiteForm {
    /// An expression: the original is one of the choices.
    Expression,
    /// An insertion at the start of a function. Each choice returns a value.
    Body,
    /// An insertion behind a pattern. The mutant switches the arm off.
    Guard,
}

/// One place, with its mutants.
#[derive(Debug)]
pub(super) struct MutationSite {
    range: Range<usize>,
    form: SiteForm,
    original: Vec<MutantPiece>,
    pub(super) mutants: Vec<Mutant>,
}

/// The places of a file, outermost first.
///
/// # Errors
/// If the file is not Rust.
pub(super) fn sites(path: &str, source: &str) -> Result<Vec<MutationSite>, String> {
    let file = syn::parse_file(source).map_err(|error| format!("{path}: {error}"))?;
    let mut finder =
        SiteFinder { path, source, function: String::new(), sites: Vec::new(), names: BTreeMap::new() };
    finder.visit_file(&file);
    let mut sites = finder.sites;
    sites.sort_by_key(|site| (site.range.start, std::cmp::Reverse(site.range.end)));
    Ok(sites)
}

struct SiteFinder<'a> {
    path: &'a str,
    source: &'a str,
    function: String,
    sites: Vec<MutationSite>,
    /// The number of mutants by key. Equal keys get a number.
    names: BTreeMap<String, usize>,
}

impl SiteFinder<'_> {
    fn text(&self, range: &Range<usize>) -> String {
        let text = self.source.get(range.clone()).unwrap_or_default();
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.chars().count() > 60 { line.chars().take(57).chain("...".chars()).collect() } else { line }
    }

    fn add(&mut self, span: Span, form: SiteForm, choices: Vec<(String, Vec<MutantPiece>)>) {
        let range = match form {
            SiteForm::Expression => span.byte_range(),
            SiteForm::Body => span.byte_range().start + 1..span.byte_range().start + 1,
            SiteForm::Guard => span.byte_range().end..span.byte_range().end,
        };
        let line = span.start().line;
        let mut mutants = Vec::new();
        for (change, replacement) in choices {
            let key = format!("{}::{}: {change}", self.path, self.function);
            let count = self.names.entry(key.clone()).or_default();
            *count += 1;
            let key = if *count > 1 { format!("{key} #{count}") } else { key };
            mutants.push(Mutant { key, line, replacement });
        }
        if !mutants.is_empty() {
            let original = vec![MutantPiece::Source(range.clone())];
            self.sites.push(MutationSite { range, form, original, mutants });
        }
    }

    /// Adds the mutants that replace the body of a function by a value of its type.
    fn body(&mut self, signature: &Signature, block: &Block) {
        if signature.constness.is_some() || block.stmts.is_empty() {
            return;
        }
        let written = block_text(self.source, block);
        let choices = values(&signature.output)
            .iter()
            .filter(|value| written != **value)
            .map(|value| {
                (
                    format!("return {}", if value.is_empty() { "()" } else { value }),
                    vec![MutantPiece::Text(value)],
                )
            })
            .collect();
        self.add(block.span(), SiteForm::Body, choices);
    }

    fn with_function(&mut self, name: String, walk: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.function, name);
        walk(self);
        self.function = outer;
    }
}

/// The text of a block without its braces.
fn block_text<'a>(source: &'a str, block: &Block) -> &'a str {
    let range = block.span().byte_range();
    source.get(range.start + 1..range.end - 1).unwrap_or_default().trim()
}

/// Values that a mutant of a function returns.
fn values(output: &ReturnType) -> &'static [&'static str] {
    let ReturnType::Type(_, shape) = output else { return &[""] };
    let Type::Path(path) = &**shape else {
        let is_text = matches!(&**shape, Type::Reference(to) if matches!(&*to.elem, Type::Path(path) if path.path.is_ident("str")));
        return if is_text { &["\"\"", "\"xyzzy\""] } else { &["Default::default()"] };
    };
    let Some(last) = path.path.segments.last() else { return &[] };
    match last.ident.to_string().as_str() {
        "bool" => &["true", "false"],
        "String" => &["String::new()", "\"xyzzy\".to_owned()"],
        "Option" => &["None"],
        "Vec" => &["Vec::new()"],
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => &["0", "1"],
        "f64" => &["0.0", "1.0"],
        "Result" => &["Ok(Default::default())"],
        _ => &["Default::default()"],
    }
}

/// Returns whether an item is compiled only for tests.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|each| {
        each.path().is_ident("test")
            || (each.path().is_ident("cfg")
                && each.meta.require_list().is_ok_and(|list| list.tokens.to_string().contains("test")))
    })
}

/// Returns whether a condition binds names, which is not possible in parentheses.
fn has_bindings(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(both) => {
            matches!(both.op, BinOp::And(_)) && (has_bindings(&both.left) || has_bindings(&both.right))
        }
        _ => false,
    }
}

/// The operators that replace another one.
fn other_operators(operator: &BinOp) -> Option<(&'static str, &'static [&'static str])> {
    Some(match operator {
        BinOp::Eq(_) => (" == ", &[" != "]),
        BinOp::Ne(_) => (" != ", &[" == "]),
        BinOp::Lt(_) => (" < ", &[" <= ", " > "]),
        BinOp::Le(_) => (" <= ", &[" < ", " > "]),
        BinOp::Gt(_) => (" > ", &[" >= ", " < "]),
        BinOp::Ge(_) => (" >= ", &[" > ", " < "]),
        BinOp::And(_) => (" && ", &[" || "]),
        BinOp::Or(_) => (" || ", &[" && "]),
        BinOp::Add(_) => (" + ", &[" - "]),
        BinOp::Sub(_) => (" - ", &[" + "]),
        BinOp::Mul(_) => (" * ", &[" + "]),
        BinOp::Div(_) => (" / ", &[" * "]),
        BinOp::Rem(_) => (" % ", &[" / "]),
        BinOp::AddAssign(_) => (" += ", &[" -= "]),
        BinOp::SubAssign(_) => (" -= ", &[" += "]),
        _ => return None,
    })
}

impl<'ast> Visit<'ast> for SiteFinder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}

    fn visit_type(&mut self, _: &'ast Type) {}

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if is_test(&item.attrs) {
            return;
        }
        let name = match &*item.self_ty {
            Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        self.with_function(name.unwrap_or_default(), |this| visit::visit_item_impl(this, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if is_test(&item.attrs) || item.sig.constness.is_some() {
            return;
        }
        self.with_function(item.sig.ident.to_string(), |this| {
            this.body(&item.sig, &item.block);
            visit::visit_block(this, &item.block);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_test(&item.attrs) || item.sig.constness.is_some() {
            return;
        }
        self.with_function(format!("{}::{}", self.function, item.sig.ident), |this| {
            this.body(&item.sig, &item.block);
            visit::visit_block(this, &item.block);
        });
    }

    fn visit_expr_binary(&mut self, both: &'ast syn::ExprBinary) {
        let has_names = has_bindings(&both.left) || has_bindings(&both.right);
        if let Some((original, others)) = other_operators(&both.op).filter(|_| !has_names) {
            let (left, right) = (both.left.span().byte_range(), both.right.span().byte_range());
            let pieces = |operator| {
                vec![
                    MutantPiece::Source(left.clone()),
                    MutantPiece::Text(operator),
                    MutantPiece::Source(right.clone()),
                ]
            };
            let text = self.text(&both.span().byte_range());
            let choices = others
                .iter()
                .map(|other| (format!("`{text}` with{}for{}", other, original.trim_end()), pieces(*other)))
                .collect();
            let count = self.sites.len();
            self.add(both.span(), SiteForm::Expression, choices);
            if let Some(site) = self.sites.get_mut(count) {
                site.original = pieces(original);
            }
        }
        visit::visit_expr_binary(self, both);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        if matches!(unary.op, UnOp::Not(_)) {
            let inner = vec![MutantPiece::Source(unary.expr.span().byte_range())];
            let text = self.text(&unary.span().byte_range());
            let count = self.sites.len();
            self.add(
                unary.span(),
                SiteForm::Expression,
                vec![(format!("`{text}` without !"), inner.clone())],
            );
            if let Some(site) = self.sites.get_mut(count) {
                site.original = [vec![MutantPiece::Text("!")], inner].concat();
            }
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        if matches!(&*branch.cond, Expr::MethodCall(_) | Expr::Call(_) | Expr::Path(_) | Expr::Field(_)) {
            let text = self.text(&branch.cond.span().byte_range());
            let negated = vec![MutantPiece::Text("!"), MutantPiece::Source(branch.cond.span().byte_range())];
            self.add(branch.cond.span(), SiteForm::Expression, vec![(format!("if not `{text}`"), negated)]);
        }
        visit::visit_expr_if(self, branch);
    }

    fn visit_expr_match(&mut self, choice: &'ast syn::ExprMatch) {
        let rest = choice.arms.iter().position(|arm| matches!(arm.pat, Pat::Wild(_)) && arm.guard.is_none());
        for (at, arm) in choice.arms.iter().enumerate() {
            let text = self.text(&arm.pat.span().byte_range());
            match &arm.guard {
                None if rest.is_some_and(|rest| at < rest) => {
                    self.add(
                        arm.pat.span(),
                        SiteForm::Guard,
                        vec![(format!("without arm `{text}`"), Vec::new())],
                    );
                }
                Some((_, guard)) if !has_bindings(guard) => {
                    let choices = [("true", "always"), ("false", "never")];
                    let choices = choices.map(|(value, word)| {
                        (format!("arm `{text}` {word}"), vec![MutantPiece::Text(value)])
                    });
                    self.add(guard.span(), SiteForm::Expression, choices.into());
                }
                _ => {}
            }
        }
        visit::visit_expr_match(self, choice);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        // Not the pattern: nothing in it can be switched.
        if let Some((_, guard)) = &arm.guard {
            self.visit_expr(guard);
        }
        self.visit_expr(&arm.body);
    }
}

/// A file with switches, and the places of the mutants in it.
#[derive(Debug, Default)]
pub(super) struct SwitchedFile {
    pub(super) text: String,
    /// Ranges of `text`, with the number of their mutant.
    pub(super) places: Vec<(Range<usize>, usize)>,
}

/// A mutant that is switched in: its number, and its index in the mutants of its site.
pub(super) type ChosenMutants = BTreeMap<usize, Vec<(usize, usize)>>;

/// Writes a file so that each chosen mutant can be switched on by its number. `chosen` has the mutants of each site.
pub(super) fn with_switches(source: &str, sites: &[MutationSite], chosen: &ChosenMutants) -> SwitchedFile {
    let kept: Vec<(usize, &MutationSite)> =
        sites.iter().enumerate().filter(|(at, _)| chosen.contains_key(at)).collect();
    let mut output = SwitchedFile::default();
    SwitchWriter { source, kept: &kept, chosen }.range(&(0..source.len()), 0, &mut output);
    output
}

struct SwitchWriter<'a> {
    source: &'a str,
    kept: &'a [(usize, &'a MutationSite)],
    chosen: &'a ChosenMutants,
}

impl SwitchWriter<'_> {
    /// Writes a range with its sites, beginning with the site at the index `from`.
    fn range(&self, range: &Range<usize>, from: usize, output: &mut SwitchedFile) {
        let mut at = range.start;
        for (index, (number, site)) in self.kept.iter().enumerate().skip(from) {
            // Sites are sorted: one that begins before `at` is inside a site that was written.
            if site.range.start < at || site.range.end > range.end {
                continue;
            }
            self.copy(at..site.range.start, output);
            self.site(index, *number, site, output);
            at = site.range.end;
        }
        self.copy(at..range.end, output);
    }

    fn copy(&self, range: Range<usize>, output: &mut SwitchedFile) {
        output.text.push_str(self.source.get(range).unwrap_or_default());
    }

    fn site(&self, index: usize, number: usize, site: &MutationSite, output: &mut SwitchedFile) {
        let chosen = self.chosen.get(&number).map_or(&[][..], Vec::as_slice);
        let first = chosen.first().map_or(0, |(mutant, _)| *mutant);
        let switch = format!("crate::mutant_switch::at({first})");
        let begin = output.text.len();
        match site.form {
            SiteForm::Guard => {
                output.text.push_str(&[" if ", &switch, " != ", &first.to_string(), " "].concat());
            }
            SiteForm::Body => output.text.push_str(&[" match ", &switch, " { "].concat()),
            SiteForm::Expression => output.text.push_str(&["(match ", &switch, " { "].concat()),
        }
        if site.form == SiteForm::Guard {
            output.places.extend(chosen.iter().map(|(mutant, _)| (begin..output.text.len(), *mutant)));
            return;
        }
        for (mutant, choice) in chosen {
            let Some(replacement) = site.mutants.get(*choice).map(|mutant| &mutant.replacement) else {
                continue;
            };
            let begin = output.text.len();
            let word = if site.form == SiteForm::Body { "return " } else { "" };
            output.text.push_str(&[&mutant.to_string(), " => ", word].concat());
            self.pieces(replacement, index + 1, output);
            output.text.push_str(", ");
            output.places.push((begin..output.text.len(), *mutant));
        }
        if site.form == SiteForm::Body {
            output.text.push_str("_ => {} }");
        } else {
            output.text.push_str("_ => ");
            self.pieces(&site.original, index + 1, output);
            output.text.push_str(" })");
        }
    }

    fn pieces(&self, pieces: &[MutantPiece], from: usize, output: &mut SwitchedFile) {
        for piece in pieces {
            match piece {
                MutantPiece::Text(text) => output.text.push_str(text),
                MutantPiece::Source(range) => self.range(range, from, output),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
struct A;
impl A {
    fn same(&self, a: u8, b: u8) -> bool {
        if let Some(a) = a.checked_sub(1) && a < b { return a == b && !self.odd(a); }
        match a {
            1 if b > 2 => true,
            2 => false,
            _ => true,
        }
    }
}
#[cfg(test)]
mod tests { fn ignored() -> bool { 1 == 2 } }
";

    #[test]
    fn places_are_named_and_tests_are_left_alone() {
        let sites = sites("a.rs", SOURCE).unwrap();
        let keys: Vec<&str> =
            sites.iter().flat_map(|site| &site.mutants).map(|mutant| mutant.key.as_str()).collect();
        let expected = [
            "return true",
            "return false",
            "`a < b` with <= for <",
            "`a < b` with > for <",
            "`a == b && !self.odd(a)` with || for &&",
            "`a == b` with != for ==",
            "`!self.odd(a)` without !",
            "arm `1` always",
            "arm `1` never",
            "`b > 2` with >= for >",
            "`b > 2` with < for >",
            "without arm `2`",
        ];
        assert_eq!(keys, expected.map(|change| format!("a.rs::A::same: {change}")));
    }

    #[test]
    fn a_chosen_mutant_stands_beside_the_original() {
        let sites = sites("a.rs", SOURCE).unwrap();
        assert_eq!(with_switches(SOURCE, &sites, &ChosenMutants::new()).text, SOURCE);
        let and = sites
            .iter()
            .position(|site| site.mutants.iter().any(|mutant| mutant.key.contains("|| for")))
            .unwrap();
        let output = with_switches(
            SOURCE,
            &sites,
            &ChosenMutants::from([(and, vec![(7, 0)]), (and + 1, vec![(8, 0)])]),
        );
        let equal = "(match crate::mutant_switch::at(8) { 8 => a != b, _ => a == b })";
        let both = format!(
            "(match crate::mutant_switch::at(7) {{ 7 => {equal} || !self.odd(a), _ => {equal} && !self.odd(a) }})"
        );
        assert!(output.text.contains(&both), "{}", output.text);
        assert!(
            output
                .places
                .iter()
                .all(|(range, mutant)| output.text[range.clone()].starts_with(&format!("{mutant} => ")))
        );
        syn::parse_file(&output.text).unwrap();
    }
}
