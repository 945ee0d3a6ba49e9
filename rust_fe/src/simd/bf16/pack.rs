//! One head's rows, rounded to bf16, in the order in which the products need them.

use std::arch::x86_64::*;
use std::ops::Range;

use super::super::attention::Columns;
use super::vectors::{Pairs, bits, load, load_pairs, store_pairs, store_rounded};

/// Rows that are asked for before their turn.
const AHEAD: usize = 8;

/// Ask for a row of a later turn: rows of one head lie too far apart for the CPU to guess.
#[inline(always)]
fn prefetch(matrix: Columns<'_>, row: usize) {
    if row < matrix.rows() {
        for line in matrix.row(row).chunks(16) {
            // SAFETY: a hint; it reads nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
        }
    }
}

/// Some rows as they are, as pairs of columns.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) fn pack_rows(query: Columns<'_>, rows: Range<usize>, to: &mut [u32]) {
    let pairs = query.count().next_multiple_of(16) / 2;
    for (row, to) in rows.zip(to.chunks_exact_mut(pairs)) {
        prefetch(query, row + AHEAD);
        for (values, to) in query.row(row).chunks(16).zip(to.as_chunks_mut::<8>().0) {
            store_rounded(to, load(values));
        }
    }
}

/// Keys as columns: vector `g * column_pairs + c` holds columns 2 c and 2 c + 1 of frames 16 g on.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) fn pack_keys(key: Columns<'_>, padded: usize, to: &mut Vec<Pairs>) {
    let column_pairs = key.count().next_multiple_of(16) / 2;
    to.clear();
    to.resize(padded / 16 * column_pairs, [0; 16]);
    let mut row = [0; 8];
    for frame in 0..key.rows() {
        prefetch(key, frame + AHEAD);
        let group = &mut to[frame / 16 * column_pairs..][..column_pairs];
        let (columns, _) = group.as_chunks_mut::<8>();
        for (values, columns) in key.row(frame).chunks(16).zip(columns) {
            store_rounded(&mut row, load(values));
            for i in 0..8 {
                columns[i][frame % 16] = row[i];
            }
        }
    }
}

/// Values as columns: vector `g * pairs + p` holds columns 16 g on of frames 2 p and 2 p + 1.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) fn pack_values(value: Columns<'_>, pairs: usize, to: &mut Vec<Pairs>) {
    to.clear();
    to.resize(value.count().div_ceil(16) * pairs, [0; 16]);
    for frame in 0..value.rows() {
        prefetch(value, frame + AHEAD);
        for (group, values) in value.row(frame).chunks(16).enumerate() {
            let to = &mut to[group * pairs + frame / 2];
            let mut both = _mm512_cvtepu16_epi32(bits(load(values)));
            if frame % 2 == 1 {
                both = _mm512_or_si512(load_pairs(to), _mm512_slli_epi32::<16>(both));
            }
            store_pairs(to, both);
        }
    }
}
