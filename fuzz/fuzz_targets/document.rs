//! See `cogn_fuzz::media::document` in fuzz/src/media.rs.
#![no_main]

libfuzzer_sys::fuzz_target!(init: cogn_fuzz::catch_only_ours(), |data: &[u8]| cogn_fuzz::media::document(data));
