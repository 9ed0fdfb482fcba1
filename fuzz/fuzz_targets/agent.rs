//! See `cogn_fuzz::http::agent` in fuzz/src/http.rs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cogn_fuzz::http::agent(data));
