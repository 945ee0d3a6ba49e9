//! Pieces of long sound: nothing that could be speech is lost, whatever the scores.

use proptest::prelude::*;
use rust_fe::cut::{Cutter, LEAD, PAUSE, Piece, RELEASE, TAIL, THRESHOLD};
use rust_fe::energy::{Energy, Meaning};

const RATE: u32 = 16_000;
const WINDOW: usize = 512;

fn cut(scores: &[f32], longest_s: f64, num_samples: usize) -> Vec<Piece> {
    let mut cutter = Cutter::new(RATE, longest_s).unwrap();
    let mut pieces: Vec<Piece> = Vec::new();
    for &score in scores {
        let needed = cutter.needed_from();
        let piece = cutter.push(score);
        if let Some(piece) = piece {
            assert!(piece.start >= needed, "samples given up that a piece needs");
            assert!(cutter.needed_from() >= piece.end);
        }
        pieces.extend(piece);
    }
    pieces.extend(cutter.finish(num_samples));
    pieces
}

/// Scores as they come: runs of speech and pauses of any length, with values in between.
fn scores() -> impl Strategy<Value = Vec<f32>> {
    let run = prop_oneof![
        (1usize..1200, 0.5f32..=1.0),
        (1usize..60, 0.0f32..0.5),
        (1usize..8, 0.0f32..=1.0),
    ];
    (prop::collection::vec(run, 0..12), any::<u64>()).prop_map(|(runs, seed)| {
        let mut state = seed | 1;
        let mut values = Vec::new();
        for (length, level) in runs {
            for _ in 0..length {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let wobble = ((state >> 40) as f32 / 16_777_216.0 - 0.5) * 0.2;
                values.push((level + wobble).clamp(0.0, 1.0));
            }
        }
        values
    })
}

proptest! {
    #[test]
    fn pieces_are_ordered_short_enough_and_hold_all_speech(
        scores in scores(), longest_s in 1.0f64..30.0, part in 1usize..=WINDOW,
    ) {
        let total = (scores.len() * WINDOW).saturating_sub(WINDOW - part);
        let pieces = cut(&scores, longest_s, total);
        for piece in &pieces {
            prop_assert!(piece.start < piece.end && piece.end <= total);
            prop_assert!((piece.end - piece.start) as f64 <= longest_s * f64::from(RATE));
        }
        for pair in pieces.windows(2) {
            prop_assert!(pair[0].end <= pair[1].start);
        }
        for (i, &score) in scores.iter().enumerate() {
            let sample = i * WINDOW;
            let inside = pieces.iter().any(|p| p.start <= sample && sample < p.end);
            prop_assert!(inside || score < THRESHOLD, "window {} of score {} is lost", i, score);
        }
    }

    #[test]
    fn pauses_lie_in_no_piece(
        bursts in prop::collection::vec((1usize..400, PAUSE..200), 1..8),
    ) {
        let mut scores = Vec::new();
        let mut expected = Vec::new();
        for &(speech, pause) in &bursts {
            let start = scores.len().saturating_sub(LEAD);
            scores.resize(scores.len() + speech, 0.9);
            expected.push(Piece {
                start: start * WINDOW,
                end: (scores.len() + TAIL) * WINDOW,
            });
            scores.resize(scores.len() + pause, 0.1);
        }
        prop_assert_eq!(cut(&scores, 20.0, scores.len() * WINDOW), expected);
    }

    #[test]
    fn energy_does_not_depend_on_how_samples_come(
        levels in prop::collection::vec(0.0f32..0.5, 1..40),
        blocks in prop::collection::vec(1usize..3000, 1..20),
        loudness in any::<bool>(),
    ) {
        let meaning = if loudness { Meaning::Loudness } else { Meaning::Speech };
        let samples: Vec<f32> = levels
            .iter()
            .flat_map(|&level| (0..777).map(move |i| level * (i as f32 * 0.7).sin()))
            .collect();
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        let mut energy = Energy::new(WINDOW, meaning);
        energy.feed(&samples, &mut whole);
        energy.finish(&mut whole);
        let mut rest = &samples[..];
        for &block in blocks.iter().cycle() {
            let (now, later) = rest.split_at(block.min(rest.len()));
            energy.feed(now, &mut parts);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        energy.finish(&mut parts);
        prop_assert_eq!(whole.len(), samples.len().div_ceil(WINDOW));
        prop_assert!(whole.iter().all(|s| (0.0..=1.0).contains(s)));
        prop_assert!(!loudness || whole.iter().all(|&s| s >= THRESHOLD));
        prop_assert_eq!(whole, parts);
    }
}

#[test]
fn a_long_stretch_is_cut_in_its_deepest_dip() {
    let mut scores = vec![0.9f32; 1000];
    for (place, level) in [(100, 0.0), (400, 0.6), (500, 0.4), (610, 0.5)] {
        scores[place..place + 9].fill(level);
    }
    let pieces = cut(&scores, 20.0, 1000 * WINDOW);
    assert_eq!(pieces[0].start, 0);
    assert!((503..507).contains(&(pieces[0].end / WINDOW)), "{pieces:?}");
    assert_eq!(pieces[1].start, pieces[0].end);
    assert_eq!(pieces[1].end, 1000 * WINDOW);
}

#[test]
fn speech_goes_on_above_the_release_and_begins_at_the_threshold() {
    let between = (RELEASE + THRESHOLD) / 2.0;
    let mut scores = vec![between; 100];
    scores[40] = THRESHOLD;
    let start = (40 - LEAD) * WINDOW;
    let expected = vec![Piece {
        start,
        end: 100 * WINDOW,
    }];
    assert_eq!(cut(&scores, 20.0, 100 * WINDOW), expected);
    assert_eq!(cut(&[between; 100], 20.0, 100 * WINDOW), []);
    assert_eq!(cut(&[f32::NAN; 3], 20.0, 3 * WINDOW).len(), 1);
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    for (rate, longest_s) in [(0, 20.0), (16_000, 0.5), (16_000, f64::NAN), (16_000, 1e9)] {
        assert!(Cutter::new(rate, longest_s).is_err(), "{rate} {longest_s}");
    }
}

/// Sound of noise at one level with louder noise in the given windows.
fn noise(windows: usize, background: f32, speech: f32, spoken: std::ops::Range<usize>) -> Vec<f32> {
    let mut state = 1u64;
    (0..windows * WINDOW)
        .map(|i| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let value = (state >> 40) as f32 / 8_388_608.0 - 1.0;
            value
                * if spoken.contains(&(i / WINDOW)) {
                    speech
                } else {
                    background
                }
                + 0.05
        })
        .collect()
}

#[test]
fn energy_finds_speech_at_any_level_in_steady_noise() {
    for scale in [1.0, 0.1, 0.01] {
        let samples = noise(600, 0.05 * scale, 0.3 * scale, 300..340);
        let mut energy = Energy::new(WINDOW, Meaning::Speech);
        let mut scores = Vec::new();
        energy.feed(&samples, &mut scores);
        energy.finish(&mut scores);
        for (i, &score) in scores.iter().enumerate() {
            let spoken = (300..340).contains(&i);
            assert_eq!(
                score >= THRESHOLD,
                spoken,
                "scale {scale}, window {i}: {score}"
            );
        }
    }
}
