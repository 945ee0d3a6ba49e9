//! ONNX Runtime, loaded from a file when it is wanted.

use std::path::{Path, PathBuf};

use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::session::{Session, SessionOutputs};
use ort::value::TensorRef;

use crate::bundle::{Bundle, NETWORK, WEIGHTS};
use crate::error::{Error, Kind, Result};

/// The library's name where no variable names another.
const LIBRARY: &str = "libonnxruntime.so.1";

/// How a session is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load<'a> {
    /// Rewritten for this CPU, in memory.
    Rewrite,
    /// As `prepare` wrote it: nothing is left to do.
    Prepared,
    /// Rewritten, and written to this file with the weights as this CPU wants them.
    Write(&'a Path),
}

/// Find the library and load it, once per process; also says where it was found.
///
/// # Errors
/// [`Kind::Missing`] where there is none, or one that is too old.
pub fn load_runtime() -> Result<PathBuf> {
    let path = library();
    let environment = ort::init_from(&path).map_err(|error| {
        Error::new(
            Kind::Missing,
            format!(
                "{}: expected ONNX Runtime 1.17 or later, found none that loads ({error}); \
                 ORT_DYLIB_PATH names another",
                path.display()
            ),
        )
    })?;
    environment
        .with_name("asr-edge")
        .with_telemetry(false)
        .commit();
    Ok(path)
}

/// The variable's, else `../lib` beside the program, else what the system finds.
fn library() -> PathBuf {
    if let Some(named) = std::env::var_os("ORT_DYLIB_PATH").filter(|name| !name.is_empty()) {
        return PathBuf::from(named);
    }
    let beside = std::env::current_exe()
        .ok()
        .and_then(|program| Some(program.parent()?.join("../lib").join(LIBRARY)));
    beside
        .filter(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from(LIBRARY))
}

/// The runtime's version, such as `1.32.0`.
///
/// Its own description begins with it in no release, so the file's name is asked first.
#[must_use]
pub fn runtime_version(library: &Path) -> String {
    let file = std::fs::canonicalize(library).unwrap_or_else(|_| library.to_path_buf());
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    match name.split_once(".so.") {
        Some((_, version)) if version.contains('.') => version.to_string(),
        _ => ort::info().to_string(),
    }
}

/// The network of a bundle.
#[derive(Debug)]
pub struct Engine {
    session: Session,
    inputs: [String; 4],
    scores: String,
    dim: usize,
    vocab_size: usize,
}

impl Engine {
    /// Load the network.
    ///
    /// # Errors
    /// [`Kind::Model`] if the runtime refuses it, or it is another model's.
    pub fn load(bundle: &Bundle, threads: usize, how: Load<'_>) -> Result<Self> {
        let session = session(&bundle.path(NETWORK), threads, how)?;
        let description = &bundle.description;
        let names = &description.inputs;
        let inputs = [
            names.speech.clone(),
            names.speech_lengths.clone(),
            names.language.clone(),
            names.textnorm.clone(),
        ];
        let takes = |name: &String| session.inputs().iter().any(|input| input.name() == name);
        if !inputs.iter().all(takes) {
            return Err(Error::new(
                Kind::Model,
                format!(
                    "{}: expected inputs {}, found others; the files come from different bundles",
                    bundle.path(NETWORK).display(),
                    inputs.join(", ")
                ),
            ));
        }
        Ok(Self {
            session,
            inputs,
            scores: description.scores.clone(),
            dim: description.recipe.dim(),
            vocab_size: description.vocab_size,
        })
    }

    /// Run the network once on features (frames, dim), row-major.
    ///
    /// # Errors
    /// [`Kind::Model`] if it fails.
    pub fn run(
        &mut self,
        features: &[f32],
        language_id: i32,
        itn_id: i32,
    ) -> Result<SessionOutputs<'_>> {
        let frames = features.len() / self.dim;
        let shape = [1, frames, self.dim];
        let (lengths, language, itn) = ([frames as i32], [language_id], [itn_id]);
        let [speech, speech_lengths, language_name, textnorm] = &self.inputs;
        let inputs = ort::inputs![
            speech.as_str() => TensorRef::from_array_view((shape, features)).map_err(failed)?,
            speech_lengths.as_str() => one(&lengths)?,
            language_name.as_str() => one(&language)?,
            textnorm.as_str() => one(&itn)?,
        ];
        self.session.run(inputs).map_err(failed)
    }

    /// Name of the tensor of scores, and how many each row has.
    #[must_use]
    pub fn scores(&self) -> (String, usize) {
        (self.scores.clone(), self.vocab_size)
    }
}

