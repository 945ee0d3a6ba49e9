//! `instructions STAGE BACKEND TIMES`: run one stage so often on a fixed input.
//!
//! The difference between TIMES 2 and TIMES 1 is one call, without start and preparation.
//! Exit code 3: this CPU, or what stands in for it, does not have the backend.

use std::hint::black_box;
use std::process::ExitCode;

use rust_fe::config::{FbankConfig, Window};
use rust_fe::cut::{Cutter, window_samples};
use rust_fe::energy::{Energy, Meaning};
use rust_fe::fbank::Fbank;
use rust_fe::phrases::{Mode, Phrases};
use rust_fe::simd::Backend;
use rust_fe::{cmvn, ctc, lfr};

/// The recipe of `SenseVoice`.
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

/// Samples in a second of what is cut.
const RATE: usize = 16_000;

/// Columns of scores: the vocabulary of `SenseVoice`, and a small one.
const VOCAB: usize = 25_055;
const PIECES: usize = 64;

/// Repeatable values, evenly spread over +-scale.
fn noise(len: usize, scale: f32) -> Vec<f32> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / 8_388_608.0 - 1.0) * scale
    };
    (0..len).map(|_| next()).collect()
}

/// 40 phrases of three pieces each.
fn phrases() -> Option<Phrases> {
    let mut pieces = vec![Vec::new()];
    pieces.extend((1..PIECES).map(|id| vec![b'0' + id as u8]));
    let text = |number: usize| (1..4).map(|n| b'1' + (number * n % 60) as u8).collect();
    let texts: Vec<Vec<Vec<u8>>> = (0..40).map(|number| vec![text(number)]).collect();
    let groups: Vec<usize> = (0..texts.len()).collect();
    Phrases::new(&pieces, 0, &texts, &groups).ok()
}

/// Make everything ready that is not the stage itself.
fn prepare(stage: &str, backend: Backend) -> Option<Box<dyn FnMut()>> {
    Some(match stage {
        "fbank" => {
            let (fbank, audio) = (Fbank::new(RECIPE, backend).ok()?, noise(16_000, 0.5));
            Box::new(move || drop(black_box(fbank.compute(black_box(&audio)))))
        }
        "lfr" => {
            let features = noise(100 * 80, 10.0);
            Box::new(move || drop(black_box(lfr::lfr(black_box(&features), 80, 7, 6))))
        }
        "cmvn" => {
            let mut features = noise(17 * 560, 10.0);
            let (neg_mean, inv_stddev) = (noise(560, 10.0), noise(560, 1.0));
            Box::new(move || cmvn::cmvn(black_box(&mut features), &neg_mean, &inv_stddev))
        }
        "ctc" => {
            let scores = noise(20 * VOCAB, 15.0);
            Box::new(move || drop(black_box(ctc::greedy(&scores, VOCAB, 0, 4, backend))))
        }
        "phrases" => {
            let (list, scores) = (phrases()?, noise(20 * PIECES, 15.0));
            Box::new(move || {
                drop(black_box(list.decode(
                    &scores,
                    PIECES,
                    4,
                    Mode::One,
                    backend,
                )));
            })
        }
        "energy" => {
            let (audio, window) = (noise(10 * RATE, 0.5), window_samples(RATE as u32));
            Box::new(move || {
                let (mut energy, mut scores) = (Energy::new(window, Meaning::Speech), Vec::new());
                energy.feed(black_box(&audio), &mut scores);
                energy.finish(&mut scores);
                drop(black_box(scores));
            })
        }
        "cut" => {
            let scores: Vec<f32> = noise(60 * RATE / window_samples(RATE as u32), 0.5)
                .iter()
                .map(|score| score + 0.5)
                .collect();
            Box::new(move || {
                let Ok(mut cutter) = Cutter::new(RATE as u32, 20.0) else {
                    return;
                };
                for &score in black_box(&scores) {
                    black_box(cutter.push(score));
                }
                black_box(cutter.finish(60 * RATE));
            })
        }
        _ => return None,
    })
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let [_, stage, backend, times] = &words[..] else {
        return ExitCode::from(2);
    };
    let Ok(times) = times.parse::<u32>() else {
        return ExitCode::from(2);
    };
    let backend = match backend.as_str() {
        "any" => Backend::best(),
        name => match Backend::by_name(name) {
            Ok(backend) => backend,
            Err(_) => return ExitCode::from(3),
        },
    };
    let Some(mut run) = prepare(stage, backend) else {
        return ExitCode::from(2);
    };
    for _ in 0..times {
        run();
    }
    ExitCode::SUCCESS
}
