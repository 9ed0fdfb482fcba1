//! The functions for a WebAssembly host. The host writes a question to the address from [`cogn_question`] and calls
//! [`cogn_answer`], which returns a length. Then it reads that many bytes at the address from [`cogn_text`]. The module
//! owns both buffers, so the host frees nothing. An instance answers one question at a time.
#![expect(unsafe_code, reason = "a function that a host can find by its name, and memory that it fills")]

use std::cell::RefCell;

thread_local! {
    static QUESTION: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Fills memory with unpredictable bytes.
    fn random(place: *mut u8, length: usize);
}

/// Allocates a question of `length` bytes and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn cogn_question(length: usize) -> *mut u8 {
    QUESTION.with_borrow_mut(|question| {
        question.clear();
        question.resize(length, 0);
        question.as_mut_ptr()
    })
}

/// Answers the question and returns the length of the answer in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn cogn_answer() -> usize {
    let question = QUESTION.take();
    let answer = crate::answer(&String::from_utf8_lossy(&question));
    TEXT.with_borrow_mut(|text| {
        *text = answer;
        text.len()
    })
}

/// Returns the address of the answer, which is valid until the next question.
#[unsafe(no_mangle)]
pub extern "C" fn cogn_text() -> *const u8 {
    TEXT.with_borrow(|text| text.as_ptr())
}

/// The source of the seeds of hash maps.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(
    place: *mut u8,
    length: usize,
) -> Result<(), getrandom::Error> {
    // SAFETY: getrandom passes its own memory of exactly this length; the host fills it and keeps no reference.
    unsafe { random(place, length) };
    Ok(())
}
