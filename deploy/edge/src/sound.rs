//! Sound from a file, standard input or memory, block by block, one channel.

use std::fs::File;
use std::io::{BufReader, Cursor, ErrorKind, Read};
use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::wav::{self, Format};

/// Samples of a block: 65 s at 16 kHz.
pub const BLOCK: usize = 1 << 20;
/// Rates that are sound.
pub const RATES_HZ: std::ops::RangeInclusive<u32> = 4_000..=384_000;
/// A float beyond this is no loud sound but an integer that nobody divided.
const MAX_AMPLITUDE: f32 = 16.0;

/// A sound that is being read.
pub struct Reader {
    source: Box<dyn Read + Send>,
    name: String,
    format: Format,
    /// Bytes that are to come; none where the header does not know.
    left: Option<u64>,
    bytes: Vec<u8>,
    done: u64,
    /// What a careful user should know.
    pub warnings: Vec<String>,
}

impl Reader {
    /// Open a path, or `-` for standard input; `raw_hz` reads 16-bit samples without a header.
    ///
    /// # Errors
    /// [`Kind::Audio`] for no such file, or no WAV; [`Kind::System`] if it cannot be read.
    pub fn open(path: &str, raw_hz: Option<u32>) -> Result<Self> {
        if path == "-" {
            let source = Box::new(BufReader::with_capacity(1 << 16, std::io::stdin()));
            return Self::new(source, "stdin", raw_hz);
        }
        let file = File::open(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                Error::new(Kind::Audio, format!("{path}: file not found"))
            }
            _ => Error::system(Path::new(path), "read the file", &error),
        })?;
        if file.metadata().is_ok_and(|m| m.is_dir()) {
            return Err(Error::new(
                Kind::Audio,
                format!("{path}: expected a sound file, found a folder"),
            ));
        }
        Self::new(
            Box::new(BufReader::with_capacity(1 << 16, file)),
            path,
            raw_hz,
        )
    }

    /// Samples in memory.
    ///
    /// # Errors
    /// [`Kind::Audio`] for a rate at which nobody samples speech.
    pub fn of_samples(samples: &[i16], rate_hz: u32, name: &str) -> Result<Self> {
        let bytes: Vec<u8> = samples.iter().flat_map(|s| s.to_le_bytes()).collect();
        Self::new(Box::new(Cursor::new(bytes)), name, Some(rate_hz))
    }

    fn new(mut source: Box<dyn Read + Send>, name: &str, raw_hz: Option<u32>) -> Result<Self> {
        let (format, left) = match raw_hz {
            Some(rate_hz) => (Format::pcm16(rate_hz), None),
            None => wav::header(&mut source, name)?,
        };
        if !RATES_HZ.contains(&format.rate_hz) {
            return Err(Error::new(
                Kind::Audio,
                format!(
                    "{name}: expected a rate of 4000 to 384000 Hz, found {} Hz",
                    format.rate_hz
                ),
            ));
        }
        Ok(Self {
            source,
            name: name.into(),
            format,
            left,
            bytes: Vec::new(),
            done: 0,
            warnings: Vec::new(),
        })
    }

    /// Samples per second.
    #[must_use]
    pub fn rate_hz(&self) -> u32 {
        self.format.rate_hz
    }

    /// What to call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Seconds read so far.
    #[must_use]
    pub fn read_s(&self) -> f64 {
        self.done as f64 / f64::from(self.format.rate_hz)
    }

    /// Add the next samples; whether there may be more.
    ///
    /// # Errors
    /// [`Kind::Audio`] for values that are no samples; [`Kind::System`] if reading fails.
    pub fn next(&mut self, samples: &mut Vec<f32>) -> Result<bool> {
        let frame = self.format.frame_bytes();
        let mut want = BLOCK / self.format.channels * frame;
        if let Some(left) = self.left {
            want = want.min(usize::try_from(left).unwrap_or(usize::MAX));
        }
        self.bytes.clear();
        let mut limited = (&mut self.source).take(want as u64);
        limited
            .read_to_end(&mut self.bytes)
            .map_err(|error| Error::system(Path::new(&self.name), "read the file", &error))?;
        let whole = self.bytes.len() / frame * frame;
        let ended = self.bytes.len() < want || want == 0;
        if let Some(left) = &mut self.left {
            *left -= self.bytes.len() as u64;
            if ended && *left > 0 {
                let seconds = *left as f64 / frame as f64 / f64::from(self.format.rate_hz);
                self.warnings.push(format!(
                    "audio_damaged: its header promises {seconds:.2} s more than it holds"
                ));
            }
        }
        if whole < self.bytes.len() {
            let rest = self.bytes.len() - whole;
            self.warnings.push(format!(
                "audio_damaged: the last sample has {rest} of {frame} bytes"
            ));
        }
        let first = samples.len();
        self.format.decode(&self.bytes[..whole], samples);
        if self.format.is_float() {
            self.check(&samples[first..])?;
        }
        self.done += (whole / frame) as u64;
        Ok(!ended && self.left != Some(0))
    }

    fn check(&self, samples: &[f32]) -> Result<()> {
        let fine = |v: &f32| v.is_finite() && v.abs() <= MAX_AMPLITUDE;
        let wrong = samples.iter().position(|v| !fine(v));
        wrong.map_or(Ok(()), |place| {
            Err(Error::new(
                Kind::Audio,
                format!(
                    "{}: sample {} is {}; expected finite floats with full scale ±1.0",
                    self.name,
                    self.done + place as u64,
                    samples[place]
                ),
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_samples_are_full_scale_one_and_a_torn_one_is_told() {
        let bytes = vec![0, 0x80, 0xff, 0x7f, 1];
        let mut reader = Reader::new(Box::new(Cursor::new(bytes)), "x", Some(16000)).unwrap();
        let mut samples = Vec::new();
        assert!(!reader.next(&mut samples).unwrap());
        assert_eq!([-1.0, 32767.0 / 32768.0], samples[..]);
        assert_eq!(1, reader.warnings.len());
        assert_eq!(2.0 / 16000.0, reader.read_s());
    }

    #[test]
    fn absurd_rates_and_missing_files_are_refused() {
        let error = Reader::of_samples(&[0], 100, "x").err().unwrap();
        assert_eq!(Kind::Audio, error.kind);
        let error = Reader::open("/nowhere.wav", None).err().unwrap();
        assert_eq!("/nowhere.wav: file not found", error.to_string());
    }
}
