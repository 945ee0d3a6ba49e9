//! Products of bytes against sums of 64-bit integers, for any shape.
#![allow(
    unsafe_code,
    clippy::print_stderr,
    reason = "the caller's half of the contract, and a skip must be told"
)]

use std::io::Write as _;

use proptest::prelude::*;
use rust_fe::simd::{ByteMatrix, ByteProduct, ByteRows, ColumnsMut};

const PANEL: usize = 32;

/// As `DynamicQuantizeLinear`: bytes, scale and zero.
fn quantise(values: &[f32]) -> (Vec<i64>, f32, i64) {
    let least = values.iter().copied().fold(0.0, f32::min);
    let most = values.iter().copied().fold(0.0, f32::max);
    let scale = if most == least {
        1.0
    } else {
        (most - least) / 255.0
    };
    let zero = (0.0 - least / scale).clamp(0.0, 255.0).round_ties_even();
    let bytes = values
        .iter()
        .map(|value| ((value / scale).round_ties_even() + zero).clamp(0.0, 255.0) as i64)
        .collect();
    (bytes, scale, zero as i64)
}

/// (depth, columns) to panels: four values of a column side by side.
fn panels(weights: &[i8], depth: usize, columns: usize) -> Vec<i8> {
    let (steps, width) = (depth.div_ceil(4), columns.div_ceil(PANEL));
    let mut packed = vec![0; width * steps * 4 * PANEL];
    for row in 0..depth {
        for column in 0..columns {
            let panel = column / PANEL * steps + row / 4;
            packed[(panel * PANEL + column % PANEL) * 4 + row % 4] =
                weights[row * columns + column];
        }
    }
    packed
}

proptest! {
    #[test]
    fn every_sum_is_exact(
        (count, depth, columns) in (1usize..30, 1usize..150, 1usize..100),
        seed in any::<u64>(),
        has_zeros in any::<bool>(),
        relu in any::<bool>(),
    ) {
        let Some(product) = ByteProduct::new() else {
            // Straight to stderr: the test runner hides what eprintln! writes.
            let _ = writeln!(std::io::stderr(), "this CPU has no product of bytes");
            return Ok(());
        };
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as i32
        };
        let weights: Vec<i8> = (0..depth * columns).map(|_| next() as i8).collect();
        let values: Vec<f32> = (0..count * depth).map(|_| (next() % 2000 - 700) as f32 / 128.0).collect();
        let width = columns.next_multiple_of(PANEL);
        let scales: Vec<f32> = (0..width).map(|_| (next() % 100 + 1) as f32 / 256.0).collect();
        let bias: Vec<f32> = (0..width).map(|_| (next() % 100 - 50) as f32).collect();
        let zeros: Vec<i32> = (0..if has_zeros { width } else { 0 }).map(|_| next() % 128).collect();
        let mut sums = vec![0; width];
        for (at, &weight) in weights.iter().enumerate() {
            sums[at % columns] += i32::from(weight);
        }
        let packed = panels(&weights, depth, columns);
        let matrix = ByteMatrix::new(&packed, [depth, columns], &scales, &sums, &zeros, &bias);
        let matrix = matrix.expect("constants that fit");
        let mut rows = ByteRows::default();
        // What an earlier, larger call left must not count.
        product.quantise(&vec![9.0; 40 * 200], 200, &mut rows);
        product.quantise(&values, depth, &mut rows);
        let mut out = vec![f32::NAN; count * columns];
        for first in (0..matrix.panels()).step_by(2) {
            let group = first..matrix.panels().min(first + 2);
            let at = matrix.columns_of(group.clone());
            // SAFETY: the matrix is as large as that, and nobody else has it.
            let mut to = unsafe { ColumnsMut::new(out.as_mut_ptr(), count, columns, at.start, at.len()) };
            product.panels(&rows, &matrix, group, relu, &mut to);
        }
        let (bytes, scale, zero) = quantise(&values);
        for row in 0..count {
            for column in 0..columns {
                let weight_zero = zeros.get(column).copied().map_or(0, i64::from);
                let sum: i64 = (0..depth)
                    .map(|at| {
                        let weight = i64::from(weights[at * columns + column]);
                        (bytes[row * depth + at] - zero) * (weight - weight_zero)
                    })
                    .sum();
                let mut right = sum as f32 * (scale * scales[column]) + bias[column];
                if relu {
                    right = right.max(0.0);
                }
                prop_assert_eq!(out[row * columns + column], right, "row {}, column {}", row, column);
            }
        }
    }
}
