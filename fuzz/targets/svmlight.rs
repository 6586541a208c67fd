#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| svmarrow_fuzz::svmlight(bytes));
