//! Laws of framing, filters, LFR, CMVN and decoding, and every error.

use proptest::prelude::*;
use rust_fe::config::{FbankConfig, Window};
use rust_fe::ctc::{Decoded, greedy};
use rust_fe::error::Error;
use rust_fe::fbank::Fbank;
use rust_fe::simd::Backend;
use rust_fe::{cmvn, frame, lfr, mel};

const RECIPE: FbankConfig = FbankConfig {
    sample_rate_hz: 16_000,
    frame_length_ms: 25.0,
    frame_shift_ms: 10.0,
    window: Window::Hamming,
    num_mel_bins: 80,
    low_freq_hz: 20.0,
    high_freq_hz: 0.0,
    preemphasis: 0.97,
    sample_scale: 32_768.0,
};

#[test]
fn frames_are_counted_as_kaldi_counts_them() {
    let recipe = RECIPE.check().unwrap();
    let cases = [
        (0, 0),
        (1, 0),
        (399, 0),
        (400, 1),
        (559, 1),
        (560, 2),
        (561, 2),
        (720, 3),
        (16_000, 98),
    ];
    for (samples, frames) in cases {
        assert_eq!(
            frames,
            frame::num_frames(samples, &recipe),
            "{samples} samples"
        );
    }
}

#[test]
fn the_window_is_symmetric_and_ends_at_eight_hundredths() {
    let w = frame::window(Window::Hamming, 400, 1.0);
    assert!((w[0] - 0.08).abs() < 1e-15 && (w[399] - 0.08).abs() < 1e-15);
    assert!((0..200).all(|i| (w[i] - w[399 - i]).abs() < 1e-12));
}

#[test]
fn between_two_centres_neighbouring_filters_add_up_to_one() {
    let bins = mel::mel_bins(&RECIPE.check().unwrap()).unwrap();
    let mut total = [0.0; 256];
    for bin in &bins {
        for (i, w) in bin.weights.iter().enumerate() {
            assert!(*w > 0.0 && *w <= 1.0);
            total[bin.first + i] += w;
        }
    }
    assert_eq!(0.0, total[0]);
    assert!(total[3..245].iter().all(|t| (t - 1.0).abs() < 1e-12));
}

#[test]
fn a_tone_is_loudest_in_the_filter_around_it() {
    let tone: Vec<f32> = (0..400)
        .map(|i| (std::f32::consts::TAU * 1000.0 * i as f32 / 16_000.0).sin())
        .collect();
    let out = Fbank::new(RECIPE, Backend::best())
        .unwrap()
        .compute(&tone)
        .unwrap();
    let loudest = (0..80).max_by(|&a, &b| out[a].total_cmp(&out[b])).unwrap();
    let bins = mel::mel_bins(&RECIPE.check().unwrap()).unwrap();
    assert!((bins[loudest].first..bins[loudest].first + bins[loudest].weights.len()).contains(&32));
}

#[test]
fn each_recipe_field_that_cannot_be_used_is_named() {
    let cases = [
        (
            "sample_rate_hz",
            FbankConfig {
                sample_rate_hz: 0,
                ..RECIPE
            },
        ),
        (
            "frame_length_ms",
            FbankConfig {
                frame_length_ms: f64::NAN,
                ..RECIPE
            },
        ),
        (
            "frame_shift_ms",
            FbankConfig {
                frame_shift_ms: 0.0,
                ..RECIPE
            },
        ),
        (
            "num_mel_bins",
            FbankConfig {
                num_mel_bins: 0,
                ..RECIPE
            },
        ),
        (
            "num_mel_bins",
            FbankConfig {
                num_mel_bins: 200,
                ..RECIPE
            },
        ),
        (
            "low_freq_hz",
            FbankConfig {
                low_freq_hz: 8000.0,
                ..RECIPE
            },
        ),
        (
            "high_freq_hz",
            FbankConfig {
                high_freq_hz: 8001.0,
                ..RECIPE
            },
        ),
        (
            "high_freq_hz",
            FbankConfig {
                high_freq_hz: 20.0,
                ..RECIPE
            },
        ),
        (
            "preemphasis",
            FbankConfig {
                preemphasis: 1.5,
                ..RECIPE
            },
        ),
        (
            "sample_scale",
            FbankConfig {
                sample_scale: 0.0,
                ..RECIPE
            },
        ),
    ];
    for (name, config) in cases {
        match Fbank::new(config, Backend::SCALAR) {
            Err(Error::Config { field, .. }) => assert_eq!(name, field),
            other => panic!("expected {name} to be refused, got {other:?}"),
        }
    }
    assert!(
        Window::from_name("hann")
            .unwrap_err()
            .to_string()
            .contains("\"hann\"")
    );
}

