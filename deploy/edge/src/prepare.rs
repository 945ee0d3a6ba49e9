//! `asr-edge prepare`: a bundle whose network is already what this CPU and runtime make of it.

use std::fs;
use std::path::Path;

use rust_fe::cpu::kernel_features;

use crate::bundle::{Bundle, DESCRIPTION, File, NETWORK, Prepared, WEIGHTS, digest};
use crate::engine::{self, Load};
use crate::error::{Error, Kind, Result};

/// Write a prepared bundle; the description comes last, so that half a bundle is none.
///
/// # Errors
/// [`Kind::Model`] for a damaged bundle, or one that is prepared already; [`Kind::Usage`] for a
/// folder that holds something else; [`Kind::System`] if it cannot be written.
pub fn prepare(from: &Path, out: &Path) -> Result<()> {
    let library = engine::load_runtime()?;
    let bundle = Bundle::open(from)?;
    if bundle.description.prepared.is_some() {
        return Err(Error::new(
            Kind::Model,
            format!(
                "{}: expected a bundle as asr made it, found a prepared one",
                from.display()
            ),
        ));
    }
    bundle.verify()?;
    clear(out)?;
    let write = |error: std::io::Error| Error::system(out, "write the bundle", &error);
    fs::create_dir_all(out).map_err(write)?;
    drop(engine::session(
        &bundle.path(NETWORK),
        1,
        Load::Write(&out.join(NETWORK)),
    )?);
    let mut description = bundle.description.clone();
    description.prepared = Some(here(&library));
    let kept = description.files.iter().filter(|file| file.name != NETWORK);
    let mut files: Vec<File> = kept.cloned().collect();
    for file in &files {
        fs::copy(bundle.path(&file.name), out.join(&file.name)).map_err(write)?;
    }
    for name in [NETWORK, WEIGHTS] {
        let path = out.join(name);
        // A small network has no weights worth a file.
        if path.is_file() {
            files.push(File {
                name: name.into(),
                sha256: digest(&path)?,
                bytes: fs::metadata(&path).map_err(write)?.len(),
            });
        }
    }
    description.files = files;
    let text = serde_json::to_vec_pretty(&description).map_err(|e| write(e.into()))?;
    fs::write(out.join(DESCRIPTION), text).map_err(write)
}

/// Remove a bundle that was prepared there before.
fn clear(out: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(out) else {
        return Ok(());
    };
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    let own = names
        .iter()
        .any(|name| name == DESCRIPTION || name == NETWORK);
    // A fresh file system has a folder of its own.
    if !own && names.iter().any(|name| name != "lost+found") {
        return Err(Error::new(
            Kind::Usage,
            format!(
                "{}: expected an empty folder, or an older bundle",
                out.display()
            ),
        ));
    }
    for name in names.iter().filter(|name| *name != "lost+found") {
        let path = out.join(name);
        if path.is_file() {
            fs::remove_file(&path).map_err(|e| Error::system(&path, "remove the file", &e))?;
        }
    }
    Ok(())
}

/// Refuse a network that was prepared for another runtime or CPU.
///
/// # Errors
/// [`Kind::Model`] says which.
pub fn check(made_for: &Prepared, library: &Path) -> Result<()> {
    let here = here(library);
    if *made_for == here {
        return Ok(());
    }
    Err(Error::new(
        Kind::Model,
        format!(
            "the bundle was prepared for ONNX Runtime {} on CPU {}, found {} on {}; run asr-edge \
             prepare again",
            made_for.runtime, made_for.cpu, here.runtime, here.cpu
        ),
    ))
}

fn here(library: &Path) -> Prepared {
    Prepared {
        runtime: engine::runtime_version(library),
        cpu: kernel_features(),
    }
}
