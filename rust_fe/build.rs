//! Hands the compiler's version to the code: benchmark records name what built them.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var_os("RUSTC").expect("Cargo sets RUSTC for build scripts");
    let told = Command::new(rustc).arg("--version").output();
    let version = told.expect("the compiler that builds this runs").stdout;
    // "rustc 1.95.0 (59807616e 2026-04-14)" without what is in brackets.
    let version = String::from_utf8_lossy(&version);
    let version = version.split(" (").next().unwrap_or_default().trim();
    println!("cargo::rustc-env=RUST_FE_COMPILER={version}");
}
