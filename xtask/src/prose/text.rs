//! Splits Markdown into blocks and blocks into sentences, and measures a sentence. Doc comments are Markdown as well.
//! Code blocks and code spans are no prose.

/// Words that open a free relative clause, such as "Whether a run may begin", or a demonstrative without a noun.
const OPENINGS: [&str; 8] = ["How", "That", "What", "Where", "Whether", "Which", "Who", "Whoever"];
/// Pronouns that hide who acts.
const PEOPLE: [&str; 4] = ["anybody", "nobody", "somebody", "whoever"];
/// Verbs of place that a plainer verb replaces.
const STANDS: [&str; 4] = ["lies", "stand", "stands", "stood"];
/// Idioms of several words that do the same.
const STANDING: [[&str; 3]; 2] = [["goes", "by", "itself"], ["of", "its", "own"]];
/// Words that a list of names or a query has not, and a sentence has.
const PROSE: [&str; 3] = ["a", "an", "the"];
/// Characters that may follow the full stop of a sentence.
const CLOSERS: [char; 8] = ['"', '\'', ')', ']', '*', '_', '”', '»'];

/// A paragraph, a heading, a list item or a table cell.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The number of its first line.
    pub line: usize,
    pub text: String,
}

/// Reads numbered lines of Markdown. A gap in the numbers ends a block, also a code block.
pub(super) fn blocks<'a>(lines: impl IntoIterator<Item = (usize, &'a str)>) -> Vec<Block> {
    let mut blocks = Blocks::default();
    let mut fence: Option<&str> = None;
    let mut last = 0;
    for (number, line) in lines {
        if number != last + 1 {
            blocks.end();
            fence = None;
        }
        last = number;
        let line = line.trim();
        match (fence, fence_of(line)) {
            // A longer fence closes a shorter one.
            (Some(open), Some(close)) if close.starts_with(open) && close == line => fence = None,
            (Some(_), _) => {}
            (None, Some(open)) => {
                blocks.end();
                fence = Some(open);
            }
            (None, None) => blocks.line(number, line),
        }
    }
    blocks.end();
    blocks.done
}

/// Returns the three or more characters that begin or end a code block.
fn fence_of(line: &str) -> Option<&str> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    line.get(..length).filter(|_| length >= 3)
}

/// The finished blocks and the current one.
#[derive(Default)]
struct Blocks {
    done: Vec<Block>,
    current: Option<Block>,
}

impl Blocks {
    fn line(&mut self, number: usize, line: &str) {
        let line = line.trim_start_matches(['>', ' ']);
        if line.is_empty() || line.starts_with("<!--") {
            self.end();
        } else if line.starts_with('|') {
            self.end();
            let row = without_code(line).replace("\\|", "/");
            for cell in row.split('|').map(str::trim).filter(|cell| !cell.is_empty()) {
                self.done.push(Block { line: number, text: cell.to_owned() });
            }
        } else if line.starts_with('#') {
            self.end();
            self.start(number, line.trim_start_matches('#').trim_start());
            self.end();
        } else if let Some(item) = item(line) {
            self.end();
            self.start(number, item);
        } else if let Some(current) = &mut self.current {
            current.text.push('\n');
            current.text.push_str(line);
        } else {
            self.start(number, line);
        }
    }

    fn start(&mut self, line: usize, text: &str) {
        self.current = Some(Block { line, text: text.to_owned() });
    }

    fn end(&mut self) {
        if let Some(Block { line, text }) = self.current.take() {
            self.done.push(Block { line, text: without_code(&text) });
        }
    }
}

/// Returns the text of a list item.
fn item(line: &str) -> Option<&str> {
    let bullet = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark));
    let number = || {
        let rest = line.trim_start_matches(|each: char| each.is_ascii_digit());
        rest.strip_prefix(". ").filter(|_| rest.len() < line.len())
    };
    bullet.or_else(number).map(str::trim_start)
}

/// Replaces each code span with `x`.
fn without_code(text: &str) -> String {
    let mut prose = String::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('`') {
        prose.push_str(before);
        // The closing mark is as long as the opening one.
        let inner = from.trim_start_matches('`');
        let mark = "`".repeat(from.len() - inner.len() + 1);
        rest = match inner.split_once(mark.as_str()) {
            Some((_, after)) => {
                prose.push('x');
                after
            }
            None => inner,
        };
    }
    prose.push_str(rest);
    prose
}

/// A sentence, and the number of lines of the block before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sentence<'a> {
    pub line: usize,
    pub text: &'a str,
}

/// Splits a block after `.`, `!`, `?` and `:`. Leaves out marks and numbers of up to three characters.
pub(super) fn sentences(block: &str) -> Vec<Sentence<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    let spaces = block.char_indices().filter(|(_, each)| each.is_whitespace()).map(|(at, _)| at);
    for end in spaces.chain([block.len()]) {
        let part = block.get(start..end).unwrap_or_default();
        if end < block.len() && !part.trim_end_matches(CLOSERS).ends_with(['.', '!', '?', ':']) {
            continue;
        }
        let text = part.trim();
        if text.chars().count() > 3 {
            let begin = start + part.len() - part.trim_start().len();
            let line = block.get(..begin).unwrap_or_default().matches('\n').count();
            found.push(Sentence { line, text });
        }
        start = end;
    }
    found
}

