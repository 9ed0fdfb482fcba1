//! See `cogn_fuzz::files::lock` in fuzz/src/files.rs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cogn_fuzz::files::lock(data));
