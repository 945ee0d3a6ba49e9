//! Phrase lists against the enumeration of every path, and every error.

use std::collections::HashMap;

use proptest::prelude::*;
use rust_fe::ctc;
use rust_fe::error::Error;
use rust_fe::phrases::{Found, Mode, Phrases};
use rust_fe::simd::Backend;

/// Pieces that spell the same text in several ways; `_` opens a phrase, the blank comes first.
const PIECES: [&str; 6] = ["", "_", "a", "b", "_a", "ab"];

fn bytes(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn list(texts: &[&str], groups: &[usize]) -> Phrases {
    let texts: Vec<_> = texts.iter().map(|text| bytes(&[text])).collect();
    Phrases::new(&bytes(&PIECES), 0, &texts, groups).unwrap()
}

fn decode(list: &Phrases, scores: &[f32], prompts: usize, mode: Mode) -> Found {
    let backend = Backend::by_name("scalar").unwrap();
    let vocab = PIECES.len();
    list.decode(scores, vocab, prompts, mode, backend).unwrap()
}

/// Natural logarithms of probabilities, in double precision.
fn log_softmax(scores: &[f32], vocab: usize) -> Vec<f64> {
    let row = |row: &[f32]| {
        let sum: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
        row.iter()
            .map(|x| f64::from(*x) - sum.ln())
            .collect::<Vec<_>>()
    };
    scores.chunks_exact(vocab).flat_map(row).collect()
}

/// Every path through the rows: its logarithm, its text, and its pieces with their rows.
fn paths(log_p: &[f64], vocab: usize, mut see: impl FnMut(f64, &str, &[(usize, usize, usize)])) {
    let rows = log_p.len() / vocab;
    for mut code in 0..vocab.pow(rows as u32) {
        let (mut total, mut text, mut last) = (0.0, String::new(), 0);
        let mut tokens: Vec<(usize, usize, usize)> = Vec::new();
        for row in 0..rows {
            let id = code % vocab;
            code /= vocab;
            total += log_p[row * vocab + id];
            if id != 0 && id == last {
                tokens.last_mut().unwrap().2 = row + 1;
            } else if id != 0 {
                text += PIECES[id];
                tokens.push((id, row, row + 1));
            }
            last = id;
        }
        see(total, &text, &tokens);
    }
}

/// Probability of every text.
fn sums(log_p: &[f64], vocab: usize) -> HashMap<String, f64> {
    let mut sums = HashMap::new();
    paths(log_p, vocab, |total, text, _| {
        *sums.entry(text.to_string()).or_insert(0.0) += total.exp();
    });
    sums
}

fn scores(rows: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f32>> {
    rows.prop_flat_map(|rows| prop::collection::vec(-6.0..6.0_f32, rows * PIECES.len()))
}

const TEXTS: [&str; 5] = ["_a", "_ab", "_aa", "_b", "_abab"];

proptest! {
    #[test]
    fn one_phrase_has_the_probability_of_all_its_paths(scores in scores(0..6)) {
        let log_p = log_softmax(&scores, 6);
        let sums = sums(&log_p, 6);
        let groups = [0, 1, 2, 3, 1]; // the second and the last mean the same
        let mut of_group = [0.0; 4];
        for (text, group) in TEXTS.iter().zip(groups) {
            of_group[group] += sums.get(*text).copied().unwrap_or(0.0);
        }
        let mut order = of_group;
        order.sort_by(|a, b| b.total_cmp(a));
        let silence = sums[""];
        let found = decode(&list(&TEXTS, &groups), &scores, 0, Mode::One);
        prop_assert_eq!(usize::from(order[0] > silence), found.hits.len());
        for hit in found.hits {
            prop_assert!((of_group[groups[hit.phrase]] - order[0]).abs() < 1e-9);
            prop_assert!((hit.log_prob - order[0].ln()).abs() < 1e-4);
            let rest = order.iter().sum::<f64>() + silence;
            prop_assert!((hit.posterior - order[0] / rest).abs() < 1e-5);
            if order[1] == 0.0 {
                prop_assert_eq!(None, hit.runner_up);
            } else {
                prop_assert!((hit.margin - (order[0] / order[1]).ln()).abs() < 1e-4);
                let next = of_group[groups[hit.runner_up.unwrap()]];
                prop_assert!((next - order[1]).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn tokens_are_the_best_path_of_the_phrase(scores in scores(1..6)) {
        let log_p = log_softmax(&scores, 6);
        let found = decode(&list(&["_ab"], &[0]), &scores, 0, Mode::One);
        let mut best = (f64::NEG_INFINITY, Vec::new());
        paths(&log_p, 6, |total, text, tokens| {
            if text == "_ab" && total > best.0 {
                best = (total, tokens.to_vec());
            }
        });
        if let [hit] = found.hits[..] {
            let got = found.decoded;
            prop_assert_eq!(best.1.len(), hit.num_tokens);
            for (i, (id, start, end)) in best.1.into_iter().enumerate() {
                prop_assert_eq!(id as i32, got.token_ids[i]);
                prop_assert_eq!((start as i32, end as i32), (got.start_frame[i], got.end_frame[i]));
                let rows = (start..end).map(|row| log_p[row * 6 + id]);
                let most = rows.fold(f64::NEG_INFINITY, f64::max);
                prop_assert!((most - f64::from(got.log_probs[i])).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn many_phrases_are_those_of_the_best_path(scores in scores(0..7)) {
        let log_p = log_softmax(&scores, 6);
        let mut best = (f64::NEG_INFINITY, 0);
        paths(&log_p, 6, |total, text, _| {
            // Every text of the list begins with the only `_` it has.
            let words: Vec<_> = text.split('_').skip(1).collect();
            let listed = words.iter().all(|word| ["a", "b", "ab"].contains(word));
            if total > best.0 && listed && (text.is_empty() || text.starts_with('_')) {
                best = (total, words.len());
            }
        });
        let list = list(&["_a", "_b", "_ab"], &[0, 1, 2]);
        let found = decode(&list, &scores, 0, Mode::Many);
        prop_assert_eq!(best.1, found.hits.len());
        let mut next = 0;
        for hit in &found.hits {
            prop_assert_eq!(next, hit.first_frame);
            next = hit.end_frame;
            let stretch = &scores[hit.first_frame * 6..hit.end_frame * 6];
            let alone = decode(&list, stretch, 0, Mode::One).hits[0];
            prop_assert_eq!((hit.phrase, hit.log_prob), (alone.phrase, alone.log_prob));
        }
        prop_assert_eq!(if found.hits.is_empty() { 0 } else { scores.len() / 6 }, next);
        let tokens: usize = found.hits.iter().map(|hit| hit.num_tokens).sum();
        prop_assert_eq!(tokens, found.decoded.token_ids.len());
    }

    #[test]
    fn rows_are_as_greedy_decoding_sees_them(scores in scores(4..9), prompts in 0..5_usize) {
        let found = decode(&list(&TEXTS, &[0, 1, 2, 3, 4]), &scores, prompts, Mode::One);
        let backend = Backend::by_name("scalar").unwrap();
        let greedy = ctc::greedy(&scores, 6, 0, prompts, backend).unwrap();
        prop_assert_eq!(greedy.argmax, found.decoded.argmax);
        prop_assert_eq!(greedy.log_prob, found.decoded.log_prob);
        prop_assert_eq!(greedy.entropy, found.decoded.entropy);
    }
}

fn one_hot(ids: &[usize], height: f32) -> Vec<f32> {
    let mut scores = vec![0.0; ids.len() * PIECES.len()];
    for (row, id) in ids.iter().enumerate() {
        scores[row * PIECES.len() + id] = height;
    }
    scores
}

#[test]
fn silence_holds_no_phrase() {
    let list = list(&["_a", "_b"], &[0, 1]);
    for mode in [Mode::One, Mode::Many] {
        for rows in [0, 1, 40] {
            let found = decode(&list, &one_hot(&vec![0; rows], 9.0), 0, mode);
            assert_eq!((0, 0), (found.hits.len(), found.decoded.token_ids.len()));
        }
    }
}

#[test]
fn a_repeated_piece_needs_a_blank_within_and_between_phrases() {
    let twice = list(&["_aa"], &[0]);
    let log_prob =
        |ids: &[usize]| decode(&twice, &one_hot(ids, 30.0), 0, Mode::One).hits[0].log_prob;
    assert!(log_prob(&[1, 2, 0, 2]) > -1e-3);
    assert!(log_prob(&[4, 2, 2]) > -1e-3); // two different pieces
    assert!(log_prob(&[1, 2, 2]) < -29.0);
    let repeated = list(&["a"], &[0]);
    let count = |ids: &[usize]| {
        decode(&repeated, &one_hot(ids, 30.0), 0, Mode::Many)
            .hits
            .len()
    };
    assert_eq!(1, count(&[2, 2, 2]));
    assert_eq!(2, count(&[2, 0, 2]));
    assert_eq!(3, count(&[2, 0, 2, 0, 0, 2]));
    let mirrored = list(&["aba"], &[0]);
    let count = |ids: &[usize]| {
        decode(&mirrored, &one_hot(ids, 30.0), 0, Mode::Many)
            .hits
            .len()
    };
    assert_eq!(1, count(&[2, 3, 2, 2, 3, 2])); // collapses to ababa
    assert_eq!(2, count(&[2, 3, 2, 0, 2, 3, 2]));
}

#[test]
fn phrases_follow_one_another_with_borders_half_way() {
    let ids = [0, 4, 0, 0, 0, 0, 1, 3, 0, 4, 5, 0];
    let list = list(&["_a", "_b", "_aab"], &[0, 1, 2]);
    let found = decode(&list, &one_hot(&ids, 20.0), 0, Mode::Many);
    let spans: Vec<_> = found
        .hits
        .iter()
        .map(|hit| (hit.phrase, hit.first_frame, hit.end_frame, hit.num_tokens))
        .collect();
    assert_eq!(vec![(0, 0, 4, 1), (1, 4, 9, 2), (2, 9, 12, 2)], spans);
    assert_eq!(vec![4, 1, 3, 4, 5], found.decoded.token_ids);
    assert_eq!(vec![1, 6, 7, 9, 10], found.decoded.start_frame);
    assert!(
        found
            .hits
            .iter()
            .all(|hit| hit.speech_frames == hit.num_tokens)
    );
}

#[test]
fn half_a_minute_does_not_run_out_of_numbers() {
    let mut ids = vec![0; 500];
    (ids[20], ids[480]) = (1, 2);
    let list = list(&["_a", "_b"], &[0, 1]);
    for height in [0.0, 5.0, 300.0] {
        let hit = decode(&list, &one_hot(&ids, height), 0, Mode::One).hits[0];
        assert_eq!(0, hit.phrase);
        assert!(hit.log_prob.is_finite() && hit.log_prob < 1e-3, "{hit:?}");
    }
}

#[test]
fn what_the_pieces_cannot_spell_is_never_found() {
    let list = list(&["_a", "_x", "a_", "bb_x"], &[0, 1, 2, 3]);
    assert_eq!([true, false, true, false], list.spelled());
    assert_eq!((5, 5), (list.num_nodes(), list.num_arcs())); // nothing of what leads nowhere
    let none = Phrases::new(&bytes(&PIECES), 0, &[], &[]).unwrap();
    assert!(
        decode(&none, &one_hot(&[1, 2], 9.0), 0, Mode::Many)
            .hits
            .is_empty()
    );
}

#[test]
fn numbers_that_do_not_fit_are_named() {
    let pieces = bytes(&PIECES);
    let texts = [bytes(&["_a"])];
    let messages = [
        Phrases::new(&pieces, 6, &texts, &[0]).unwrap_err(),
        Phrases::new(&pieces, -1, &texts, &[0]).unwrap_err(),
        Phrases::new(&pieces, 0, &texts, &[]).unwrap_err(),
        Phrases::new(&pieces, 0, &texts, &[1]).unwrap_err(),
        decode_error(&[0.0; 10], 5),
        decode_error(&[f32::NAN; 6], 6),
    ]
    .map(|error| error.to_string());
    let parts = [
        "a blank_id that is one of 6 pieces, found 6",
        "a blank_id that is one of 6 pieces, found -1",
        "expected 1 groups, found 0",
        "expected groups below 1, found 1",
        "expected 6 columns, one per piece, found 5",
        "found NaN at row 0, column 0",
    ];
    for (message, part) in messages.iter().zip(parts) {
        assert!(message.contains(part), "{message}");
    }
}

fn decode_error(scores: &[f32], vocab: usize) -> Error {
    let backend = Backend::best();
    list(&["_a"], &[0])
        .decode(scores, vocab, 0, Mode::One, backend)
        .unwrap_err()
}
