//! Rows of pairs times columns of pairs, in tiles whose sums never leave the registers.

use std::arch::x86_64::*;

use super::vectors::{Pairs, as_pairs, load_pairs, store};

/// Rows multiplied together: six of four vectors leave eight registers of 32 for the factors.
pub(super) const TILE: usize = 6;

/// `out = rows columns`, of as many pairs each: (rows, `pairs`), and vectors of sixteen columns.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(super) fn multiply(rows: &[u32], pairs: usize, columns: &[Pairs], out: &mut [f32]) {
    let stride = columns.len() / pairs * 16;
    for (index, columns) in columns.chunks(4 * pairs).enumerate() {
        let rows = rows.chunks_exact(TILE * pairs);
        for (rows, out) in rows.zip(out.chunks_exact_mut(TILE * stride)) {
            let out = &mut out[64 * index..];
            match columns.len() / pairs {
                4 => tile::<4>(rows, pairs, columns, out, stride),
                3 => tile::<3>(rows, pairs, columns, out, stride),
                2 => tile::<2>(rows, pairs, columns, out, stride),
                _ => tile::<1>(rows, pairs, columns, out, stride),
            }
        }
    }
}

/// Six rows times `W` vectors of columns, all sums in registers.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn tile<const W: usize>(
    rows: &[u32],
    pairs: usize,
    columns: &[Pairs],
    out: &mut [f32],
    stride: usize,
) {
    let mut a = [&rows[..pairs]; TILE];
    for r in 1..TILE {
        a[r] = &rows[r * pairs..][..pairs];
    }
    let mut b = [&columns[..pairs]; W];
    for w in 1..W {
        b[w] = &columns[w * pairs..][..pairs];
    }
    let mut sums = [[_mm512_setzero_ps(); W]; TILE];
    for p in 0..pairs {
        let mut factors = [_mm512_setzero_si512(); W];
        for w in 0..W {
            factors[w] = load_pairs(&b[w][p]);
        }
        for r in 0..TILE {
            let factor = as_pairs(_mm512_set1_epi32(a[r][p].cast_signed()));
            for w in 0..W {
                sums[r][w] = _mm512_dpbf16_ps(sums[r][w], factor, as_pairs(factors[w]));
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        let (out, _) = out[r * stride..].as_chunks_mut::<16>();
        for w in 0..W {
            store(&mut out[w], sums[w]);
        }
    }
}
