//! Scores to tokens: `ctc_greedy`, `Phrases`.

use numpy::{IntoPyArray, PyArray1, PyArray2};
use pyo3::prelude::*;

use super::arrays::{backend_named, borrow, into_matrix, matrix, raise, without_lock};
use crate::ctc::{self, Decoded};
use crate::phrases::{Mode, Phrases};

const LOGITS: &str = "a float32 array of shape (T, V)";

type PyDecoded<'py> = (
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<f32>>,
);

/// Greedy CTC over scores float32 (T, V), with statistics for every row.
#[pyfunction]
#[pyo3(signature = (logits, blank_id, prompt_frames, backend=None))]
pub(super) fn ctc_greedy<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyAny>,
    blank_id: i64,
    prompt_frames: usize,
    backend: Option<&str>,
) -> PyResult<PyDecoded<'py>> {
    let backend = backend_named(py, backend)?;
    let logits = borrow(logits, "DecodeError", "logits", LOGITS)?;
    let (values, _, vocab) = matrix(&logits)?;
    let decoded = without_lock(py, || {
        ctc::greedy(values, vocab, blank_id, prompt_frames, backend)
    })
    .map_err(|error| raise(py, &error))?;
    Ok(into_arrays(py, decoded))
}

fn into_arrays(py: Python<'_>, decoded: Decoded) -> PyDecoded<'_> {
    let Decoded {
        argmax,
        log_prob,
        entropy,
        token_ids,
        start_frame,
        end_frame,
        log_probs,
        entropies,
    } = decoded;
    (
        argmax.into_pyarray(py),
        log_prob.into_pyarray(py),
        entropy.into_pyarray(py),
        token_ids.into_pyarray(py),
        start_frame.into_pyarray(py),
        end_frame.into_pyarray(py),
        log_probs.into_pyarray(py),
        entropies.into_pyarray(py),
    )
}

/// Rows and tokens; per hit six whole numbers; per hit four scores.
type PyFound<'py> = (
    PyDecoded<'py>,
    Bound<'py, PyArray2<i32>>,
    Bound<'py, PyArray2<f64>>,
);

/// A list of phrases as a graph of pieces.
#[pyclass(frozen, name = "Phrases", module = "asr._rust_fe")]
pub(super) struct PyPhrases(Phrases);

#[pymethods]
impl PyPhrases {
    #[new]
    fn new(
        py: Python<'_>,
        pieces: Vec<Vec<u8>>,
        blank_id: i64,
        texts: Vec<Vec<Vec<u8>>>,
        groups: Vec<usize>,
    ) -> PyResult<Self> {
        without_lock(py, || Phrases::new(&pieces, blank_id, &texts, &groups))
            .map(Self)
            .map_err(|error| raise(py, &error))
    }

    /// Per phrase: whether the pieces can spell it.
    #[getter]
    fn spelled(&self) -> Vec<bool> {
        self.0.spelled().to_vec()
    }

    /// Prefixes in the graph.
    #[getter]
    fn num_nodes(&self) -> usize {
        self.0.num_nodes()
    }

    /// Pieces in the graph.
    #[getter]
    fn num_arcs(&self) -> usize {
        self.0.num_arcs()
    }

    /// Find phrases in scores float32 (T, V).
    #[pyo3(signature = (logits, prompt_frames, *, many, backend=None))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        prompt_frames: usize,
        many: bool,
        backend: Option<&str>,
    ) -> PyResult<PyFound<'py>> {
        let backend = backend_named(py, backend)?;
        let logits = borrow(logits, "DecodeError", "logits", LOGITS)?;
        let (values, _, vocab) = matrix(&logits)?;
        let mode = if many { Mode::Many } else { Mode::One };
        let found = without_lock(py, || {
            self.0.decode(values, vocab, prompt_frames, mode, backend)
        })
        .map_err(|error| raise(py, &error))?;
        let hits = found.hits.iter();
        let facts: Vec<i32> = hits
            .clone()
            .flat_map(|hit| {
                [
                    hit.phrase as i32,
                    hit.runner_up.map_or(-1, |phrase| phrase as i32),
                    hit.num_tokens as i32,
                    hit.first_frame as i32,
                    hit.end_frame as i32,
                    hit.speech_frames as i32,
                ]
            })
            .collect();
        let scores: Vec<f64> = hits
            .flat_map(|hit| [hit.log_prob, hit.free_log_prob, hit.margin, hit.posterior])
            .collect();
        let rows = found.hits.len();
        Ok((
            into_arrays(py, found.decoded),
            into_matrix(py, facts, rows, 6),
            into_matrix(py, scores, rows, 4),
        ))
    }
}
