//! Every backend that this CPU can run against scalar, by name.
#![allow(
    clippy::print_stderr,
    reason = "a test that skips a backend must say so"
)]

use std::io::Write as _;

use proptest::prelude::*;
use rust_fe::config::{FbankConfig, Window};
use rust_fe::fbank::Fbank;
use rust_fe::simd::Backend;

/// Log mel energies lie between -16 and 89, where single precision rounds by up to 4e-6.
const LOG_MEL_TOLERANCE: f32 = 8e-6;

/// Statistics of rows: sums of 25,000 exponentials with a relative error of 1e-7 each, and the
/// rounding of results up to 10.
const ROW_TOLERANCE: f32 = 2e-6;

/// The SIMD backends, with a line that tells which ones ran.
fn backends() -> Vec<Backend> {
    let names: Vec<_> = Backend::available()
        .iter()
        .map(|backend| backend.name())
        .collect();
    // Straight to stderr: the test runner hides what eprintln! writes, and a skip is news.
    let _ = writeln!(
        std::io::stderr(),
        "backends this CPU can run: {}",
        names.join(", ")
    );
    Backend::available()
        .into_iter()
        .filter(|&backend| backend != Backend::SCALAR)
        .collect()
}

fn config(frame_len: usize, frame_shift: usize) -> FbankConfig {
    FbankConfig {
        sample_rate_hz: 1000,
        frame_length_ms: frame_len as f64,
        frame_shift_ms: frame_shift as f64,
        window: Window::Hamming,
        num_mel_bins: 1,
        low_freq_hz: 0.0,
        high_freq_hz: 0.0,
        preemphasis: 0.97,
        sample_scale: 32_768.0,
    }
}

fn sensevoice() -> FbankConfig {
    FbankConfig {
        sample_rate_hz: 16_000,
        frame_length_ms: 25.0,
        frame_shift_ms: 10.0,
        num_mel_bins: 80,
        low_freq_hz: 20.0,
        ..config(25, 10)
    }
}

/// Repeatable values, evenly spread over +-scale.
fn noise(len: usize, scale: f32, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / 8_388_608.0 - 1.0) * scale
    };
    (0..len).map(|_| next()).collect()
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}

fn same_log_mel(config: FbankConfig, samples: &[f32]) {
    let scalar = Fbank::new(config, Backend::SCALAR)
        .unwrap()
        .compute(samples)
        .unwrap();
    for backend in Backend::available() {
        let ours = Fbank::new(config, backend)
            .unwrap()
            .compute(samples)
            .unwrap();
        let difference = largest_difference(&scalar, &ours);
        assert!(
            difference <= LOG_MEL_TOLERANCE,
            "{}: off by {difference} for {config:?}, {} samples",
            backend.name(),
            samples.len()
        );
    }
}

fn same_row(row: &[f32]) {
    let scalar = Backend::SCALAR.row_stats(row);
    for backend in Backend::available() {
        let ours = backend.row_stats(row);
        let (name, len) = (backend.name(), row.len());
        let (Some(scalar), Some(ours)) = (scalar, ours) else {
            assert_eq!(scalar, ours, "{name}, {len} scores");
            continue;
        };
        assert_eq!(scalar.argmax, ours.argmax, "{name}, {len} scores");
        assert!(
            ours.log_prob <= 0.0 && ours.entropy >= 0.0,
            "{name}, {len} scores: {ours:?}"
        );
        let close = (scalar.log_prob - ours.log_prob).abs() <= ROW_TOLERANCE
            && (scalar.entropy - ours.entropy).abs() <= ROW_TOLERANCE;
        assert!(
            close,
            "{name}, {len} scores: expected {scalar:?}, got {ours:?}"
        );
    }
}

#[test]
fn every_backend_but_scalar_needs_its_cpu() {
    for backend in backends() {
        assert_eq!(Ok(backend), Backend::by_name(backend.name()));
    }
    assert_eq!(Backend::SCALAR, *Backend::available().last().unwrap());
    assert!(
        Backend::by_name("mmx")
            .unwrap_err()
            .to_string()
            .contains("\"mmx\"")
    );
}

