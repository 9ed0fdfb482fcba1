//! What the fuzzer checks, one function per target, and the same functions are run over the corpus by `cargo test`
//! (`crates/cogn-cli/tests/corpus.rs`). Only what every user of the crates can reach; the frames of services are checked in
//! `crates/cognitive-net/src/llm/remote/fuzzing.rs`, because nobody outside can.

pub mod contract;
pub mod files;
pub mod http;
pub mod media;
pub mod reply;

/// Whether a panic is one of this workspace. Those of other people's decoders are caught by the crates, and a code for
/// the user.
#[must_use]
pub fn is_ours(panic: &std::panic::PanicHookInfo<'_>) -> bool {
    panic.location().is_none_or(|place| !place.file().contains("/registry/"))
}

/// Lets other people's panics pass. One of ours ends the fuzzer, which keeps the input.
#[cfg(fuzzing)]
pub fn catch_only_ours() {
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if is_ours(panic) {
            end(panic);
        }
    }));
}
