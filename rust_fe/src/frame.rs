//! Cutting audio into frames, and the analysis window.

use crate::config::{Recipe, Window};

/// Number of whole frames in `num_samples` samples (Kaldi's `snip_edges=true`).
///
/// ```text
/// 0                                          if num_samples < frame_len
/// 1 + floor((num_samples - frame_len) / frame_shift)   otherwise
/// ```
///
/// Source: kaldi-native-fbank `feature-window.cc`, `NumFrames`.
#[must_use]
pub fn num_frames(num_samples: usize, recipe: &Recipe) -> usize {
    match num_samples.checked_sub(recipe.frame_len) {
        None => 0,
        Some(rest) => 1 + rest / recipe.frame_shift,
    }
}

/// The analysis window times `scale`, in double precision.
///
/// ```text
/// w[i] = scale * (0.54 - 0.46 cos(2 pi i / (len - 1)))      i = 0 .. len-1
/// ```
///
/// The sample scale sits here, behind the removal of the mean, so that a constant input
/// becomes exactly zero whatever the scale.
///
/// Source: kaldi-native-fbank `feature-window.cc`, `FeatureWindowFunction`.
#[must_use]
pub fn window(kind: Window, len: usize, scale: f64) -> Vec<f64> {
    let step = std::f64::consts::TAU / (len - 1) as f64;
    match kind {
        Window::Hamming => (0..len)
            .map(|i| scale * (0.54 - 0.46 * (step * i as f64).cos()))
            .collect(),
    }
}
