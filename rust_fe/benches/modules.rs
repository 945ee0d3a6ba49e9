//! One group per module; throughput in samples, features or scores.
#![allow(
    missing_docs,
    reason = "criterion's macros make undocumented functions"
)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rust_fe::config::{FbankConfig, Window};
use rust_fe::fbank::Fbank;
use rust_fe::simd::Backend;
use rust_fe::{cmvn, ctc, lfr};

/// The recipe of SenseVoice.
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

/// Repeatable values, evenly spread over +-scale.
fn noise(len: usize, scale: f32) -> Vec<f32> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / 8_388_608.0 - 1.0) * scale
    };
    (0..len).map(|_| next()).collect()
}

fn fbank(c: &mut Criterion) {
    let mut group = c.benchmark_group("fbank");
    group.bench_function("new", |b| {
        b.iter(|| Fbank::new(black_box(RECIPE), Backend::best()))
    });
    for samples in [89_600, 480_000] {
        let audio = noise(samples, 0.5);
        group.throughput(Throughput::Elements(samples as u64));
        for backend in Backend::available() {
            let fbank = Fbank::new(RECIPE, backend).expect("the recipe is right");
            group.bench_with_input(
                BenchmarkId::new(backend.name(), samples),
                &audio,
                |b, audio| {
                    b.iter(|| fbank.compute(black_box(audio)));
                },
            );
        }
    }
    // What the transform alone costs in the crate that is the reference for ours.
    let fft = realfft::RealFftPlanner::<f64>::new().plan_fft_forward(512);
    let (mut input, mut output) = (fft.make_input_vec(), fft.make_output_vec());
    let mut scratch = fft.make_scratch_vec();
    group.throughput(Throughput::Elements(89_600));
    group.bench_function("realfft only/89600", |b| {
        b.iter(|| {
            for _ in 0..558 {
                let _ = fft.process_with_scratch(&mut input, &mut output, &mut scratch);
                black_box(&mut output);
            }
        });
    });
    group.finish();
}

fn rows(c: &mut Criterion) {
    let features = noise(558 * 80, 10.0);
    let (neg_mean, inv_stddev) = (noise(80, 10.0), noise(80, 1.0));
    let mut group = c.benchmark_group("lfr");
    group.throughput(Throughput::Elements(features.len() as u64));
    group.bench_function("7/6", |b| {
        b.iter(|| lfr::lfr(black_box(&features), 80, 7, 6))
    });
    group.finish();
    let mut group = c.benchmark_group("cmvn");
    group.throughput(Throughput::Elements(features.len() as u64));
    group.bench_function("80", |b| {
        let mut features = features.clone();
        b.iter(|| cmvn::cmvn(black_box(&mut features), &neg_mean, &inv_stddev));
    });
    group.finish();
}

fn decode(c: &mut Criterion) {
    const VOCAB: usize = 25_055;
    let scores = noise(97 * VOCAB, 15.0);
    let mut group = c.benchmark_group("ctc");
    group.throughput(Throughput::Elements(scores.len() as u64));
    group.bench_function("sum of the matrix", |b| {
        b.iter(|| {
            let mut parts = [0.0f32; 64];
            for chunk in black_box(&scores).as_chunks::<64>().0 {
                for (part, score) in parts.iter_mut().zip(chunk) {
                    *part += score;
                }
            }
            parts
        });
    });
    for backend in Backend::available() {
        group.bench_function(backend.name(), |b| {
            b.iter(|| ctc::greedy(black_box(&scores), VOCAB, 0, 4, backend));
        });
    }
    group.finish();
}

criterion_group!(benches, fbank, rows, decode);
criterion_main!(benches);
