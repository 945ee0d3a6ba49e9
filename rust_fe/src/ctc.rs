//! Greedy CTC decoding with statistics for every row.

use crate::error::Error;
use crate::simd::{Backend, RowStats};

/// What greedy decoding found; the arrays of each group have one length.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decoded {
    /// Per row: column of the largest score.
    pub argmax: Vec<i32>,
    /// Per row: natural logarithm of its probability.
    pub log_prob: Vec<f32>,
    /// Per row: entropy in nats.
    pub entropy: Vec<f32>,
    /// Per token: its id.
    pub token_ids: Vec<i32>,
    /// Per token: first row of its run, counted from the first row after the prompts.
    pub start_frame: Vec<i32>,
    /// Per token: the row after its run, counted alike.
    pub end_frame: Vec<i32>,
    /// Per token: the largest `log_prob` of its run.
    pub log_probs: Vec<f32>,
    /// Per token: `entropy` of that row, the first on ties.
    pub entropies: Vec<f32>,
}

/// Decode scores (T, `vocab`), row-major, raw or log-softmax.
///
/// ```text
/// tokens = drop blank(collapse equal neighbours(argmax[prompt_frames ..]))
/// ```
///
/// The first `prompt_frames` rows get statistics but never become tokens. Every row is fetched
/// from memory once: the second look at it happens while it is still in the cache.
///
/// # Errors
/// [`Error::Scores`] if the numbers do not fit together, [`Error::NonFiniteScore`] for a NaN or
/// an infinity.
///
/// Source: Graves et al. 2006, best path decoding.
pub fn greedy(
    scores: &[f32],
    vocab: usize,
    blank_id: i64,
    prompt_frames: usize,
    backend: Backend,
) -> Result<Decoded, Error> {
    let rows = check(scores, vocab, blank_id, prompt_frames)?;
    let mut out = Decoded {
        argmax: Vec::with_capacity(rows),
        log_prob: Vec::with_capacity(rows),
        entropy: Vec::with_capacity(rows),
        ..Decoded::default()
    };
    for (row, values) in scores.chunks_exact(vocab).enumerate() {
        let RowStats {
            argmax,
            log_prob,
            entropy,
        } = backend
            .row_stats(values)
            .ok_or_else(|| non_finite(row, values))?;
        out.argmax.push(argmax as i32);
        out.log_prob.push(log_prob);
        out.entropy.push(entropy);
    }
    collapse(&mut out, blank_id, prompt_frames);
    Ok(out)
}

fn check(
    scores: &[f32],
    vocab: usize,
    blank_id: i64,
    prompt_frames: usize,
) -> Result<usize, Error> {
    let wrong = |expected: &str, found: String| {
        Err(Error::Scores {
            expected: expected.into(),
            found,
        })
    };
    if vocab == 0 || i32::try_from(vocab).is_err() {
        return wrong("1 to 2147483647 columns", format!("{vocab}"));
    }
    if !scores.len().is_multiple_of(vocab) {
        return wrong(
            "whole rows",
            format!("{} values in rows of {vocab}", scores.len()),
        );
    }
    let rows = scores.len() / vocab;
    if i32::try_from(rows).is_err() {
        return wrong("at most 2147483647 rows", format!("{rows}"));
    }
    if !(0..vocab as i64).contains(&blank_id) {
        return wrong(
            &format!("a blank_id of 0 to {}", vocab - 1),
            format!("{blank_id}"),
        );
    }
    if rows < prompt_frames {
        return wrong(
            &format!("at least the {prompt_frames} prompt rows"),
            format!("{rows} rows"),
        );
    }
    Ok(rows)
}

fn non_finite(row: usize, values: &[f32]) -> Error {
    let column = values.iter().position(|v| !v.is_finite()).unwrap_or(0);
    Error::NonFiniteScore {
        row,
        column,
        value: values[column],
    }
}

/// Runs of equal arg-max become tokens, unless the run is blank.
fn collapse(out: &mut Decoded, blank_id: i64, prompt_frames: usize) {
    let mut start = prompt_frames;
    for run in out.argmax[prompt_frames..].chunk_by(|a, b| a == b) {
        let end = start + run.len();
        if i64::from(run[0]) != blank_id {
            let mut best = start;
            for row in start + 1..end {
                if out.log_prob[row] > out.log_prob[best] {
                    best = row;
                }
            }
            out.token_ids.push(run[0]);
            out.start_frame.push((start - prompt_frames) as i32);
            out.end_frame.push((end - prompt_frames) as i32);
            out.log_probs.push(out.log_prob[best]);
            out.entropies.push(out.entropy[best]);
        }
        start = end;
    }
}
