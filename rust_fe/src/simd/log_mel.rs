//! From samples to log mel energies, as many frames at once as there are lanes.

use super::fft::FftPlan;
use super::lanes::{Complex, GROUP, Lanes, MAX_LANES};

/// Everything that [`log_mel`] needs to know, computed once per recipe.
#[derive(Debug)]
pub struct LogMelPlan {
    frame_shift: usize,
    preemphasis: f64,
    /// The window, halved: the transform returns the power fourfold.
    window: Vec<f64>,
    fft: FftPlan,
    bins: Vec<Bin>,
    weights: Vec<f64>,
}

/// One filter: `len` weights from the common list belong to the power bins from `first` on.
#[derive(Debug)]
struct Bin {
    first: usize,
    len: usize,
}

impl LogMelPlan {
    /// Put the parts of a recipe together; `bins` gives the first power bin and the weights of
    /// each filter.
    ///
    /// # Panics
    /// If `padded_len` is no power of two or shorter than the window, or a filter reaches beyond
    /// the spectrum.
    #[must_use]
    pub fn new<'a>(
        frame_shift: usize,
        padded_len: usize,
        preemphasis: f64,
        window: &[f64],
        bins: impl Iterator<Item = (usize, &'a [f64])>,
    ) -> Self {
        let (mut spans, mut all) = (Vec::new(), Vec::new());
        for (first, weights) in bins {
            assert!(first + weights.len() <= padded_len / 2, "a filter lies within the spectrum");
            spans.push(Bin { first, len: weights.len() });
            all.extend_from_slice(weights);
        }
        assert!(window.len() <= padded_len && !window.is_empty(), "the window fits");
        Self {
            frame_shift,
            preemphasis,
            window: window.iter().map(|w| 0.5 * w).collect(),
            fft: FftPlan::new(padded_len),
            bins: spans,
            weights: all,
        }
    }

    /// Filters, that is columns of the result.
    #[must_use]
    pub fn num_bins(&self) -> usize {
        self.bins.len()
    }

    /// Mean of each frame.
    ///
    /// Sums of pieces that divide both length and shift are shared between the frames. In double
    /// precision the sum of a constant is exact, so a constant frame becomes exactly zero.
    #[inline(always)]
    fn means(&self, samples: &[f32], frames: usize) -> Vec<f64> {
        let len = self.window.len();
        let piece = gcd(len, self.frame_shift);
        let sums: Vec<f64> = samples.chunks_exact(piece).map(sum).collect();
        let step = self.frame_shift / piece;
        (0..frames)
            .map(|i| sums[i * step..i * step + len / piece].iter().sum::<f64>() / len as f64)
            .collect()
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[inline(always)]
fn sum(values: &[f32]) -> f64 {
    let mut partial = [0.0; 16];
    let (groups, rest) = values.as_chunks::<16>();
    for group in groups {
        for (p, &v) in partial.iter_mut().zip(group) {
            *p += f64::from(v);
        }
    }
    let rest: f64 = rest.iter().map(|&v| f64::from(v)).sum();
    partial.iter().sum::<f64>() + rest
}

/// Fill `out`, (frames, bins); `Err` is the first frame that holds a sample that is not finite.
#[inline(always)]
pub(super) fn log_mel<V: Lanes>(
    plan: &LogMelPlan,
    samples: &[f32],
    out: &mut [f32],
) -> Result<(), usize> {
    let frames = out.len() / plan.num_bins();
    let means = plan.means(samples, frames);
    if let Some(frame) = means.iter().position(|mean| !mean.is_finite()) {
        return Err(frame);
    }
    let zero = V::splat(0.0);
    let mut z = vec![Complex { re: zero, im: zero }; plan.fft.half()];
    let mut power = vec![zero; plan.fft.half()];
    let mut energies = vec![0.0f32; plan.num_bins() * V::N];

    for (block, out) in out.chunks_mut(V::N * plan.num_bins()).enumerate() {
        // Spare lanes of the last block repeat the last frame.
        let frame = |lane: usize| (block * V::N + lane).min(frames - 1);
        let starts = std::array::from_fn(|lane| frame(lane) * plan.frame_shift);
        let mean = V::from_lanes(&std::array::from_fn(|lane| means[frame(lane)]));

        prepare(plan, samples, &starts, mean, &mut z);
        plan.fft.power(&mut z, &mut power);
        filter(plan, &power, &mut energies);
        V::ln(&mut energies);
        for (lane, row) in out.chunks_exact_mut(plan.num_bins()).enumerate() {
            for (value, energies) in row.iter_mut().zip(energies.chunks_exact(V::N)) {
                *value = energies[lane];
            }
        }
    }
    Ok(())
}

/// Remove the mean, pre-emphasise, apply the window, pad with zeros.
#[inline(always)]
fn prepare<V: Lanes>(
    plan: &LogMelPlan,
    samples: &[f32],
    starts: &[usize; MAX_LANES],
    mean: V,
    z: &mut [Complex<V>],
) {
    let preemphasis = V::splat(plan.preemphasis);
    let first: [f64; MAX_LANES] = std::array::from_fn(|lane| f64::from(samples[starts[lane]]));
    let mut previous = V::from_lanes(&first).sub(mean);
    let mut step = |x: V, w: f64| {
        let d = x.sub(mean);
        let y = previous.neg_mul_add(preemphasis, d).mul(V::splat(w));
        previous = d;
        y
    };
    let (groups, rest) = plan.window.as_chunks::<GROUP>();
    let (pairs, _) = z.as_chunks_mut::<{ GROUP / 2 }>();
    for (index, (w, pair)) in groups.iter().zip(pairs).enumerate() {
        let x = V::load_frames(samples, starts, index * GROUP);
        pair[0] = Complex { re: step(x[0], w[0]), im: step(x[1], w[1]) };
        pair[1] = Complex { re: step(x[2], w[2]), im: step(x[3], w[3]) };
    }
    let zero = V::splat(0.0);
    let mut at = groups.len() * GROUP;
    z[at / 2..].fill(Complex { re: zero, im: zero });
    for &w in rest {
        let x: [f64; MAX_LANES] = std::array::from_fn(|lane| f64::from(samples[starts[lane] + at]));
        let y = step(V::from_lanes(&x), w);
        if at % 2 == 0 {
            z[at / 2].re = y;
        } else {
            z[at / 2].im = y;
        }
        at += 1;
    }
}

/// Weighted sums of the power, kept within the normal range of single precision.
#[inline(always)]
fn filter<V: Lanes>(plan: &LogMelPlan, power: &[V], energies: &mut [f32]) {
    let (floor, ceiling) = (V::splat(f64::from(f32::EPSILON)), V::splat(f64::from(f32::MAX)));
    let mut weights = &plan.weights[..];
    for (bin, energies) in plan.bins.iter().zip(energies.chunks_exact_mut(V::N)) {
        let (mine, others) = weights.split_at(bin.len);
        weights = others;
        let mut sum = V::splat(0.0);
        for (&w, &p) in mine.iter().zip(&power[bin.first..bin.first + bin.len]) {
            sum = p.mul_add(V::splat(w), sum);
        }
        sum.max(floor).min(ceiling).store_f32(energies);
    }
}
