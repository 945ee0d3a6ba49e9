//! What fuzzing calls: bytes become arguments, results must obey the laws of their functions.

use rust_fe::config::{FbankConfig, Window};
use rust_fe::ctc::{self, Decoded};
use rust_fe::fbank::Fbank;
use rust_fe::phrases::{Mode, Phrases};
use rust_fe::simd::Backend;
use rust_fe::{cmvn, lfr};

/// Takes any bytes; panics when a law is broken.
pub(crate) type Target = fn(&[u8]);

/// All of them, by name.
pub(crate) const TARGETS: [(&str, Target); 5] = [
    ("fbank", fbank),
    ("lfr", lfr),
    ("cmvn", cmvn),
    ("greedy", greedy),
    ("phrases", phrases),
];

/// Bytes that are taken from the front; zeros follow the last.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_at(N.min(self.0.len()));
        self.0 = rest;
        let mut out = [0; N];
        out[..taken.len()].copy_from_slice(taken);
        out
    }

    /// A number from 0 to `most`.
    fn up_to(&mut self, most: usize) -> usize {
        u16::from_le_bytes(self.next()) as usize % (most + 1)
    }

    /// A sensible number, or any bits at all.
    fn f64(&mut self, sensible: &[f64]) -> f64 {
        let [choice] = self.next();
        match sensible.get(usize::from(choice) % (sensible.len() + 1)) {
            Some(value) => *value,
            None => f64::from_bits(u64::from_le_bytes(self.next())),
        }
    }

    /// Values between -1 and 1, or any bits at all.
    fn f32s(&mut self, count: usize) -> Vec<f32> {
        let [choice] = self.next();
        let mut value = || match choice % 3 {
            0 => f32::from_bits(u32::from_le_bytes(self.next())),
            1 => f32::from(i16::from_le_bytes(self.next())) / 32_768.0,
            _ => f32::from(i8::from_le_bytes(self.next())) / 8.0,
        };
        (0..count).map(|_| value()).collect()
    }

    fn usize(&mut self, most: usize) -> usize {
        match self.next() {
            [0] => usize::from_le_bytes(self.next()),
            _ => self.up_to(most),
        }
    }
}

fn one_line(error: &rust_fe::error::Error) {
    assert!(!error.to_string().contains('\n'), "{error}");
}

/// Any recipe, any samples: a refusal, or as many finite values as frames times filters.
fn fbank(data: &[u8]) {
    let mut bytes = Bytes(data);
    let config = FbankConfig {
        sample_rate_hz: match bytes.next() {
            [0] => u32::from_le_bytes(bytes.next()),
            [1] => 48_000,
            [other] => u32::from(other) * 100,
        },
        frame_length_ms: bytes.f64(&[25.0, 20.0, 1.0, 0.0, 3.0, 1000.0]),
        frame_shift_ms: bytes.f64(&[10.0, 1.0, 30.0, 0.0, 0.1]),
        window: Window::Hamming,
        num_mel_bins: bytes.usize(200),
        low_freq_hz: bytes.f64(&[20.0, 0.0, 0.0, 1000.0]),
        high_freq_hz: bytes.f64(&[0.0, 4000.0, -400.0, 8000.0]),
        preemphasis: bytes.f64(&[0.97, 0.0, 1.0]),
        sample_scale: bytes.f64(&[32_768.0, 1.0]),
    };
    let recipe = config.check();
    let count = bytes.up_to(2048);
    let samples = bytes.f32s(count);
    let mut first = None;
    for backend in Backend::available() {
        let front_end = match Fbank::new(config, backend) {
            Ok(front_end) => front_end,
            Err(error) => return one_line(&error),
        };
        let recipe = recipe
            .as_ref()
            .expect("what a front end accepts is a recipe");
        let frames = front_end.num_frames(samples.len());
        assert_eq!(
            frames,
            (0..samples.len())
                .step_by(recipe.frame_shift)
                .take_while(|start| start + recipe.frame_len <= samples.len())
                .count()
        );
        let found = front_end.compute(&samples);
        match &found {
            Ok(values) => {
                assert_eq!(frames * config.num_mel_bins, values.len());
                assert!(values.iter().all(|v| v.is_finite()), "{config:?}");
            }
            Err(error) => {
                one_line(error);
                assert!(
                    samples.iter().any(|v| !v.is_finite()),
                    "{config:?}: {error}"
                );
            }
        }
        let refused = found.is_err();
        assert_eq!(*first.get_or_insert(refused), refused);
    }
}

/// Every row is what the formula says.
fn lfr(data: &[u8]) {
    let mut bytes = Bytes(data);
    let (dim, frames) = (1 + bytes.up_to(8), bytes.up_to(40));
    let (m, n) = (1 + bytes.up_to(40), 1 + bytes.usize(40).min(usize::MAX - 1));
    let features = bytes.f32s(frames * dim);
    let out = lfr::lfr(&features, dim, m, n);
    assert_eq!(frames.div_ceil(n) * m * dim, out.len());
    for (r, row) in out.chunks_exact(m * dim).enumerate() {
        for (i, values) in row.chunks_exact(dim).enumerate() {
            let t = (r * n + i).saturating_sub((m - 1) / 2).min(frames - 1);
            let expected = &features[t * dim..(t + 1) * dim];
            assert!(
                expected
                    .iter()
                    .zip(values)
                    .all(|(a, b)| a.to_bits() == b.to_bits())
            );
        }
    }
}

