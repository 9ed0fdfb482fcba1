//! Parses template expressions that name a value: `user.name`, `items[0]`, `text | trim`. Everything else is a
//! calculation, which a prompt can only describe.

/// A parsed expression.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TemplateExpression {
    /// A path to a value, with filters.
    Way {
        /// The names of the path; the first one is a variable.
        steps: Vec<String>,
        /// The filters, as written.
        filters: Vec<String>,
    },
    /// A quoted string or a number.
    Literal(String),
    /// Any other expression.
    Calculation,
}

/// Parses an expression.
pub(crate) fn read(text: &str) -> TemplateExpression {
    let text = text.trim();
    if let Some(literal) = literal(text) {
        return TemplateExpression::Literal(literal);
    }
    let mut parts = text.split('|').map(str::trim);
    let way = parts.next().and_then(way);
    let filters: Vec<String> = parts.map(str::to_owned).collect();
    let is_filter =
        |filter: &String| filter.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    match way {
        Some(steps) if filters.iter().all(is_filter) => TemplateExpression::Way { steps, filters },
        _ => TemplateExpression::Calculation,
    }
}

fn literal(text: &str) -> Option<String> {
    let quoted = |mark: char| {
        let inner = text.strip_prefix(mark)?.strip_suffix(mark)?;
        (!inner.contains(mark)).then(|| inner.to_owned())
    };
    quoted('"').or_else(|| quoted('\'')).or_else(|| {
        text.starts_with(|first: char| first.is_ascii_digit() || first == '-')
            .then_some(text)
            .filter(|text| text.parse::<f64>().is_ok())
            .map(str::to_owned)
    })
}

/// The steps of `a.b[0]["c"]`. `../a`, `@root.a` and `this.a` are paths, too.
fn way(text: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while let Some(tail) = rest.strip_prefix("../") {
        steps.push("..".to_owned());
        rest = tail;
    }
    loop {
        let end = rest
            .find(|letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | '@' | '-')))
            .unwrap_or(rest.len());
        let (name, tail) = rest.split_at_checked(end)?;
        let is_name = name.starts_with(|first: char| first.is_alphabetic() || matches!(first, '_' | '@'));
        let is_item = !steps.is_empty() && !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        if !is_name && !is_item {
            return None;
        }
        steps.push(name.to_owned());
        rest = tail;
        while let Some(inner) = rest.strip_prefix('[') {
            let (index, tail) = inner.split_once(']')?;
            let index = index.trim().trim_matches(['"', '\'']);
            if index.is_empty()
                || !index.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | ' '))
            {
                return None;
            }
            steps.push(index.to_owned());
            rest = tail;
        }
        match rest.strip_prefix(['.', '/']) {
            Some(tail) => rest = tail,
            None => return rest.is_empty().then_some(steps),
        }
    }
}

/// The possible variables in a calculation: words that are not quoted, not called, and not after a dot.
pub(crate) fn names_in(text: &str) -> Vec<String> {
    const WORDS: [&str; 18] = [
        "and",
        "or",
        "not",
        "in",
        "is",
        "if",
        "else",
        "true",
        "false",
        "none",
        "True",
        "False",
        "None",
        "defined",
        "loop",
        "eq",
        "null",
        "undefined",
    ];
    let mut names = Vec::new();
    let mut quote = None;
    let mut word = String::new();
    let mut before = ' ';
    let mut first_before = ' ';
    for letter in text.chars().chain([' ']) {
        if let Some(open) = quote {
            if letter == open {
                quote = None;
            }
            before = letter;
            continue;
        }
        if letter.is_alphanumeric() || letter == '_' {
            if word.is_empty() {
                first_before = before;
            }
            word.push(letter);
        } else {
            let done = std::mem::take(&mut word);
            let is_variable = done.starts_with(|first: char| first.is_alphabetic() || first == '_');
            if is_variable
                && letter != '('
                && !matches!(first_before, '.' | '|' | '@')
                && !WORDS.contains(&done.as_str())
            {
                names.push(done);
            }
            if matches!(letter, '"' | '\'') {
                quote = Some(letter);
            }
        }
        if !letter.is_whitespace() || before != '|' {
            before = letter;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_filters_and_calculations() {
        let way = |steps: &[&str], filters: &[&str]| TemplateExpression::Way {
            steps: steps.iter().map(|step| (*step).to_owned()).collect(),
            filters: filters.iter().map(|filter| (*filter).to_owned()).collect(),
        };
        assert_eq!(read(" user.name "), way(&["user", "name"], &[]));
        assert_eq!(read("items[0]['a b'].c"), way(&["items", "0", "a b", "c"], &[]));
        assert_eq!(read("x | upper | default('a')"), way(&["x"], &["upper", "default('a')"]));
        assert_eq!(read("../name"), way(&["..", "name"], &[]));
        assert_eq!(read("'yes'"), TemplateExpression::Literal("yes".to_owned()));
        for calculation in ["a + b", "f(x)", "a and b", "", "x[", "x || y", "1a"] {
            assert_eq!(read(calculation), TemplateExpression::Calculation, "{calculation}");
        }
    }

    #[test]
    fn names_of_a_calculation() {
        assert_eq!(names_in("a.b > 3 and c == 'd e' or len(f) | upper"), ["a", "c", "f"]);
    }
}