fn one(value: &[i32; 1]) -> Result<TensorRef<'_, i32>> {
    TensorRef::from_array_view(([1_usize], &value[..])).map_err(failed)
}

/// The scores of one call: (rows, `vocab`), row-major.
///
/// # Errors
/// [`Kind::Model`] for scores of another type or shape.
pub fn scores_of<'a>(
    outputs: &'a SessionOutputs<'_>,
    name: &str,
    vocab: usize,
) -> Result<&'a [f32]> {
    let value = outputs.get(name).ok_or_else(|| {
        Error::new(
            Kind::Model,
            format!("{NETWORK}: expected an output {name}, found none"),
        )
    })?;
    let (shape, scores) = value.try_extract_tensor::<f32>().map_err(failed)?;
    if shape.len() != 3 || shape[2] != vocab as i64 {
        return Err(Error::new(
            Kind::Model,
            format!("{NETWORK}: expected scores (1, frames, {vocab}), found {shape:?}"),
        ));
    }
    Ok(scores)
}

/// A session with the settings of `asr.engines.ort`.
///
/// # Errors
/// [`Kind::Model`] if the runtime refuses the file.
pub fn session(path: &Path, threads: usize, how: Load<'_>) -> Result<Session> {
    let refuse = |error: String| {
        Error::new(
            Kind::Model,
            format!(
                "{}: expected a network that ONNX Runtime can load, found one it refuses ({error})",
                path.display()
            ),
        )
    };
    let mut builder = builder(threads, how).map_err(|error| refuse(error.to_string()))?;
    builder
        .commit_from_file(path)
        .map_err(|error| refuse(error.to_string()))
}

fn builder(threads: usize, how: Load<'_>) -> ort::Result<SessionBuilder> {
    let mut builder = Session::builder()?
        .with_intra_threads(threads)?
        .with_inter_threads(1)?
        .with_log_level(ort::logging::LogLevel::Fatal)?
        // As in Python: threads that spin while they wait cost more than they gain.
        .with_config_entry("session.intra_op.allow_spinning", "0")?;
    match how {
        Load::Rewrite => {}
        Load::Prepared => {
            builder = builder.with_optimization_level(GraphOptimizationLevel::Disable)?;
        }
        Load::Write(network) => {
            builder = builder
                .with_optimized_model_path(network)?
                .with_config_entry(
                    "session.optimized_model_external_initializers_file_name",
                    WEIGHTS,
                )?
                .with_config_entry(
                    "session.optimized_model_external_initializers_min_size_in_bytes",
                    "1024",
                )?
                .with_config_entry("session.save_external_prepacked_constant_initializers", "1")?;
        }
    }
    Ok(builder)
}

/// The runtime's own words, as an error of the network.
pub(crate) fn failed(error: ort::Error) -> Error {
    Error::new(
        Kind::Model,
        format!("{NETWORK}: the network failed to run: {error}"),
    )
}

/// From 1.29 on ONNX Runtime's Linux libraries write a database below `~/.cache` and upload events
/// unless this is 1 before they are loaded; their own switch for telemetry comes too late.
const TELEMETRY: &str = "ORT_DISABLE_TELEMETRY";

/// Keep telemetry off, unless the user has decided otherwise.
///
/// To be called before there is a second thread, as the first thing a program does.
#[allow(unsafe_code, reason = "the environment is shared by all threads")]
pub fn no_telemetry() {
    if std::env::var_os(TELEMETRY).is_none() {
        // SAFETY: the caller has no other thread that could read the environment.
        unsafe { std::env::set_var(TELEMETRY, "1") }
    }
}

/// A library may not change the environment of a program with threads: it asks.
///
/// # Errors
/// [`Kind::Usage`] where the program has said nothing.
pub fn telemetry_decided() -> Result<()> {
    std::env::var_os(TELEMETRY).map_or_else(
        || {
            let message = format!(
                "{TELEMETRY}: expected 1 in the environment before the first bundle is opened, \
                 found nothing; without it ONNX Runtime writes a database and uploads events"
            );
            Err(Error::new(Kind::Usage, message))
        },
        |_| Ok(()),
    )
}
