//! Mean and variance normalisation with the numbers of the model.

/// Shift and scale each column.
///
/// ```text
/// out[t][d] = (x[t][d] + neg_mean[d]) * inv_stddev[d]
/// ```
///
/// `features` is (T, D), row-major, where D is the length of `neg_mean`.
///
/// # Panics
/// If `neg_mean` is empty, `inv_stddev` has another length, or `features` is no whole number of rows.
///
/// Source: FunASR `runtime/python/onnxruntime/funasr_onnx/utils/frontend.py`, `apply_cmvn`.
#[must_use]
pub fn cmvn(features: &[f32], neg_mean: &[f32], inv_stddev: &[f32]) -> Vec<f32> {
    assert!(!neg_mean.is_empty(), "neg_mean must not be empty");
    assert_eq!(
        neg_mean.len(),
        inv_stddev.len(),
        "neg_mean and inv_stddev must match"
    );
    assert_eq!(
        0,
        features.len() % neg_mean.len(),
        "features must be whole rows"
    );
    let mut out = Vec::with_capacity(features.len());
    for row in features.chunks_exact(neg_mean.len()) {
        let columns = row.iter().zip(neg_mean).zip(inv_stddev);
        out.extend(columns.map(|((x, shift), scale)| (x + shift) * scale));
    }
    out
}
