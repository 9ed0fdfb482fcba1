//! See `cogn_fuzz::contract::expressions` in fuzz/src/contract.rs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cogn_fuzz::contract::expressions(data));
