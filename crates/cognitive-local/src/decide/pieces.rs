//! Finds the likeliest piece of a text as the answer to a question about it. A piece is a run of whole words within a
//! sentence. Tries the likeliest first words first and stops when no other piece can be likelier.

use super::scale::{Scale, beginning};
use cognitive_llama::FeedError;

/// The largest number of words in a piece. Each further word adds a candidate for every beginning.
const MAX_WORDS: usize = 5;
/// The largest number of first words that are tried. The model weighs all pieces of each of them.
const MAX_BEGINNINGS: usize = 12;
/// The lowest log-probability of a piece that is considered. It is far below the point where a piece counts, see
/// `calibration`.
pub(super) const MIN_SCORE: f64 = -10.0;
/// Pieces are searched in the first characters of a long text. Each word of them begins candidates.
const MAX_CHARACTERS: usize = 6_000;

/// The result of a search.
pub(super) struct FoundPieces {
    pub piece: Option<String>,
    /// The log-probability of the piece, at least the requested minimum.
    pub weight: f64,
}

/// The text around a piece.
pub(super) struct PieceFrame {
    /// The tokens before it.
    pub before: Vec<u32>,
    /// The text directly before it.
    pub lead: &'static str,
    /// The text directly after it, if no mark ends it.
    pub tail: &'static str,
    /// The mark that ends it.
    pub end: Option<u32>,
    /// Returns whether a piece may be the answer. If no piece of the text may, all of them may.
    pub serves: fn(&str) -> bool,
}

/// Words that say nothing about the topic of a text: the most frequent ones of English.
const STOP_WORDS: [&str; 7] = [
    "a about after again all also am an and any are as at be because been before being but by",
    "can could did do does doing down during each few for from further get got had has have having he",
    "her here hers him his how i if in into is it its just let like made make may me",
    "might more most much must my no nor not now of off on once one only or other our out",
    "over own please same shall she should so some still such than that the their them then there these they",
    "this those through to too under until up us very was we were what when where which while who whom",
    "whose why will with would yes yet you your",
];

/// Returns whether a piece can name a topic: one of its words is neither a number, a single letter nor a stop word.
pub(super) fn names_a_topic(piece: &str) -> bool {
    piece.split_whitespace().any(|word| {
        // `it's` and `don’t` are as empty as their first part.
        let stem = word.split(['\'', '’']).next().unwrap_or_default();
        let stem: String =
            stem.chars().filter(|letter| letter.is_alphanumeric()).collect::<String>().to_lowercase();
        let is_word = stem.chars().filter(|letter| letter.is_alphabetic()).count() > 1;
        let is_contracted = word.len() > stem.len() && stem.ends_with('n');
        is_word
            && !is_contracted
            && !STOP_WORDS.iter().flat_map(|line| line.split(' ')).any(|stop| stop == stem)
    })
}

/// Returns the part of a text in which pieces are searched.
pub(super) fn searched_part(text: &str) -> &str {
    beginning(text, MAX_CHARACTERS)
}

/// Returns the likeliest piece of at most `most` characters that is likelier than `least`.
pub(super) fn likeliest(
    scale: &mut Scale<'_>,
    frame: &PieceFrame,
    text: &str,
    most: usize,
    least: f64,
) -> Result<FoundPieces, FeedError> {
    let mut found = FoundPieces { piece: None, weight: least };
    for (likelihood, pieces) in beginnings(scale, frame, text, most)? {
        // The whole piece is never likelier than its first token.
        if likelihood <= found.weight {
            break;
        }
        for piece in pieces {
            let text = format!("{}{piece}{}", frame.lead, frame.tail);
            let mut tokens = scale.vocabulary.encode(text.as_bytes());
            tokens.extend(frame.end);
            let each = scale.likelihoods(&frame.before, &tokens)?;
            let weight: f64 = each.iter().copied().map(f64::from).sum();
            let without_end: f64 = each.iter().rev().skip(1).copied().map(f64::from).sum();
            if weight > found.weight {
                found = FoundPieces { piece: Some(piece.to_owned()), weight };
            }
            if without_end <= found.weight {
                break;
            }
        }
    }
    Ok(found)
}

