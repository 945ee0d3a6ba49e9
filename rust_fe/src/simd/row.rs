//! Statistics of a row of scores, in a form that the compiler turns into vectors.

use super::{RowStats, scalar};

/// Scores handled together; several vectors of every instruction set, so that sums do not wait.
const GROUP: usize = 32;

/// Scores looked at twice in a row; they stay in the first cache while the next are on their way.
const BLOCK: usize = 32 * GROUP;

/// Sums over the scores so far, relative to the largest of them.
struct Sums {
    max: f32,
    /// Parts of the sum of `exp(x - max)`.
    plain: [f64; GROUP],
    /// Parts of the sum of `(x - max) exp(x - max)`.
    weighted: [f64; GROUP],
}

/// As [`scalar::row_stats`], in one pass over memory, in single precision within a block.
///
/// ```text
/// m = max x        S = sum exp(x - m)        W = sum (x - m) exp(x - m)
/// a new maximum m + d turns S into S exp(-d), W into (W - d S) exp(-d)
/// ```
///
/// A NaN or an infinity makes W a NaN, and so do finite scores too far apart for single
/// precision; plain code then decides which it was.
#[inline(always)]
pub(super) fn row_stats(row: &[f32]) -> Option<RowStats> {
    let mut sums = Sums {
        max: f32::NEG_INFINITY,
        plain: [0.0; GROUP],
        weighted: [0.0; GROUP],
    };
    let mut best = 0;
    for (index, block) in row.chunks(BLOCK).enumerate() {
        let max = largest(block);
        if max > sums.max {
            if index > 0 {
                sums.rise(max - sums.max);
            }
            sums.max = max;
            best = index * BLOCK;
        }
        sums.add(block);
    }
    let weighted = total(&sums.weighted);
    if !weighted.is_finite() {
        return scalar::row_stats(row);
    }
    let within = row[best..].iter().position(|&score| score == sums.max)?;
    Some(RowStats::new(best + within, total(&sums.plain), weighted))
}

#[inline(always)]
fn total(parts: &[f64; GROUP]) -> f64 {
    parts.iter().sum()
}

impl Sums {
    /// Make the sums relative to a maximum that is larger by `by`.
    #[inline(always)]
    fn rise(&mut self, by: f32) {
        let by = f64::from(by);
        let factor = (-by).exp();
        for i in 0..GROUP {
            self.weighted[i] = (self.weighted[i] - by * self.plain[i]) * factor;
            self.plain[i] *= factor;
        }
    }

    #[inline(always)]
    fn add(&mut self, block: &[f32]) {
        let (mut plain, mut weighted) = ([0.0f32; GROUP], [0.0f32; GROUP]);
        let (groups, rest) = block.as_chunks::<GROUP>();
        for group in groups {
            for i in 0..GROUP {
                let below = group[i] - self.max;
                let e = exp_of_negative(below);
                plain[i] += e;
                weighted[i] = below.mul_add(e, weighted[i]);
            }
        }
        for (i, score) in rest.iter().enumerate() {
            let below = score - self.max;
            let e = exp_of_negative(below);
            plain[i] += e;
            weighted[i] = below.mul_add(e, weighted[i]);
        }
        for i in 0..GROUP {
            self.plain[i] += f64::from(plain[i]);
            self.weighted[i] += f64::from(weighted[i]);
        }
    }
}

/// The largest score; NaN is never the largest.
#[inline(always)]
fn largest(block: &[f32]) -> f32 {
    let mut maxima = [f32::NEG_INFINITY; GROUP];
    let (groups, rest) = block.as_chunks::<GROUP>();
    for group in groups {
        for i in 0..GROUP {
            maxima[i] = if group[i] > maxima[i] {
                group[i]
            } else {
                maxima[i]
            };
        }
    }
    for (m, &score) in maxima.iter_mut().zip(rest) {
        *m = if score > *m { score } else { *m };
    }
    let mut half = GROUP / 2;
    while half > 0 {
        for i in 0..half {
            let other = maxima[i + half];
            maxima[i] = if other > maxima[i] { other } else { maxima[i] };
        }
        half /= 2;
    }
    maxima[0]
}

/// `exp(x)` for `x <= 0`, 0 where the result would be less than 1e-36; exactly 1 for 0.
///
/// ```text
/// n = round(x / ln 2)   f = x / ln 2 - n   exp(x) = 2^n P(f)
/// ```
///
/// Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. P is the polynomial of
/// fifth degree with P(0) = 1 and the least relative error, 1e-7, found by weighted least squares.
/// `1 / ln 2` in single precision adds a relative error of 2e-8 |x|: harmless, because
/// every use weighs the result against exp(0) = 1.
#[inline(always)]
#[allow(
    clippy::approx_constant,
    reason = "the fit gave almost ln 2, and almost is what it means"
)]
fn exp_of_negative(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let f = x.mul_add(std::f32::consts::LOG2_E, ROUND - shifted);
    let mut p = 1.326_472_7e-3f32;
    for c in [
        9.671_513e-3,
        5.550_733_6e-2,
        2.402_224_2e-1,
        6.931_47e-1,
        1.0,
    ] {
        p = p.mul_add(f, c);
    }
    let scaled = f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23));
    if x < -84.0 { 0.0 } else { scaled }
}
