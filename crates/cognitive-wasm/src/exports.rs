//! What a host calls. It writes a question to where [`cogn_question`] says, calls [`cogn_answer`], and reads as many bytes as
//! that returns from where [`cogn_text`] says. Three functions and two buffers: nothing is handed over, so that nothing has to be
//! given back. An instance answers one question at a time.
#![expect(unsafe_code, reason = "a function that a host can find by its name, and memory that it fills")]

use std::cell::RefCell;

thread_local! {
    static QUESTION: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Fills memory with bytes that nobody can guess.
    fn random(place: *mut u8, length: usize);
}

/// Makes room for a question of so many bytes, and says where.
#[unsafe(no_mangle)]
pub extern "C" fn cogn_question(length: usize) -> *mut u8 {
    QUESTION.with_borrow_mut(|question| {
        question.clear();
        question.resize(length, 0);
        question.as_mut_ptr()
    })
}

/// Answers the question, and says how many bytes the answer has.
#[unsafe(no_mangle)]
pub extern "C" fn cogn_answer() -> usize {
    let question = QUESTION.take();
    let answer = crate::answer(&String::from_utf8_lossy(&question));
    TEXT.with_borrow_mut(|text| {
        *text = answer;
        text.len()
    })
}

/// Says where the answer is, until the next question.
#[unsafe(no_mangle)]
pub extern "C" fn cogn_text() -> *const u8 {
    TEXT.with_borrow(|text| text.as_ptr())
}

/// Where the seeds of hash maps come from.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(
    place: *mut u8,
    length: usize,
) -> Result<(), getrandom::Error> {
    // SAFETY: getrandom hands over memory of its own of exactly this length; the host fills it and keeps nothing.
    unsafe { random(place, length) };
    Ok(())
}
