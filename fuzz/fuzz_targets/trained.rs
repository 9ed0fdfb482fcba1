//! See `cogn_fuzz::files::trained` in fuzz/src/files.rs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cogn_fuzz::files::trained(data));
