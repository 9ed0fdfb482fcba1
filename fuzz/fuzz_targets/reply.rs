//! See `cogn_fuzz::reply::reply` in fuzz/src/reply.rs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cogn_fuzz::reply::reply(data));
