//! Statistics of a row of scores, in a form that the compiler turns into vectors.

use super::{RowStats, scalar};

/// Scores handled together; several vectors of every instruction set, so that sums do not wait.
const GROUP: usize = 64;

/// Scores whose maximum is remembered together; small enough to look at again cheaply.
const BLOCK: usize = 8 * GROUP;

/// As [`scalar::row_stats`], in single precision.
///
/// ```text
/// m = max x        S = sum exp(x - m)        W = sum (x - m) exp(x - m)
/// ```
///
/// The second look at the row finds it in the cache. A NaN or an infinity makes W a NaN, and so
/// do finite scores too far apart for single precision; plain code then decides which it was.
#[inline(always)]
pub(super) fn row_stats(row: &[f32]) -> Option<RowStats> {
    let (argmax, max) = largest(row);
    if !max.is_finite() {
        return None;
    }
    let mut sums = [0.0f32; GROUP];
    let mut weighted = [0.0f32; GROUP];
    let (groups, rest) = row.as_chunks::<GROUP>();
    for group in groups {
        for i in 0..GROUP {
            let below = group[i] - max;
            let e = exp_of_negative(below);
            sums[i] += e;
            weighted[i] = below.mul_add(e, weighted[i]);
        }
    }
    for (i, score) in rest.iter().enumerate() {
        let below = score - max;
        let e = exp_of_negative(below);
        sums[i] += e;
        weighted[i] = below.mul_add(e, weighted[i]);
    }
    let total = |parts: [f32; GROUP]| parts.into_iter().map(f64::from).sum::<f64>();
    let weighted = total(weighted);
    if !weighted.is_finite() {
        return scalar::row_stats(row);
    }
    Some(RowStats::new(argmax, total(sums), weighted))
}

/// The largest score and the first column that holds it; NaN is never the largest.
#[inline(always)]
fn largest(row: &[f32]) -> (usize, f32) {
    let (mut best, mut best_at) = (f32::NEG_INFINITY, 0);
    for (index, block) in row.chunks(BLOCK).enumerate() {
        let mut maxima = [f32::NEG_INFINITY; GROUP];
        let (groups, rest) = block.as_chunks::<GROUP>();
        for group in groups {
            for i in 0..GROUP {
                maxima[i] = if group[i] > maxima[i] { group[i] } else { maxima[i] };
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
        if maxima[0] > best {
            (best, best_at) = (maxima[0], index * BLOCK);
        }
    }
    let within = row[best_at..].iter().position(|&score| score == best);
    (best_at + within.unwrap_or(0), best)
}

/// `exp(x)` for `x <= 0`, 0 where the result would be less than 1e-37.
///
/// ```text
/// n = round(x / ln 2)   r = x - n ln 2   exp(x) = 2^n P(r)
/// ```
///
/// Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. Relative error < 2e-7.
///
/// Source: Cephes `expf.c` (the polynomial).
#[inline(always)]
fn exp_of_negative(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(2.121_944_4e-4, n.mul_add(-0.693_359_4, x));
    let mut p = 1.987_569_2e-4f32;
    for c in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = p.mul_add(r, c);
    }
    let mantissa = (r * r).mul_add(p, r) + 1.0;
    let scaled = f32::from_bits(mantissa.to_bits().wrapping_add(shifted.to_bits() << 23));
    if x < -85.0 { 0.0 } else { scaled }
}