#[test]
fn every_frame_length_and_alignment_gives_what_scalar_gives() {
    let samples = noise(1000, 1.0, 1);
    for frame_len in (3..=67).chain([127, 128, 129, 255, 257, 399, 400, 401, 416, 417, 511, 512]) {
        for offset in 0..8 {
            same_log_mel(config(frame_len, 10), &samples[offset..]);
        }
    }
}

#[test]
fn every_number_of_frames_gives_what_scalar_gives() {
    let samples = noise(400 + 67 * 160, 1.0, 2);
    same_log_mel(sensevoice(), &samples[..399]);
    for frames in 0..=67 {
        same_log_mel(sensevoice(), &samples[..400 + frames * 160]);
    }
}

#[test]
fn every_transform_length_gives_what_scalar_gives() {
    let samples = noise(70_000, 1.0, 3);
    for log in 2..=16 {
        same_log_mel(config(1 << log, 1 << (log - 1)), &samples);
    }
}

#[test]
fn loud_and_quiet_and_constant_input_gives_what_scalar_gives() {
    for scale in [1e-12, 1e-6, 1e-3, 1.0, 1e6] {
        same_log_mel(sensevoice(), &noise(2000, scale, 4));
    }
    for backend in Backend::available() {
        let fbank = Fbank::new(sensevoice(), backend).unwrap();
        let floor = (-23.0 * std::f64::consts::LN_2) as f32;
        for constant in [0.0, 1.0, 0.1, -0.7, 1e-20, 123.456] {
            let out = fbank.compute(&[constant; 1600]).unwrap();
            assert!(
                out.iter().all(|&v| v == floor),
                "{}: constant {constant}",
                backend.name()
            );
        }
        let huge = noise(800, f32::MAX, 5);
        assert!(fbank.compute(&huge).unwrap().iter().all(|v| v.is_finite()));
    }
}

#[test]
fn every_row_length_and_alignment_gives_what_scalar_gives() {
    let scores = noise(8300, 12.0, 6);
    for len in (0..=67).chain([1023, 1024, 1025, 1056, 2048, 2049, 8192]) {
        for offset in 0..16 {
            same_row(&scores[offset..offset + len]);
        }
    }
}

#[test]
fn rows_that_rise_or_fall_or_stay_equal_give_what_scalar_gives() {
    let rising: Vec<f32> = (0..5000).map(|i| i as f32 * 0.01).collect();
    same_row(&rising);
    same_row(&rising.iter().rev().copied().collect::<Vec<_>>());
    same_row(&vec![-3.0; 5000]);
    same_row(&[f32::MAX, f32::MIN, 0.0]);
    same_row(&[f32::MIN, f32::MIN]);
    same_row(&[-0.0, 0.0]);
    same_row(&[1e-40, 0.0]);
}

#[test]
fn one_bad_score_anywhere_is_found() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for len in [1, 15, 16, 33, 67, 1025, 3000] {
            for at in [0, len / 2, len - 1] {
                let mut row = noise(len, 5.0, 7);
                row[at] = bad;
                for backend in Backend::available() {
                    assert_eq!(
                        None,
                        backend.row_stats(&row),
                        "{} {bad} {at}",
                        backend.name()
                    );
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_samples_give_what_scalar_gives(
        samples in prop::collection::vec(-1.0f32..1.0, 400..3000),
    ) {
        same_log_mel(sensevoice(), &samples);
    }

    #[test]
    fn any_scores_give_what_scalar_gives(
        row in prop::collection::vec(-40.0f32..40.0, 0..3000),
    ) {
        same_row(&row);
    }

    #[test]
    fn scores_of_any_size_give_what_scalar_gives(
        row in prop::collection::vec(prop::num::f32::ANY, 0..70),
    ) {
        same_row(&row);
    }
}
