//! Reads one object or list the way a careful person would: forgives slips of the pen that have exactly one reading,
//! and says where (D-01). One pass, no backtracking; a text that is strictly JSON gives the same value and no liberty.
//! Never closes what is open, never guesses a value: `NaN`, unquoted values, `.5`, `+1`, `[1,,2]` are refused, and so
//! is a missing comma between items of a list, where Python would join two strings.

use cognitive_contract::numbers::Rounded;
use cognitive_contract::text;
use serde_json::Value;
use serde_json::map::{Entry, Map};

use super::DEEPEST;
use super::liberty::{Forgiven, Liberty, LibertyRule};
use super::token::Place;

/// How much of a name goes into a message.
const LONGEST_QUOTED_NAME: usize = 40;

/// What was read.
#[derive(Debug)]
pub(crate) struct Read {
    /// An object or a list.
    pub(crate) value: Value,
    /// The offset behind it.
    pub(crate) end: usize,
    /// What was forgiven, in the order of the text.
    pub(crate) liberties: Vec<Liberty>,
    /// The numbers that do not keep their value (D-10). One that nothing can hold is a text in the value.
    pub(crate) rounded: Vec<Rounded>,
    /// Whether there is an object in it that has members.
    pub(crate) begun: bool,
}

/// Why reading ended early, and what is known about the place.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) why: Why,
    /// Where reading began.
    pub(crate) open: usize,
    /// Where it went wrong.
    pub(crate) at: usize,
    /// Where the token starts that went wrong, so that others can go on from there.
    pub(crate) token: usize,
    /// Whether this was meant to be JSON: a first name and its colon were there. A brace in prose has neither.
    pub(crate) begun: bool,
    /// Whether the outermost object has a member `ok` or `meta`, as an envelope has.
    pub(crate) enveloped: bool,
    /// Braces that were open.
    pub(crate) braces: usize,
    /// Square brackets that were open.
    pub(crate) brackets: usize,
    /// If this was not meant to be JSON: where to go on looking. Nothing before it is looked at twice.
    pub(crate) resume: usize,
}

/// What was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Something stands where it must not.
    Syntax,
    /// The text ends too early.
    End,
    /// Nested beyond [`DEEPEST`].
    TooDeep,
}

/// Reads the object or list that opens at `open`; offsets are those of `text`.
pub(crate) fn read(text: &str, open: usize) -> Result<Read, Stop> {
    let mut reader = Reader {
        text,
        at: open,
        token: open,
        resume: open + 1,
        forgiven: Forgiven::default(),
        rounded: Vec::new(),
        braces: 0,
        brackets: 0,
        begun: false,
        enveloped: false,
    };
    match reader.value() {
        Ok(value) => {
            let Reader { at: end, forgiven, rounded, begun, .. } = reader;
            Ok(Read { value, end, liberties: forgiven.list(), rounded, begun })
        }
        Err(why) => Err(Stop {
            why,
            open,
            at: reader.at,
            token: reader.token,
            begun: reader.begun,
            enveloped: reader.enveloped,
            braces: reader.braces,
            brackets: reader.brackets,
            resume: reader.resume,
        }),
    }
}

/// The state of reading. Tokens are read in `token.rs`, their order is judged here.
pub(crate) struct Reader<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    /// Where the present token starts.
    pub(crate) token: usize,
    /// See [`Stop::resume`].
    pub(crate) resume: usize,
    forgiven: Forgiven,
    /// See [`Read::rounded`]; places are those below the value that is being read.
    pub(crate) rounded: Vec<Rounded>,
    braces: usize,
    brackets: usize,
    /// See [`Stop::begun`].
    pub(crate) begun: bool,
    enveloped: bool,
}

