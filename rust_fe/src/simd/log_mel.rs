//! From samples to log mel energies, as many frames at once as there are lanes.
//!
//! Double precision up to the logarithm: kaldi-native-fbank, in single precision, is off by 4e-3
//! in the quiet filters beside a loud 7.9 kHz tone and by whole units under a large constant
//! offset. Here every value is the double precision value, rounded, and it still costs less time
//! than the fastest single precision front end we know (asrfront 0.2.2).

use super::fft::FftPlan;
use super::lanes::{Complex, Frames, GROUP, Lanes, MAX_LANES};

/// Everything that [`log_mel`] needs to know, computed once per recipe.
#[derive(Debug)]
pub struct LogMelPlan {
    frame_shift: usize,
    preemphasis: f64,
    /// The window, halved: the transform returns the power fourfold.
    window: Vec<f64>,
    fft: FftPlan,
    filters: Filters,
}

/// Triangular filters, each of which overlaps its two neighbours only.
///
/// Segment `b` reaches from the first power bin of filter `b` to that of the next; in it filter
/// `b` rises and filter `b - 1` falls, so that every power is loaded once.
#[derive(Debug)]
struct Filters {
    /// First power bin of the first filter.
    first: usize,
    /// Length of each segment, one per filter.
    segments: Vec<usize>,
    /// Weights of the falling and of the rising filter, for each power bin.
    weights: Vec<[f64; 2]>,
}

impl Filters {
    /// From the first power bin and the weights of each filter.
    fn new(bins: &[(usize, &[f64])], num_powers: usize) -> Self {
        let first = bins[0].0;
        let end = bins
            .iter()
            .map(|(at, weights)| at + weights.len())
            .max()
            .unwrap_or(first);
        assert!(end <= num_powers, "the filters lie within the spectrum");
        let start = |bin: usize| bins.get(bin).map_or(end, |&(at, _)| at);
        let mut pairs = vec![[0.0; 2]; end - first];
        for (bin, &(at, weights)) in bins.iter().enumerate() {
            assert!(at <= start(bin + 1), "filters are in order");
            assert!(
                at + weights.len() <= start(bin + 2),
                "a filter overlaps its neighbours only"
            );
            for (k, &weight) in (at..).zip(weights) {
                pairs[k - first][usize::from(k < start(bin + 1))] = weight;
            }
        }
        let segments = (0..bins.len())
            .map(|bin| start(bin + 1) - start(bin))
            .collect();
        Self {
            first,
            segments,
            weights: pairs,
        }
    }
}

impl LogMelPlan {
    /// Put the parts of a recipe together; `bins` gives the first power bin and the weights of
    /// each filter.
    ///
    /// # Panics
    /// If `padded_len` is no power of two or shorter than the window, if there is no filter, or if
    /// the filters reach beyond the spectrum or overlap others than their neighbours.
    #[must_use]
    pub fn new(
        frame_shift: usize,
        padded_len: usize,
        preemphasis: f64,
        window: &[f64],
        bins: &[(usize, &[f64])],
    ) -> Self {
        assert!(
            !window.is_empty() && window.len() <= padded_len,
            "the window fits"
        );
        Self {
            frame_shift,
            preemphasis,
            window: window.iter().map(|w| 0.5 * w).collect(),
            fft: FftPlan::new(padded_len, window.len()),
            filters: Filters::new(bins, padded_len / 2),
        }
    }

    /// Filters, that is columns of the result.
    #[must_use]
    pub fn num_bins(&self) -> usize {
        self.filters.segments.len()
    }

