//! Compile the network named by `LELE_NETWORK` into Rust, its weights into `LELE_WEIGHTS`.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=LELE_NETWORK");
    let model = lele::model::OnnxModel::load(env::var("LELE_NETWORK")?)?;
    let graph = model.proto.graph.as_ref().ok_or("no graph")?;
    let made = lele::compiler::Compiler::new()
        .with_name("SenseVoice")
        .with_default_optimizations()
        .with_constant_folding(true)
        .compile(graph)?;
    // Attributes of a file cannot stand where it is included; lib.rs has them.
    let code: String = made
        .code
        .lines()
        .filter(|line| !line.starts_with("#!["))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(Path::new(&env::var("OUT_DIR")?).join("network.rs"), code)?;
    fs::write(env::var("LELE_WEIGHTS")?, made.weights)?;
    Ok(())
}