impl Reader<'_> {
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(crate) fn liberty(&mut self, at: usize, rule: LibertyRule, what: &str) {
        self.forgiven.take(at, rule, || what.to_owned());
    }

    fn value(&mut self) -> Result<Value, Why> {
        self.token = self.at;
        match self.peek() {
            None => Err(Why::End),
            Some(b'{') => self.object(),
            Some(b'[') => self.list(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(byte) if byte.is_ascii_alphabetic() => self.literal(),
            Some(_) => self.string(Place::Value).map(Value::String),
        }
    }

    /// Keeps recursion within what any stack can bear.
    fn enter(&mut self) -> Result<(), Why> {
        self.at += 1;
        self.token = self.at;
        if self.braces + self.brackets > DEEPEST { Err(Why::TooDeep) } else { Ok(()) }
    }

    fn next_token(&mut self) -> Result<(), Why> {
        self.trivia()?;
        self.token = self.at;
        Ok(())
    }

    fn list(&mut self) -> Result<Value, Why> {
        self.brackets += 1;
        self.enter()?;
        let mut items = Vec::new();
        let mut comma = None;
        loop {
            self.next_token()?;
            if self.closes(b']', comma) {
                break;
            }
            if !items.is_empty() && comma.is_none() {
                return Err(self.wrong());
            }
            let known = self.rounded.len();
            items.push(self.value()?);
            self.place_rounded(known, || (items.len() - 1).to_string());
            comma = self.comma()?;
        }
        self.brackets -= 1;
        Ok(Value::Array(items))
    }

    fn object(&mut self) -> Result<Value, Why> {
        self.braces += 1;
        self.enter()?;
        let outermost = self.braces == 1 && self.brackets == 0;
        let mut members = Map::new();
        let mut comma = None;
        let mut end_of_last = None;
        loop {
            self.next_token()?;
            if self.closes(b'}', comma) {
                break;
            }
            if let (Some(end), None) = (end_of_last, comma) {
                self.missing_comma(end)?;
            }
            let at = self.at;
            let name = self.name()?;
            self.enveloped |= outermost && matches!(name.as_str(), "ok" | "meta");
            let known = self.rounded.len();
            let value = self.value()?;
            self.place_rounded(known, || text::escaped(&name).into_owned());
            end_of_last = Some(self.at);
            self.insert(&mut members, at, name, value);
            comma = self.comma()?;
        }
        self.braces -= 1;
        Ok(Value::Object(members))
    }

    /// Puts the name of a member or the index of an item before the places of the numbers below it.
    fn place_rounded(&mut self, known: usize, token: impl Fn() -> String) {
        for number in self.rounded.iter_mut().skip(known) {
            number.path = format!("/{}{}", token(), number.path);
        }
    }

    /// Whether the closing bracket is next. A comma may stand before it; it can only be one too many.
    fn closes(&mut self, bracket: u8, comma: Option<usize>) -> bool {
        if self.peek() != Some(bracket) {
            return false;
        }
        // `{,}` has a comma but no member; it fails before it comes here, since a comma follows a value only.
        if let Some(at) = comma {
            self.liberty(at, LibertyRule::TrailingComma, "a trailing comma was skipped");
        }
        self.at += 1;
        true
    }

    /// The offset of the comma behind a value, if there is one.
    fn comma(&mut self) -> Result<Option<usize>, Why> {
        self.trivia()?;
        let at = self.at;
        let found = self.peek() == Some(b',');
        self.at += usize::from(found);
        Ok(found.then_some(at))
    }

    fn breaks_line(&self, from: usize) -> bool {
        self.text.as_bytes().get(from..self.at).is_some_and(|gap| gap.contains(&b'\n'))
    }

    /// Two members without a comma have one reading only where the next one starts on a line of its own with a name
    /// in `"`. That its colon follows is checked when the name is read.
    fn missing_comma(&mut self, end_of_last: usize) -> Result<(), Why> {
        if self.peek() != Some(b'"') || !self.breaks_line(end_of_last) {
            return Err(self.wrong());
        }
        self.liberty(end_of_last, LibertyRule::MissingComma, "a comma was missing between two lines");
        Ok(())
    }

    /// A name with its colon, up to where the value starts.
    fn name(&mut self) -> Result<String, Why> {
        let bare = self.bare_name();
        let quoted = bare.is_none();
        let name = match bare {
            Some(name) => name,
            None => self.quoted_name()?,
        };
        self.next_token()?;
        if self.peek() != Some(b':') {
            return Err(self.wrong());
        }
        self.at += 1;
        if quoted {
            self.begun = true;
        }
        if !self.begun {
            self.begin_bare()?;
        }
        self.trivia()?;
        Ok(name)
    }

    /// `{x: …}` and `{https://…}` are how sets and URLs look in prose, so a first name without quotes counts only with
    /// a value behind it.
    fn begin_bare(&mut self) -> Result<(), Why> {
        let is_url = self.text.get(self.at..).is_some_and(|rest| rest.starts_with("//"));
        if is_url {
            return Err(Why::Syntax);
        }
        self.trivia()?;
        let starts_value = match self.peek() {
            None => return Err(Why::End),
            Some(b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' | b'T' | b'F' | b'N') => true,
            Some(_) => self.quote().is_some(),
        };
        self.begun = starts_value;
        if starts_value { Ok(()) } else { Err(Why::Syntax) }
    }

    fn insert(&mut self, members: &mut Map<String, Value>, at: usize, name: String, value: Value) {
        match members.entry(name) {
            Entry::Vacant(place) => {
                place.insert(value);
            }
            Entry::Occupied(mut place) => {
                self.forgiven.take(at, LibertyRule::RepeatedName, || {
                    let name = text::cut(place.key(), LONGEST_QUOTED_NAME);
                    format!("the name `{name}` stands twice and the last value counts")
                });
                place.insert(value);
            }
        }
    }

    /// What is at the present place cannot be there: either it is something else, or there is nothing.
    pub(crate) fn wrong(&self) -> Why {
        if self.at >= self.text.len() { Why::End } else { Why::Syntax }
    }
}