#[test]
fn a_bad_sample_is_named_by_its_index() {
    for backend in Backend::available() {
        for index in [0, 399, 400, 1000, 1359] {
            let mut samples = vec![0.0; 1360];
            samples[index] = f32::INFINITY;
            let got = Fbank::new(RECIPE, backend).unwrap().compute(&samples);
            assert_eq!(
                Err(Error::NonFiniteSample {
                    index,
                    value: f32::INFINITY
                }),
                got
            );
        }
    }
}

#[test]
fn lfr_repeats_the_first_and_the_last_frame() {
    let frames: Vec<f32> = (0..8).map(|t| t as f32).collect();
    let expected = [0., 0., 0., 0., 1., 2., 3., 3., 4., 5., 6., 7., 7., 7.];
    assert_eq!(expected.to_vec(), lfr::lfr(&frames, 1, 7, 6));
    assert_eq!(Vec::<f32>::new(), lfr::lfr(&[], 80, 7, 6));
    assert_eq!(vec![5.0; 7], lfr::lfr(&[5.0], 1, 7, 6));
    assert_eq!(frames, lfr::lfr(&frames, 1, 1, 1));
}

#[test]
fn cmvn_shifts_then_scales() {
    let mut features = [1., 2., 3., 4.];
    cmvn::cmvn(&mut features, &[1., -2.], &[10., 1.]);
    assert_eq!([20.0, 0.0, 40.0, 2.0], features);
}

#[test]
fn scores_that_do_not_fit_together_are_refused() {
    let wrong = [
        (greedy(&[0.0; 4], 0, 0, 0, Backend::SCALAR), "columns"),
        (greedy(&[0.0; 5], 2, 0, 0, Backend::SCALAR), "whole rows"),
        (greedy(&[0.0; 4], 2, 2, 0, Backend::SCALAR), "blank_id"),
        (greedy(&[0.0; 4], 2, -1, 0, Backend::SCALAR), "blank_id"),
        (greedy(&[0.0; 4], 2, 0, 3, Backend::SCALAR), "prompt rows"),
    ];
    for (got, word) in wrong {
        let message = got.unwrap_err().to_string();
        assert!(message.contains(word), "{message}");
    }
    assert_eq!(
        Ok(Decoded::default()),
        greedy(&[], 2, 0, 0, Backend::SCALAR)
    );
}

#[test]
fn a_bad_score_is_named_by_row_and_column() {
    for backend in Backend::available() {
        let mut scores = vec![0.0; 3 * 40];
        scores[2 * 40 + 7] = f32::NEG_INFINITY;
        let got = greedy(&scores, 40, 0, 0, backend);
        let value = f32::NEG_INFINITY;
        assert_eq!(
            Err(Error::NonFiniteScore {
                row: 2,
                column: 7,
                value
            }),
            got
        );
    }
}

/// Collapse, then drop blanks, in the plainest words: (id, start, end).
fn naive(argmax: &[i32], blank: i32) -> Vec<(i32, i32, i32)> {
    let mut runs: Vec<(i32, i32, i32)> = Vec::new();
    for (t, &id) in argmax.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if run.0 == id => run.2 += 1,
            _ => runs.push((id, t as i32, t as i32 + 1)),
        }
    }
    runs.retain(|run| run.0 != blank);
    runs
}

proptest! {
    #[test]
    fn decoding_equals_the_naive_version(
        ids in prop::collection::vec(0..4i32, 0..40),
        peaks in prop::collection::vec(1.0f32..9.0, 40),
        prompts in 0..5usize,
    ) {
        let prompts = prompts.min(ids.len());
        let mut scores = vec![0.0; ids.len() * 4];
        for (t, &id) in ids.iter().enumerate() {
            scores[t * 4 + id as usize] = peaks[t];
        }
        for backend in Backend::available() {
            let got = greedy(&scores, 4, 2, prompts, backend).unwrap();
            prop_assert_eq!(&ids, &got.argmax);
            let expected = naive(&ids[prompts..], 2);
            let tokens: Vec<_> = (0..got.token_ids.len())
                .map(|k| (got.token_ids[k], got.start_frame[k], got.end_frame[k]))
                .collect();
            prop_assert_eq!(&expected, &tokens);
            for (k, &(_, start, end)) in expected.iter().enumerate() {
                let rows = prompts + start as usize..prompts + end as usize;
                let best = rows.clone().rev().max_by(|&a, &b| got.log_prob[a].total_cmp(&got.log_prob[b]));
                prop_assert_eq!(got.log_prob[best.unwrap()], got.log_probs[k]);
                prop_assert_eq!(got.entropy[best.unwrap()], got.entropies[k]);
            }
        }
    }

    #[test]
    fn work_split_at_a_frame_gives_the_whole(
        samples in prop::collection::vec(-1.0f32..1.0, 2000..4000),
        hops in 1..8usize,
    ) {
        let fbank = Fbank::new(RECIPE, Backend::best()).unwrap();
        let whole = fbank.compute(&samples).unwrap();
        let tail = fbank.compute(&samples[hops * 160..]).unwrap();
        prop_assert_eq!(&whole[hops * 80..], &tail[..]);
    }
}
