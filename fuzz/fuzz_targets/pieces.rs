#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    vsrun_fuzz::targets::pieces(data);
});
