//! The fbank recipe: what the model layout says, checked once.

use crate::error::Error;

/// Shape of the analysis window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// `0.54 - 0.46 cos(2 pi i / (len - 1))`, symmetric.
    Hamming,
}

impl Window {
    /// Find a window by the name that recipes use.
    ///
    /// # Errors
    /// [`Error::Config`] for any name but `hamming`.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        match name {
            "hamming" => Ok(Self::Hamming),
            other => Err(Error::Config {
                field: "window",
                expected: "\"hamming\"".into(),
                found: format!("{other:?}"),
            }),
        }
    }
}

/// The recipe as it is written down: rates in Hz, times in ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FbankConfig {
    /// Sampling rate of the input.
    pub sample_rate_hz: u32,
    /// Length of one frame.
    pub frame_length_ms: f64,
    /// Distance between the starts of two frames.
    pub frame_shift_ms: f64,
    /// Analysis window.
    pub window: Window,
    /// Number of triangular filters.
    pub num_mel_bins: usize,
    /// Lower edge of the first filter.
    pub low_freq_hz: f64,
    /// Upper edge of the last filter; zero or less counts down from half the sampling rate.
    pub high_freq_hz: f64,
    /// Pre-emphasis coefficient.
    pub preemphasis: f64,
    /// Factor from full scale +-1.0 to the scale the recipe was made for (Kaldi: 32768).
    pub sample_scale: f64,
}

/// A checked recipe with its lengths in samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recipe {
    /// What was written down.
    pub config: FbankConfig,
    /// Samples in a frame.
    pub frame_len: usize,
    /// Samples from one frame to the next.
    pub frame_shift: usize,
    /// Length of the Fourier transform: the next power of two.
    pub padded_len: usize,
    /// Upper edge of the last filter, resolved.
    pub high_freq_hz: f64,
}

/// Longest transform accepted; a longer one means that a unit was mistaken.
const MAX_PADDED_LEN: usize = 1 << 16;

impl FbankConfig {
    /// Check every field and turn times into samples.
    ///
    /// ```text
    /// frame_len   = floor(rate * 0.001 * frame_length_ms)
    /// frame_shift = floor(rate * 0.001 * frame_shift_ms)
    /// ```
    ///
    /// # Errors
    /// [`Error::Config`] names the first field that cannot be used.
    ///
    /// Source: kaldi-native-fbank `feature-window.h`, `WindowSize`, `WindowShift`,
    /// `PaddedWindowSize`; `mel-computations.cc` for the meaning of `high_freq <= 0`.
    pub fn check(self) -> Result<Recipe, Error> {
        let rate = f64::from(self.sample_rate_hz);
        let nyquist = rate * 0.5;
        let high = if self.high_freq_hz > 0.0 {
            self.high_freq_hz
        } else {
            nyquist + self.high_freq_hz
        };
        let samples = |ms: f64| (rate * 0.001 * ms) as usize;
        let (frame_len, frame_shift) =
            (samples(self.frame_length_ms), samples(self.frame_shift_ms));

        need(
            self.sample_rate_hz > 0,
            "sample_rate_hz",
            "positive",
            self.sample_rate_hz,
        )?;
        need(
            (2..=MAX_PADDED_LEN).contains(&frame_len),
            "frame_length_ms",
            "a time of 2 to 65536 samples",
            self.frame_length_ms,
        )?;
        need(
            (1..=MAX_PADDED_LEN).contains(&frame_shift),
            "frame_shift_ms",
            "a time of 1 to 65536 samples",
            self.frame_shift_ms,
        )?;
        need(
            (1..=4096).contains(&self.num_mel_bins),
            "num_mel_bins",
            "1 to 4096",
            self.num_mel_bins,
        )?;
        need(
            self.low_freq_hz >= 0.0 && self.low_freq_hz < nyquist,
            "low_freq_hz",
            "at least 0 and below half the sampling rate",
            self.low_freq_hz,
        )?;
        need(
            high > self.low_freq_hz && high <= nyquist,
            "high_freq_hz",
            "above low_freq_hz and at most half the sampling rate",
            self.high_freq_hz,
        )?;
        need(
            (0.0..=1.0).contains(&self.preemphasis),
            "preemphasis",
            "0 to 1",
            self.preemphasis,
        )?;
        need(
            self.sample_scale > 0.0 && self.sample_scale.is_finite(),
            "sample_scale",
            "positive and finite",
            self.sample_scale,
        )?;
        Ok(Recipe {
            config: self,
            frame_len,
            frame_shift,
            padded_len: frame_len.next_power_of_two(),
            high_freq_hz: high,
        })
    }
}

fn need(
    fine: bool,
    field: &'static str,
    expected: &str,
    found: impl std::fmt::Display,
) -> Result<(), Error> {
    if fine {
        return Ok(());
    }
    Err(Error::Config {
        field,
        expected: expected.into(),
        found: found.to_string(),
    })
}
