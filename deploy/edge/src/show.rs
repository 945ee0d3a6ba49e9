//! What a dump shows of each stage: the members of Python's records.

use rust_fe::ctc::Decoded;

use crate::dump::Array;
use crate::text::Rows;

pub(crate) type Shown = Vec<(&'static str, Array)>;

pub(crate) fn sound(samples: &[f32], rate_hz: u32, name: &str) -> Shown {
    vec![
        (
            "samples",
            Array::Float(samples.to_vec(), vec![samples.len()]),
        ),
        ("sample_rate_hz", Array::Whole(i64::from(rate_hz))),
        ("source", Array::Text(name.into())),
    ]
}

pub(crate) fn matrix(values: &[f32], columns: usize, frame_shift_s: f64) -> Shown {
    let shape = vec![values.len() / columns, columns];
    vec![
        ("values", Array::Float(values.to_vec(), shape)),
        ("frame_shift_s", Array::Real(frame_shift_s)),
    ]
}

pub(crate) fn scores(scores: &[f32], vocab: usize, rows: Rows) -> Shown {
    let mut shown = matrix(scores, vocab, rows.frame_shift_s);
    shown.push(("prompt_frames", Array::Whole(rows.prompt_frames as i64)));
    shown
}

pub(crate) fn decoded(decoded: &Decoded, rows: Rows) -> Shown {
    let float = |values: &[f32]| Array::Float(values.to_vec(), vec![values.len()]);
    let int = |values: &[i32]| Array::Int(values.to_vec());
    vec![
        ("argmax", int(&decoded.argmax)),
        ("log_prob", float(&decoded.log_prob)),
        ("entropy", float(&decoded.entropy)),
        ("token_ids", int(&decoded.token_ids)),
        ("start_frame", int(&decoded.start_frame)),
        ("end_frame", int(&decoded.end_frame)),
        ("log_probs", float(&decoded.log_probs)),
        ("entropies", float(&decoded.entropies)),
        ("prompt_frames", Array::Whole(rows.prompt_frames as i64)),
        ("frame_shift_s", Array::Real(rows.frame_shift_s)),
    ]
}