impl Sentence<'_> {
    /// Returns whether it opens with one of the words above and is not a question.
    pub(super) fn opens_with_a_clause(&self) -> bool {
        let text = self.text.trim_start_matches(['*', '_', '(', '[', '"', '“']);
        let word = text.split(|each: char| !each.is_alphanumeric()).next().unwrap_or_default();
        OPENINGS.contains(&word) && !self.text.trim_end_matches(CLOSERS).ends_with('?')
    }

    /// The number of indefinite people in it.
    pub(super) fn people(&self) -> usize {
        let text = self.text.to_lowercase();
        let words = || text.split(|each: char| !each.is_alphanumeric()).filter(|word| !word.is_empty());
        let pairs = words().zip(words().skip(1));
        words().filter(|word| PEOPLE.contains(word)).count()
            + pairs.filter(|pair| *pair == ("no", "one")).count()
    }

    /// The number of idioms of place in it.
    pub(super) fn standing_idioms(&self) -> usize {
        let text = self.text.to_lowercase();
        let words: Vec<&str> =
            text.split(|each: char| !each.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        words.iter().filter(|word| STANDS.contains(word)).count()
            + words.windows(3).filter(|words| STANDING.iter().any(|idiom| idiom == words)).count()
    }

    /// Returns whether it is prose, and not a list of names or a query. SQL may contain comments in prose.
    pub(super) fn is_prose(&self) -> bool {
        self.text.split_whitespace().any(|word| PROSE.contains(&word)) && !self.text.contains("CREATE ")
    }

    /// The number of words, without separate marks.
    pub(super) fn words(&self) -> usize {
        self.text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(page: &str) -> Vec<(usize, String)> {
        let lines = page.lines().enumerate().map(|(at, line)| (at + 1, line));
        blocks(lines).into_iter().map(|block| (block.line, block.text)).collect()
    }

    fn split(block: &str) -> Vec<&str> {
        sentences(block).into_iter().map(|sentence| sentence.text).collect()
    }

    fn opens(text: &str) -> bool {
        Sentence { line: 0, text }.opens_with_a_clause()
    }

    #[test]
    fn blocks_are_paragraphs_headings_items_and_cells() {
        let page = "# A title\nOne\ntwo\n\n- an item\n  goes on\n- another\n1. first\n> a quote\n\n\
                    | a \\| b | `c|d` |\n|---|---|\n<!-- hidden -->\nend";
        let expected = [
            (1, "A title"),
            (2, "One\ntwo"),
            (5, "an item\ngoes on"),
            (7, "another"),
            (8, "first\na quote"),
            (11, "a / b"),
            (11, "x"),
            (12, "---"),
            (12, "---"),
            (14, "end"),
        ];
        assert_eq!(texts(page), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn code_blocks_are_skipped() {
        let page = "Before\n```sh\nWhat is code.\n```\nbetween\n````text\n```\nWhat is code.\n````\n\
                    ~~~\n```\n~~~\nafter";
        let expected = [(1, "Before"), (5, "between"), (13, "after")];
        assert_eq!(texts(page), expected.map(|(line, text)| (line, text.to_owned())));
    }

    // A doc comment with an open code block must not hide the next one.
    #[test]
    fn a_gap_between_lines_ends_a_code_block() {
        let lines = [(1, "One"), (2, "```"), (3, "code"), (9, "Two"), (10, "goes on"), (12, "Three")];
        let found: Vec<_> = blocks(lines).into_iter().map(|block| (block.line, block.text)).collect();
        assert_eq!(found, [(1, "One".to_owned()), (9, "Two\ngoes on".to_owned()), (12, "Three".to_owned())]);
    }

    #[test]
    fn code_spans_are_one_word() {
        assert_eq!(without_code("a `b. C` d ``e ` f`` g"), "a x d x g");
        assert_eq!(without_code("an open ` mark"), "an open  mark");
    }

    #[test]
    fn sentences_end_at_a_mark_before_a_space() {
        assert_eq!(
            split("One two. Is it? Yes: cogn 2.5 is (really.) Done!"),
            ["One two.", "Is it?", "Yes:", "cogn 2.5 is (really.)", "Done!"]
        );
        assert_eq!(split("a.b.c at https://x.y/z"), ["a.b.c at https://x.y/z"]);
        assert_eq!(split("See **this.** Then `x`"), ["See **this.**", "Then `x`"]);
        assert_eq!(split("No. Go on"), ["Go on"]);
        assert!(split(" \n ").is_empty());
    }

    #[test]
    fn a_sentence_knows_its_line() {
        let lines: Vec<usize> =
            sentences("One two\nthree. Four\nfive.\nSix!").into_iter().map(|each| each.line).collect();
        assert_eq!(lines, [0, 1, 3]);
    }

    #[test]
    fn openings_are_whole_words_and_no_questions() {
        assert!(opens("What is large is lent.") && opens("**Whether** it may.") && opens("That's slow."));
        assert!(!opens("Whatever it is.") && !opens("What is it?") && !opens("(How?)"));
        assert!(!opens("Returns what it read.") && !opens("what is small"));
    }

    #[test]
    fn people_and_words_are_counted() {
        let count = |text| Sentence { line: 0, text }.people();
        assert_eq!(count("Nobody, no one and whoever asks somebody."), 4);
        assert_eq!(count("No. One of them; nobodies; somebody's."), 2);
        let stands = |text| Sentence { line: 0, text }.standing_idioms();
        assert_eq!(stands("It stands there, of its own."), 2);
        assert_eq!(stands("A standard understands it; belies its own outstanding."), 0);
        let is_prose = |text| Sentence { line: 0, text }.is_prose();
        assert!(is_prose("it is a list") && !is_prose("id, key AS k") && !is_prose("CREATE -- the index"));
        assert_eq!(Sentence { line: 0, text: "one – two, `x` | 3." }.words(), 4);
    }
}
