//! libFuzzer on one target of rust_fe; the variable `RUST_FE_FUZZ_TARGET` names it.
#![no_main]

#[path = "../../../rust_fe/tests/fuzz_targets/mod.rs"]
mod fuzz_targets;

use std::sync::LazyLock;

static TARGET: LazyLock<fuzz_targets::Target> = LazyLock::new(|| {
    let name = std::env::var("RUST_FE_FUZZ_TARGET").expect("RUST_FE_FUZZ_TARGET names a target");
    let found = fuzz_targets::TARGETS
        .iter()
        .find(|(other, _)| *other == name);
    found.expect("RUST_FE_FUZZ_TARGET is a target").1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
