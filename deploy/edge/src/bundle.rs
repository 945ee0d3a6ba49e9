//! The bundle: one folder, described by `bundle.json` (docs/bundle.md).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rust_fe::config::{FbankConfig, Window};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};

/// The format that this program reads.
pub const SCHEMA: &str = "asr-bundle/1";
/// File names.
pub const DESCRIPTION: &str = "bundle.json";
/// The network.
pub const NETWORK: &str = "model.onnx";
/// The weights of a prepared network.
pub const WEIGHTS: &str = "model.data";
/// The network that finds speech in long sound.
pub const DETECTOR: &str = "silero_vad.onnx";
/// The phrase list.
pub const PHRASES: &str = "phrases.json";
const CMVN: &str = "cmvn.f32";
const TOKENS: &str = "tokens.bin";

/// `bundle.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs, reason = "docs/bundle.md says what each member means")]
pub struct Description {
    pub schema: String,
    pub name: String,
    pub made_by: String,
    pub runtime: String,
    pub layout: String,
    pub source_sha256: String,
    pub prepared: Option<Prepared>,
    pub recipe: Recipe,
    pub kept_frames: usize,
    pub min_audio_s: f64,
    pub piece_s: f64,
    pub vocab_size: usize,
    pub blank_id: i64,
    pub prompt_frames: usize,
    pub language_ids: BTreeMap<String, i32>,
    pub itn_ids: ItnIds,
    pub inputs: Inputs,
    pub scores: String,
    pub rejection: Option<Thresholds>,
    pub self_test: SelfTest,
    pub files: Vec<File>,
}

/// What a prepared network was made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "as above")]
pub struct Prepared {
    pub runtime: String,
    pub cpu: String,
}

/// The front end.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs, reason = "as above")]
pub struct Recipe {
    pub sample_rate_hz: u32,
    pub sample_scale: f64,
    pub frame_length_ms: f64,
    pub frame_shift_ms: f64,
    pub window: String,
    pub num_mel_bins: usize,
    pub low_freq_hz: f64,
    pub high_freq_hz: f64,
    pub preemphasis: f64,
    pub lfr_m: usize,
    pub lfr_n: usize,
}

impl Recipe {
    /// As the front end wants it.
    ///
    /// # Errors
    /// [`Kind::Model`] for a window nobody knows.
    pub fn fbank(&self) -> Result<FbankConfig> {
        Ok(FbankConfig {
            sample_rate_hz: self.sample_rate_hz,
            frame_length_ms: self.frame_length_ms,
            frame_shift_ms: self.frame_shift_ms,
            window: Window::from_name(&self.window)?,
            num_mel_bins: self.num_mel_bins,
            low_freq_hz: self.low_freq_hz,
            high_freq_hz: self.high_freq_hz,
            preemphasis: self.preemphasis,
            sample_scale: self.sample_scale,
        })
    }

    /// Columns of the features that the network takes.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.lfr_m * self.num_mel_bins
    }
}

/// Rows of the prompt embedding.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs, reason = "as above")]
pub struct ItnIds {
    pub with: i32,
    pub without: i32,
}

/// Names of the tensors that go in.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs, reason = "as above")]
pub struct Inputs {
    pub speech: String,
    pub speech_lengths: String,
    pub language: String,
    pub textnorm: String,
}

/// What a text needs in order to be shown.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[allow(missing_docs, reason = "as above")]
pub struct Thresholds {
    pub word_confidence: f64,
    pub entropy: Option<f64>,
}

/// A clip and what the model makes of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs, reason = "as above")]
pub struct SelfTest {
    pub file: String,
    pub spoken: String,
    pub text: String,
}

/// A file of the bundle.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs, reason = "as above")]
pub struct File {
    pub name: String,
    pub sha256: String,
    pub bytes: u64,
}

/// `phrases.json`.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs, reason = "as above")]
pub struct PhraseFile {
    pub many: bool,
    pub min_score: f64,
    pub min_posterior: f64,
    pub lowest_log_prob: f32,
    pub phrases: Vec<Phrase>,
}

/// One phrase: what it stands for, and how it may be spelled.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs, reason = "as above")]
pub struct Phrase {
    pub label: String,
    pub spellings: Vec<String>,
}

/// A bundle that is complete.
#[derive(Debug, Clone)]
pub struct Bundle {
    /// Where it is.
    pub folder: PathBuf,
    /// What it is.
    pub description: Description,
}

