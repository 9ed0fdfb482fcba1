//! See `cogn_fuzz::contract::envelope` in fuzz/src/contract.rs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cogn_fuzz::contract::envelope(data));
