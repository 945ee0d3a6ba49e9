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