/// Every cell is shifted and scaled, and nothing else.
fn cmvn(data: &[u8]) {
    let mut bytes = Bytes(data);
    let (dim, frames) = (1 + bytes.up_to(70), bytes.up_to(10));
    let (shift, scale) = (bytes.f32s(dim), bytes.f32s(dim));
    let features = bytes.f32s(frames * dim);
    let mut out = features.clone();
    cmvn::cmvn(&mut out, &shift, &scale);
    for (i, (x, y)) in features.iter().zip(&out).enumerate() {
        let expected = (x + shift[i % dim]) * scale[i % dim];
        assert!(expected.to_bits() == y.to_bits() || expected.is_nan() && y.is_nan());
    }
}

/// Any scores: a refusal, or statistics and tokens that follow from the arg-max.
fn greedy(data: &[u8]) {
    let mut bytes = Bytes(data);
    let vocab = bytes.usize(70);
    let rows = bytes.up_to(12);
    let blank_id = bytes.usize(70) as i64;
    let prompt_frames = bytes.usize(12);
    let count = match vocab {
        0..=70 => rows * vocab + usize::from(bytes.next() == [1]),
        _ => rows,
    };
    let scores = bytes.f32s(count);
    let mut first: Option<Decoded> = None;
    for backend in Backend::available() {
        let found = match ctc::greedy(&scores, vocab, blank_id, prompt_frames, backend) {
            Ok(found) => found,
            Err(error) => {
                assert!(first.is_none());
                return one_line(&error);
            }
        };
        check(&found, &scores, vocab);
        let runs = found.argmax[prompt_frames..].chunk_by(|a, b| a == b);
        let tokens = runs.filter(|run| i64::from(run[0]) != blank_id);
        assert!(tokens.map(|run| run[0]).eq(found.token_ids.iter().copied()));
        let other = first.get_or_insert_with(|| found.clone());
        assert_eq!(other.argmax, found.argmax);
        assert_eq!(other.end_frame, found.end_frame);
    }
}

/// What holds for every [`Decoded`].
fn check(found: &Decoded, scores: &[f32], vocab: usize) {
    let most = (vocab as f32).ln() + 1e-3;
    for (t, row) in scores.chunks_exact(vocab).enumerate() {
        let best = found.argmax[t] as usize;
        assert!(row.iter().all(|v| *v <= row[best]));
        assert!(row[..best].iter().all(|v| *v < row[best]));
        assert!(found.log_prob[t] <= 0.0 && found.log_prob[t] >= -most);
        assert!(
            (0.0..=most).contains(&found.entropy[t]),
            "{}",
            found.entropy[t]
        );
    }
    let count = found.token_ids.len();
    assert_eq!(
        [count; 4],
        [
            found.start_frame.len(),
            found.end_frame.len(),
            found.log_probs.len(),
            found.entropies.len(),
        ]
    );
    let mut end = 0;
    for k in 0..count {
        assert!(found.start_frame[k] >= end && found.start_frame[k] < found.end_frame[k]);
        assert!(found.log_probs[k] <= 0.0);
        end = found.end_frame[k];
    }
    assert!(end as usize <= found.argmax.len());
}

/// Any list and any scores: a refusal, or phrases of the list in order.
fn phrases(data: &[u8]) {
    let mut bytes = Bytes(data);
    let vocab = bytes.up_to(12);
    let mut text = |most| -> Vec<u8> {
        let length = bytes.up_to(most);
        (0..length)
            .map(|_| b'a' + bytes.next::<1>()[0] % 3)
            .collect()
    };
    let pieces: Vec<_> = (0..vocab).map(|_| text(3)).collect();
    let count = text(8).len();
    let texts: Vec<_> = (0..count)
        .map(|_| (0..text(2).len()).map(|_| text(9)).collect::<Vec<_>>())
        .collect();
    let blank_id = bytes.usize(12) as i64;
    let groups: Vec<_> = (0..count).map(|_| bytes.usize(8)).collect();
    let list = match Phrases::new(&pieces, blank_id, &texts, &groups) {
        Ok(list) => list,
        Err(error) => return one_line(&error),
    };
    assert_eq!(count, list.spelled().len());
    let rows = bytes.up_to(16);
    let prompt_frames = bytes.usize(4);
    let scores = bytes.f32s(rows * vocab);
    for mode in [Mode::One, Mode::Many] {
        let found = match list.decode(&scores, vocab, prompt_frames, mode, Backend::best()) {
            Ok(found) => found,
            Err(error) => return one_line(&error),
        };
        check(&found.decoded, &scores, vocab);
        let (mut end, mut tokens) = (0, 0);
        for hit in &found.hits {
            assert!(list.spelled()[hit.phrase]);
            assert!(hit.first_frame >= end && hit.first_frame < hit.end_frame);
            assert!((0.0..=1.0 + 1e-9).contains(&hit.posterior), "{hit:?}");
            assert!(hit.log_prob <= 1e-3 && hit.margin >= 0.0, "{hit:?}");
            assert!(hit.num_tokens > 0 && hit.speech_frames > 0, "{hit:?}");
            assert!(hit.runner_up.is_some() == hit.margin.is_finite(), "{hit:?}");
            (end, tokens) = (hit.end_frame, tokens + hit.num_tokens);
        }
        assert!(end <= rows.saturating_sub(prompt_frames));
        assert_eq!(tokens, found.decoded.token_ids.len());
    }
}
