//! Triangular filters, equally spaced on the HTK mel scale.

use crate::config::Recipe;
use crate::error::Error;

/// One filter: `weights[i]` belongs to Fourier bin `first + i`.
#[derive(Debug, Clone, PartialEq)]
pub struct MelBin {
    /// First Fourier bin with a weight above zero.
    pub first: usize,
    /// Weights, all above zero.
    pub weights: Vec<f64>,
}

/// HTK mel scale.
///
/// ```text
/// mel(f) = 1127 ln(1 + f / 700)
/// ```
#[must_use]
pub fn mel(freq_hz: f64) -> f64 {
    1127.0 * (freq_hz / 700.0).ln_1p()
}

/// Compute the filters of a recipe.
///
/// ```text
/// edge[b] = mel(low) + b (mel(high) - mel(low)) / (bins + 1)
/// w[b][k] = min((m - edge[b]) / d, (edge[b+2] - m) / d)   m = mel(k rate / padded_len), where above 0
/// ```
///
/// As in Kaldi the slopes are straight in mel, not in Hz, and the Nyquist bin takes no part.
/// Deliberate difference: computed in double precision.
///
/// # Errors
/// [`Error::Config`] if a filter is so narrow that no Fourier bin falls into it.
///
/// Source: kaldi-native-fbank `mel-computations.cc`, `MelBanks::InitKaldiMelBanks`.
pub fn mel_bins(recipe: &Recipe) -> Result<Vec<MelBin>, Error> {
    let bins = recipe.config.num_mel_bins;
    let low = mel(recipe.config.low_freq_hz);
    let delta = (mel(recipe.high_freq_hz) - low) / (bins + 1) as f64;
    let bin_width_hz = f64::from(recipe.config.sample_rate_hz) / recipe.padded_len as f64;
    let fft_mels: Vec<f64> = (0..recipe.padded_len / 2)
        .map(|k| mel(bin_width_hz * k as f64))
        .collect();

    (0..bins)
        .map(|bin| {
            let (left, right) = (low + bin as f64 * delta, low + (bin + 2) as f64 * delta);
            let first = fft_mels.partition_point(|&m| m <= left);
            let weights: Vec<f64> = fft_mels[first..]
                .iter()
                .take_while(|&&m| m < right)
                .map(|&m| ((m - left) / delta).min((right - m) / delta))
                .collect();
            if weights.is_empty() {
                return Err(Error::Config {
                    field: "num_mel_bins",
                    expected: "small enough that every filter covers a Fourier bin".into(),
                    found: format!("{bins}, where filter {bin} covers none"),
                });
            }
            Ok(MelBin { first, weights })
        })
        .collect()
}
