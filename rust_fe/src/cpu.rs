//! What this CPU can do, asked of the CPU itself.

/// Names of the instruction sets that decide how byte matrices are multiplied: `vnni` (x86, in
/// either width) and `dotprod`, `i8mm` (aarch64).
pub fn byte_features() -> Vec<&'static str> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512vnni")
        || std::arch::is_x86_feature_detected!("avxvnni")
    {
        found.push("vnni");
    }
    #[cfg(target_arch = "aarch64")]
    {
        if std::arch::is_aarch64_feature_detected!("dotprod") {
            found.push("dotprod");
        }
        if std::arch::is_aarch64_feature_detected!("i8mm") {
            found.push("i8mm");
        }
    }
    found
}

/// Equal on two machines only if a runtime picks the same kernels on both: weights in a kernel's
/// own order fit no other.
#[cfg(target_arch = "x86_64")]
pub fn kernel_features() -> String {
    use crate::simd::cpuid;
    // Leaf 1: family, model and stepping; SSE to FMA. Leaf 7: AVX2 to AMX. The rest of leaf 1's
    // `ebx` is the number of the core that was asked.
    let basic = cpuid(1, 0);
    let (first, second) = (cpuid(7, 0), cpuid(7, 1));
    let words = [
        basic.eax, basic.ecx, basic.edx, first.ebx, first.ecx, first.edx, second.eax,
    ];
    let words: Vec<String> = words.iter().map(|word| format!("{word:08x}")).collect();
    format!("x86_64 {} {}", words.join(" "), enabled().join(" "))
}

/// What the system lets programs use of it.
#[cfg(target_arch = "x86_64")]
fn enabled() -> Vec<&'static str> {
    let found = [
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
    ];
    found.iter().filter(|f| f.1).map(|f| f.0).collect()
}

/// Equal on two machines only if a runtime picks the same kernels on both: weights in a kernel's
/// own order fit no other.
#[cfg(target_arch = "aarch64")]
pub fn kernel_features() -> String {
    let found = [
        ("fp16", std::arch::is_aarch64_feature_detected!("fp16")),
        (
            "dotprod",
            std::arch::is_aarch64_feature_detected!("dotprod"),
        ),
        ("i8mm", std::arch::is_aarch64_feature_detected!("i8mm")),
        ("bf16", std::arch::is_aarch64_feature_detected!("bf16")),
        ("sve", std::arch::is_aarch64_feature_detected!("sve")),
        ("sve2", std::arch::is_aarch64_feature_detected!("sve2")),
    ];
    let names: Vec<_> = found.iter().filter(|f| f.1).map(|f| f.0).collect();
    format!("aarch64 {}", names.join(" "))
}

/// Equal on two machines only if a runtime picks the same kernels on both.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn kernel_features() -> String {
    std::env::consts::ARCH.to_owned()
}