impl Bundle {
    /// Read the description and see that every file is there, whole.
    ///
    /// # Errors
    /// [`Kind::Model`] if it is no bundle, or not complete; [`Kind::System`] if it cannot be read.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(DESCRIPTION);
        let text = fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::new(
                Kind::Model,
                format!(
                    "{}: expected a bundle with {DESCRIPTION}, found none; \
                     asr deploy bundle MODEL -o DIR makes one",
                    folder.display()
                ),
            ),
            _ => Error::system(&path, "read the file", &error),
        })?;
        let refuse = |what: String| Error::new(Kind::Model, format!("{}: {what}", path.display()));
        let any: serde_json::Value =
            serde_json::from_slice(&text).map_err(|e| refuse(format!("expected JSON: {e}")))?;
        if any["schema"] != SCHEMA {
            return Err(refuse(format!(
                "expected schema {SCHEMA}, found {}; make the bundle with the asr of this program",
                any["schema"]
            )));
        }
        let description: Description = serde_json::from_value(any)
            .map_err(|e| refuse(format!("expected a description: {e}")))?;
        let bundle = Self {
            folder: folder.to_path_buf(),
            description,
        };
        for file in &bundle.description.files {
            let path = bundle.path(&file.name);
            let found = fs::metadata(&path).map(|m| m.len()).unwrap_or(0);
            if found != file.bytes {
                return Err(damaged(&path, &format!("{} bytes", file.bytes), &found));
            }
        }
        Ok(bundle)
    }

    /// Where a file of the bundle is.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Whether the bundle has such a file.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.description.files.iter().any(|file| file.name == name)
    }

    /// A file's bytes.
    ///
    /// # Errors
    /// [`Kind::System`] if it cannot be read.
    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.path(name);
        fs::read(&path).map_err(|error| Error::system(&path, "read the file", &error))
    }

    /// What is added to each column of the features, and what they are then multiplied by.
    ///
    /// # Errors
    /// [`Kind::Model`] for another number of values than the recipe says.
    pub fn cmvn(&self) -> Result<(Vec<f32>, Vec<f32>)> {
        let bytes = self.read(CMVN)?;
        let dim = self.description.recipe.dim();
        if dim == 0 || bytes.len() != 8 * dim {
            let path = self.path(CMVN);
            return Err(damaged(&path, &format!("{} bytes", 8 * dim), &bytes.len()));
        }
        let values: Vec<f32> = bytes
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        Ok((values[..dim].to_vec(), values[dim..].to_vec()))
    }

    /// The bytes of the token table.
    ///
    /// # Errors
    /// [`Kind::System`] if it cannot be read.
    pub fn tokens(&self) -> Result<Vec<u8>> {
        self.read(TOKENS)
    }

    /// The phrase list, if there is one.
    ///
    /// # Errors
    /// [`Kind::Model`] if it is none.
    pub fn phrases(&self) -> Result<Option<PhraseFile>> {
        if !self.has(PHRASES) {
            return Ok(None);
        }
        let found = serde_json::from_slice(&self.read(PHRASES)?).map_err(|error| {
            let path = self.path(PHRASES);
            Error::new(Kind::Model, format!("{}: {error}", path.display()))
        })?;
        Ok(Some(found))
    }

    /// Compute every checksum.
    ///
    /// # Errors
    /// [`Kind::Model`] names the first file that is not what the bundle was made with.
    pub fn verify(&self) -> Result<()> {
        for file in &self.description.files {
            let found = digest(&self.path(&file.name))?;
            if found != file.sha256 {
                let path = self.path(&file.name);
                return Err(damaged(&path, &format!("sha256 {}", file.sha256), &found));
            }
        }
        Ok(())
    }
}

/// A file's checksum, hexadecimal.
///
/// # Errors
/// [`Kind::System`] if it cannot be read.
pub fn digest(path: &Path) -> Result<String> {
    use sha2::{Digest, Sha256};

    let mut hash = Sha256::new();
    let read = fs::File::open(path).and_then(|mut file| std::io::copy(&mut file, &mut hash));
    read.map_err(|error| Error::system(path, "read the file", &error))?;
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

fn damaged(path: &Path, expected: &str, found: &dyn std::fmt::Display) -> Error {
    let path = path.display();
    Error::new(
        Kind::Model,
        format!("{path}: expected {expected}, found {found}; copy the bundle again"),
    )
}
