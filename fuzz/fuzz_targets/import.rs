//! See `cogn_fuzz::files::import` in fuzz/src/files.rs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cogn_fuzz::files::import(data));
