//! The CPUID instruction, whole: the standard library names some of its bits only.

use std::arch::x86_64::{__cpuid_count, CpuidResult};

/// What the CPU says of itself.
#[allow(unused_unsafe, reason = "safe to call from Rust 1.94 on")]
pub(crate) fn cpuid(leaf: u32, subleaf: u32) -> CpuidResult {
    // SAFETY: every x86-64 has the instruction.
    unsafe { __cpuid_count(leaf, subleaf) }
}