    /// Mean of each frame.
    ///
    /// Sums of pieces that divide both length and shift are shared between the frames. In double
    /// precision the sum of a constant is exact, so a constant frame becomes exactly zero.
    #[inline(always)]
    fn means<V: Lanes>(&self, samples: &[f32], frames: usize) -> Vec<f64> {
        let len = self.window.len();
        let piece = gcd(len, self.frame_shift);
        let step = self.frame_shift / piece;
        // Plain loops: what an iterator adaptor calls would not be compiled for the backend.
        let mut sums = vec![0.0; samples.len() / piece];
        for (total, values) in sums.iter_mut().zip(samples.chunks_exact(piece)) {
            *total = sum::<V>(values);
        }
        let mut means = vec![0.0; frames];
        for (i, mean) in means.iter_mut().enumerate() {
            let mut total = 0.0;
            for &part in &sums[i * step..i * step + len / piece] {
                total += part;
            }
            *mean = total / len as f64;
        }
        means
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[inline(always)]
fn sum<V: Lanes>(values: &[f32]) -> f64 {
    let (mut even, mut odd) = (V::splat(0.0), V::splat(0.0));
    let pairs = values.chunks_exact(2 * V::N);
    let rest: f64 = pairs.remainder().iter().map(|&v| f64::from(v)).sum();
    for pair in pairs {
        even = even.add(V::load_f32(&pair[..V::N]));
        odd = odd.add(V::load_f32(&pair[V::N..]));
    }
    let [a, b, c, d, e, f, g, h] = even.add(odd).to_lanes();
    ((a + e) + (b + f)) + ((c + g) + (d + h)) + rest
}

/// Fill `out`, (frames, bins); `Err` is the first frame that holds a sample that is not finite.
#[inline(always)]
pub(super) fn log_mel<V: Lanes>(
    plan: &LogMelPlan,
    samples: &[f32],
    out: &mut [f32],
) -> Result<(), usize> {
    let frames = out.len() / plan.num_bins();
    let means = plan.means::<V>(samples, frames);
    if let Some(frame) = means.iter().position(|mean| !mean.is_finite()) {
        return Err(frame);
    }
    // Seen in memory once, a vector makes the compiler align the stack to its size. Without that,
    // what it moves to the stack straddles cache lines, by luck of the process's start address.
    let zero = *std::hint::black_box(&V::splat(0.0));
    let mut z = vec![Complex { re: zero, im: zero }; plan.fft.places()];
    let mut power = vec![zero; plan.fft.half()];
    let mut energies = vec![0.0f32; plan.num_bins() * V::N];

    for (block, out) in out.chunks_mut(V::N * plan.num_bins()).enumerate() {
        // Spare lanes of the last block repeat the last frame.
        let frame = |lane: usize| (block * V::N + lane).min(frames - 1);
        let starts = std::array::from_fn(|lane| frame(lane) * plan.frame_shift);
        let mean = V::from_lanes(&std::array::from_fn(|lane| means[frame(lane)]));

        prepare(
            plan,
            &Frames::new(samples, starts, plan.window.len()),
            mean,
            &mut z,
        );
        plan.fft.power(&mut z, &mut power);
        filter(plan, &power, &mut energies);
        V::ln(&mut energies);
        transpose::<V>(&energies, out, plan.num_bins());
    }
    Ok(())
}

/// From one row per bin to one row per frame.
#[inline(always)]
fn transpose<V: Lanes>(energies: &[f32], out: &mut [f32], num_bins: usize) {
    if out.len() == energies.len() {
        for (bin, energies) in energies.chunks_exact(V::N).enumerate() {
            for lane in 0..V::N {
                out[lane * num_bins + bin] = energies[lane];
            }
        }
    } else {
        for (lane, row) in out.chunks_exact_mut(num_bins).enumerate() {
            for (value, energies) in row.iter_mut().zip(energies.chunks_exact(V::N)) {
                *value = energies[lane];
            }
        }
    }
}

/// Remove the mean, pre-emphasise, apply the window, pad with zeros.
#[inline(always)]
fn prepare<V: Lanes>(plan: &LogMelPlan, frames: &Frames<'_>, mean: V, z: &mut [Complex<V>]) {
    let preemphasis = V::splat(plan.preemphasis);
    let first: [f64; MAX_LANES] = std::array::from_fn(|lane| f64::from(frames.sample(lane, 0)));
    let mut previous = V::from_lanes(&first).sub(mean);
    let (groups, rest) = plan.window.as_chunks::<GROUP>();
    for (index, w) in groups.iter().enumerate() {
        let x = V::load_frames(frames, index * GROUP);
        let d = [
            x[0].sub(mean),
            x[1].sub(mean),
            x[2].sub(mean),
            x[3].sub(mean),
        ];
        let y = [
            previous.neg_mul_add(preemphasis, d[0]).mul(V::splat(w[0])),
            d[0].neg_mul_add(preemphasis, d[1]).mul(V::splat(w[1])),
            d[1].neg_mul_add(preemphasis, d[2]).mul(V::splat(w[2])),
            d[2].neg_mul_add(preemphasis, d[3]).mul(V::splat(w[3])),
        ];
        let place = plan.fft.place(index * GROUP / 2);
        z[place] = Complex { re: y[0], im: y[1] };
        z[place + 1] = Complex { re: y[2], im: y[3] };
        previous = d[3];
    }
    let zero = V::splat(0.0);
    let done = groups.len() * GROUP;
    z[plan.fft.place(done / 2)..plan.fft.place(plan.fft.used())]
        .fill(Complex { re: zero, im: zero });
    for (at, &w) in (done..).zip(rest) {
        let x: [f64; MAX_LANES] = std::array::from_fn(|lane| f64::from(frames.sample(lane, at)));
        let d = V::from_lanes(&x).sub(mean);
        let y = previous.neg_mul_add(preemphasis, d).mul(V::splat(w));
        previous = d;
        let pair = &mut z[plan.fft.place(at / 2)];
        if at.is_multiple_of(2) {
            pair.re = y;
        } else {
            pair.im = y;
        }
    }
}

/// Weighted sums of the power, kept within the normal range of single precision.
#[inline(always)]
fn filter<V: Lanes>(plan: &LogMelPlan, power: &[V], energies: &mut [f32]) {
    let (floor, ceiling) = (
        V::splat(f64::from(f32::EPSILON)),
        V::splat(f64::from(f32::MAX)),
    );
    let Filters {
        first,
        segments,
        weights,
    } = &plan.filters;
    let (mut weights, mut power) = (&weights[..], &power[*first..*first + weights.len()]);
    let mut rising = V::splat(0.0);
    for (bin, &len) in segments.iter().enumerate() {
        let mut falling = rising;
        rising = V::splat(0.0);
        let (mine, others) = weights.split_at(len);
        let (powers, other_powers) = power.split_at(len);
        for (w, &p) in mine.iter().zip(powers) {
            falling = p.mul_add(V::splat(w[0]), falling);
            rising = p.mul_add(V::splat(w[1]), rising);
        }
        (weights, power) = (others, other_powers);
        if bin > 0 {
            let energies = &mut energies[(bin - 1) * V::N..bin * V::N];
            falling.max(floor).min(ceiling).store_f32(energies);
        }
    }
    let last = energies.len() - V::N;
    rising
        .max(floor)
        .min(ceiling)
        .store_f32(&mut energies[last..]);
}
