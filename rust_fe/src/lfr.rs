//! Low frame rate: stack neighbouring frames and keep every n-th stack.

/// Stack `m` frames, every `n` frames.
///
/// ```text
/// out[r] = [x[c(r n + 0 - p)], ..., x[c(r n + m-1 - p)]]   p = (m - 1) / 2, r = 0 .. ceil(T / n) - 1
/// c(t)   = clamp(t, 0, T - 1)
/// ```
///
/// `features` is (T, `dim`), row-major; the result is (ceil(T / n), `m * dim`). No frames give no rows.
///
/// # Panics
/// If `dim`, `m` or `n` is zero, or `features` is no whole number of rows.
///
/// Source: FunASR `runtime/python/onnxruntime/funasr_onnx/utils/frontend.py`, `apply_lfr`.
#[must_use]
pub fn lfr(features: &[f32], dim: usize, m: usize, n: usize) -> Vec<f32> {
    assert!(dim > 0 && m > 0 && n > 0, "dim, m and n must be positive");
    assert_eq!(0, features.len() % dim, "features must be whole rows");
    let frames = features.len() / dim;
    let rows = frames.div_ceil(n);
    let left = (m - 1) / 2;
    let mut out = Vec::with_capacity(rows * m * dim);
    for row in 0..rows {
        let start = row * n;
        if start >= left && start - left + m <= frames {
            let at = (start - left) * dim;
            out.extend_from_slice(&features[at..at + m * dim]);
            continue;
        }
        for i in 0..m {
            let frame = (start + i).saturating_sub(left).min(frames - 1);
            out.extend_from_slice(&features[frame * dim..(frame + 1) * dim]);
        }
    }
    out
}