/// Returns the pieces grouped by their first word, each group shortest first, the likeliest first word first.
fn beginnings<'t>(
    scale: &mut Scale<'_>,
    frame: &PieceFrame,
    text: &'t str,
    most: usize,
) -> Result<Vec<(f64, Vec<&'t str>)>, FeedError> {
    let mut all: Vec<Vec<&str>> = Vec::new();
    let found = pieces(text, most);
    let any_serves = found.iter().flatten().any(|piece| (frame.serves)(piece));
    for mut pieces in found {
        pieces.retain(|piece| !any_serves || (frame.serves)(piece));
        if !pieces.is_empty() && !all.contains(&pieces) {
            all.push(pieces);
        }
    }
    let Some((last, known)) = frame.before.split_last() else { return Ok(Vec::new()) };
    scale.read_exactly(known)?;
    let logits = scale.reading.feed(&[*last], scale.stop)?;
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - highest).exp()).sum();
    let likelihood = |piece: &str| {
        let text = format!("{}{piece}", frame.lead);
        let token = scale.vocabulary.encode(text.as_bytes()).first().copied()?;
        let logit = logits.get(token as usize)?;
        Some(f64::from(logit - highest) - sum.ln())
    };
    let judged = |pieces: Vec<&'t str>| Some((likelihood(pieces.first()?)?, pieces));
    let mut all: Vec<_> = all.into_iter().filter_map(judged).collect();
    // The sort is stable, so ties stay in text order.
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    all.truncate(MAX_BEGINNINGS);
    Ok(all)
}

/// Returns for each word of a text the pieces that start with it, shortest first.
fn pieces(text: &str, most: usize) -> Vec<Vec<&str>> {
    let words = words(text);
    let from = |first: usize| {
        let mut found = Vec::new();
        let Some((start, _)) = words.get(first) else { return found };
        for (index, (_, end)) in words.iter().enumerate().skip(first).take(MAX_WORDS) {
            let Some(piece) = text.get(*start..*end) else { break };
            let next = words.get(index + 1).and_then(|(next, _)| text.get(*end..*next));
            let is_cut = next.is_some_and(|gap| gap.starts_with(". ")) && is_short(piece);
            if !is_cut && piece.chars().count() <= most {
                found.push(piece);
                found.extend(piece.strip_suffix("'s").filter(|owner| !owner.is_empty()));
            }
            if next.is_some_and(|gap| ends_sentence(gap) && !is_cut) {
                break;
            }
        }
        found
    };
    (0..words.len()).map(from).collect()
}

/// Returns whether a period after a piece belongs to its last word, as in `Dr.` and `3.`.
fn is_short(piece: &str) -> bool {
    let word = piece.rsplit(' ').next().unwrap_or(piece);
    let is_title =
        word.len() <= 4 && word.starts_with(char::is_uppercase) && word.chars().all(char::is_alphabetic);
    is_title || word.chars().all(|letter| letter.is_ascii_digit())
}

fn ends_sentence(gap: &str) -> bool {
    gap.contains('\n') || gap.contains(['.', ';', '!', '?'])
}

/// Returns the start and end of each word: letters and digits, with currency signs before them and periods, commas and
/// similar signs within.
fn words(text: &str) -> Vec<(usize, usize)> {
    let letters: Vec<(usize, char)> = text.char_indices().collect();
    let at = |index: usize| letters.get(index).map(|(_, letter)| *letter);
    let is_word = |index: usize| at(index).is_some_and(char::is_alphanumeric);
    let mut found = Vec::new();
    let mut index = 0;
    while let Some((start, letter)) = letters.get(index) {
        let is_money = "$£€¥₹#".contains(*letter) && is_word(index + 1);
        if !is_money && !letter.is_alphanumeric() {
            index += 1;
            continue;
        }
        index += 1;
        while is_word(index) || (at(index).is_some_and(|sign| "'’.,:-".contains(sign)) && is_word(index + 1))
        {
            index += 1;
        }
        // Currency and percent signs may also follow.
        if at(index).is_some_and(|sign| "$£€%".contains(sign)) {
            index += 1;
        }
        found.push((*start, letters.get(index).map_or(text.len(), |(end, _)| *end)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<&str> {
        pieces(text, 80).concat()
    }

    #[test]
    fn pieces_are_runs_of_words_within_a_sentence() {
        assert_eq!(all("Go home. Now"), ["Go", "Go home", "home", "Now"]);
        let found = all("It cost $4.50, says Dr. Ada King.");
        for piece in ["$4.50", "Ada King", "Dr. Ada King"] {
            assert!(found.contains(&piece), "{piece}: {found:?}");
        }
        assert!(!found.contains(&"Dr"), "a title alone is no name");
        assert!(all("Ada's hat").contains(&"Ada"));
        assert!(all("am 3. Mai in Wien").contains(&"3. Mai"));
    }

    #[test]
    fn stop_words_numbers_and_single_letters_name_no_topic() {
        for empty in ["a", "I", "3", "the", "12.50", "it's", "don't", "Don’t", "of the", "to 3", "x"] {
            assert!(!names_a_topic(empty), "{empty}");
        }
        for topic in ["coffee", "the coffee", "3 trains", "Wien", "B2B", "5G network", "train"] {
            assert!(names_a_topic(topic), "{topic}");
        }
    }

    #[test]
    fn no_piece_is_longer_than_allowed() {
        assert_eq!(pieces("one two three", 7).concat(), ["one", "one two", "two", "three"]);
    }
}
