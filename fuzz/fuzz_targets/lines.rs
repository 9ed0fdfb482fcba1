//! See `cognitive_net::fuzzing::lines` in crates/cognitive-net/src/llm/remote/fuzzing.rs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cognitive_net::fuzzing::lines(data));
