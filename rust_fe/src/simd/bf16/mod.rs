//! Self-attention with AVX-512 BF16: thirty-two products in one instruction.
//!
//! Both products are one routine, rows of pairs times columns of pairs: scores are queries times
//! keys, where a pair is two columns of a head; the result is weights times values, where a pair
//! is two frames. Sums are kept in single precision; only factors are rounded, to eight bits.

mod pack;
mod product;
mod vectors;

use std::arch::x86_64::*;
use std::cell::RefCell;

use self::pack::{pack_keys, pack_rows, pack_values};
use self::product::{TILE, multiply};
use self::vectors::{Pairs, load, store_rounded};
use super::attention::{Columns, ColumnsMut};

/// Proof that this CPU has AVX-512F, BW and BF16: only [`Bf16::new`] makes one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bf16(());

/// Rows whose scores are held at once: all that belongs to them stays in the second-level cache.
const BLOCK: usize = 4 * TILE;

/// Coefficients of P in [`softmax`], from the constant on.
const POLYNOMIAL: [f32; 4] = [0.999_925_28, 0.695_833_1, 0.226_067_74, 0.078_024_36];

/// Memory of one thread, kept for its next call: a fresh page costs more than it takes to fill.
#[derive(Default)]
struct Scratch {
    keys: Vec<Pairs>,
    values: Vec<Pairs>,
    queries: Vec<u32>,
    scores: Vec<f32>,
    weights: Vec<u32>,
    sums: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Bf16 {
    /// Ask the CPU.
    #[must_use]
    pub(super) fn new() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bf16");
        has.then_some(Self(()))
    }

    /// One head; see [`super::attention::Attention::head`].
    pub(super) fn attention(
        self,
        query: Columns<'_>,
        key: Columns<'_>,
        value: Columns<'_>,
        scale: f32,
        out: &mut ColumnsMut,
    ) {
        SCRATCH.with_borrow_mut(|scratch| {
            // SAFETY: `self` is the proof that the CPU has these features.
            unsafe { attention(scratch, query, key, value, scale, out) }
        });
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
fn attention(
    scratch: &mut Scratch,
    query: Columns<'_>,
    key: Columns<'_>,
    value: Columns<'_>,
    scale: f32,
    out: &mut ColumnsMut,
) {
    // Columns are padded to whole vectors with zeros, frames with keys of no weight.
    let (frames, columns) = (query.rows(), query.count().next_multiple_of(16));
    let padded = frames.next_multiple_of(16);
    let (pairs, column_pairs) = (padded / 2, columns / 2);
    pack_keys(key, padded, &mut scratch.keys);
    pack_values(value, pairs, &mut scratch.values);
    let Scratch {
        keys,
        values,
        queries,
        scores,
        weights,
        sums,
    } = scratch;
    queries.resize(BLOCK * column_pairs, 0);
    scores.resize(BLOCK * padded, 0.0);
    weights.resize(BLOCK * pairs, 0);
    sums.resize(BLOCK * columns, 0.0);
    let mut inverse = [0.0; BLOCK];

    for first in (0..frames).step_by(BLOCK) {
        let rows = BLOCK.min(frames - first);
        // Rows beyond the last repeat what was there: computed, never read.
        let tiles = rows.next_multiple_of(TILE);
        pack_rows(query, first..first + rows, queries);
        multiply(
            &queries[..tiles * column_pairs],
            column_pairs,
            keys,
            &mut scores[..tiles * padded],
        );
        for (row, to) in weights.chunks_exact_mut(pairs).take(rows).enumerate() {
            inverse[row] = softmax(&mut scores[row * padded..][..padded], frames, scale, to);
        }
        multiply(
            &weights[..tiles * pairs],
            pairs,
            values,
            &mut sums[..tiles * columns],
        );
        for (row, sums) in sums.chunks_exact(columns).take(rows).enumerate() {
            for (value, sum) in out.row(first + row).iter_mut().zip(sums) {
                *value = sum * inverse[row];
            }
        }
    }
}

/// Weights of one row, as bf16 pairs: `exp(scale (x - max x))`, at most 1.
///
/// Returns the inverse of their sum. What lies behind `frames` gets no weight.
///
/// ```text
/// y = scale (x - max x) / ln 2     r = y - floor y     2^y = 2^(floor y) P(r)
/// ```
///
/// P is the polynomial of third degree with the least relative error on [0, 1], 1e-4: rounding to
/// bf16 that follows is off by up to 2e-3.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
fn softmax(scores: &mut [f32], frames: usize, scale: f32, to: &mut [u32]) -> f32 {
    scores[frames..].fill(f32::NEG_INFINITY);
    let scores = scores.as_chunks::<16>().0;
    let mut max = _mm512_set1_ps(f32::NEG_INFINITY);
    for values in scores {
        max = _mm512_max_ps(max, load(values));
    }
    let factor = _mm512_set1_ps(scale * std::f32::consts::LOG2_E);
    let max = _mm512_mul_ps(_mm512_set1_ps(_mm512_reduce_max_ps(max)), factor);
    let mut p = [_mm512_setzero_ps(); 4];
    for (p, c) in p.iter_mut().zip(POLYNOMIAL) {
        *p = _mm512_set1_ps(c);
    }
    let mut sum = _mm512_setzero_ps();
    for (values, to) in scores.iter().zip(to.as_chunks_mut::<8>().0) {
        let y = _mm512_fmsub_ps(load(values), factor, max);
        let r = _mm512_reduce_ps::<0b0000_1001>(y);
        let power = _mm512_fmadd_ps(
            _mm512_fmadd_ps(_mm512_fmadd_ps(p[3], r, p[2]), r, p[1]),
            r,
            p[0],
        );
        let weight = _mm512_scalef_ps(power, y);
        sum = _mm512_add_ps(sum, weight);
        store_rounded(to, weight);
    }
    1.0 / _mm512_reduce_add_ps(sum)
}
