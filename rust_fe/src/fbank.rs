//! Log mel filter bank energies, as Kaldi computes them.

use crate::config::{FbankConfig, Recipe};
use crate::error::Error;
use crate::frame;
use crate::mel::mel_bins;
use crate::simd::{Backend, LogMelPlan};

/// A front end made ready for one recipe.
///
/// It never changes after construction: buffers belong to each call, so that several threads may
/// compute at once without a lock.
#[derive(Debug)]
pub struct Fbank {
    recipe: Recipe,
    plan: LogMelPlan,
    backend: Backend,
}

impl Fbank {
    /// Check the recipe and compute window, filters and the factors of the transform.
    ///
    /// # Errors
    /// [`Error::Config`] names the recipe field that cannot be used.
    pub fn new(config: FbankConfig, backend: Backend) -> Result<Self, Error> {
        let recipe = config.check()?;
        let bins = mel_bins(&recipe)?;
        let plan = LogMelPlan::new(
            recipe.frame_shift,
            recipe.padded_len,
            config.preemphasis,
            &frame::window(config.window, recipe.frame_len, config.sample_scale),
            &bins
                .iter()
                .map(|bin| (bin.first, &bin.weights[..]))
                .collect::<Vec<_>>(),
        );
        Ok(Self {
            recipe,
            plan,
            backend,
        })
    }

    /// The backend in use.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Columns of the result.
    #[must_use]
    pub fn num_mel_bins(&self) -> usize {
        self.plan.num_bins()
    }

    /// Rows that [`Fbank::compute`] gives for so many samples.
    #[must_use]
    pub fn num_frames(&self, num_samples: usize) -> usize {
        frame::num_frames(num_samples, &self.recipe)
    }

    /// Compute (frames, bins), row-major, from samples of full scale +-1.0.
    ///
    /// ```text
    /// d[i] = x[i] - mean(x)                       one frame x
    /// y[i] = (d[i] - a d[max(i-1, 0)]) w[i]       a = pre-emphasis
    /// P[k] = |sum_i y[i] exp(-2 pi j i k / N)|^2
    /// out[b] = ln(max(sum_k w[b][k] P[k], FLT_EPSILON))
    /// ```
    ///
    /// # Errors
    /// [`Error::NonFiniteSample`] if a sample within a frame is NaN or infinite.
    ///
    /// Source: kaldi-native-fbank `feature-window.cc`, `ProcessWindow`; `feature-fbank.cc`,
    /// `FbankComputer::Compute`. Deliberate difference: double precision up to the logarithm.
    pub fn compute(&self, samples: &[f32]) -> Result<Vec<f32>, Error> {
        let mut out = vec![0.0; self.num_frames(samples.len()) * self.num_mel_bins()];
        match self.backend.log_mel(&self.plan, samples, &mut out) {
            Ok(()) => Ok(out),
            Err(frame) => {
                let start = frame * self.recipe.frame_shift;
                let found = samples
                    .iter()
                    .enumerate()
                    .skip(start)
                    .find(|(_, v)| !v.is_finite());
                let (index, &value) = found.unwrap_or((start, &f32::NAN));
                Err(Error::NonFiniteSample { index, value })
            }
        }
    }
}
