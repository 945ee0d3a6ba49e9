//! Decoding restricted to a list of phrases: exact CTC sums over every spelling of every phrase.
//!
//! `graph` builds the graph, `search` sums over it, `align` finds where the tokens lie, `sequence` finds
//! where one phrase ends and the next begins.

mod align;
mod graph;
mod search;
mod sequence;

use std::collections::HashMap;
use std::ops::Range;

use crate::ctc::{self, Decoded};
use crate::error::Error;
use crate::simd::Backend;

use graph::Draft;
use search::Search;

const BLANK: usize = 0; // column of the blank in the compact scores
const ROOT: usize = 0;

/// The phrases as a graph: nodes are prefixes of the text, arcs are pieces.
///
/// A phrase may be spelled with many sequences of pieces, and a network may emit any of them. The
/// nodes form a trie over the bytes of the text; an arc runs from a prefix to a longer one when
/// some piece spells the difference. Each sequence of pieces is exactly one path from the root, so
/// that sums over paths are sums over spellings, and their number costs nothing. Byte pieces are
/// pieces of one byte.
#[derive(Debug, Clone)]
pub struct Phrases {
    vocab: usize,
    /// Compact column -> column of the scores; the blank comes first.
    columns: Vec<usize>,
    /// Node -> its first arc; one more entry than nodes. Arcs are sorted by the node they end in.
    first_arc: Vec<usize>,
    arcs: Vec<Arc>,
    /// Where phrases end: node, phrase.
    ends: Vec<(usize, usize)>,
    /// Phrase -> what it stands for.
    groups: Vec<usize>,
    num_groups: usize,
    spelled: Vec<bool>,
}

/// A piece that leads from a prefix to a longer one; `from` is less than the node it ends in.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Arc {
    from: usize,
    column: usize,
    /// Some arc into `from` has the same piece: a blank must keep the two apart.
    repeats: bool,
}

/// One phrase that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Index of the phrase, the most probable one of its group.
    pub phrase: usize,
    /// The most probable phrase of the next group.
    pub runner_up: Option<usize>,
    /// Natural logarithm of the probability of the group, all spellings and alignments.
    pub log_prob: f64,
    /// Logarithm of the probability of the best path without a list: the sum of row maxima.
    pub free_log_prob: f64,
    /// `log_prob` minus that of the next group; infinite if there is none.
    pub margin: f64,
    /// Probability of the group among all groups and silence.
    pub posterior: f64,
    /// First row of the stretch that was searched, counted after the prompts.
    pub first_frame: usize,
    /// The row after the stretch.
    pub end_frame: usize,
    /// Rows in which the free path or the phrase has a token.
    pub speech_frames: usize,
    /// Number of its tokens among those of [`Found::decoded`].
    pub num_tokens: usize,
}

/// What [`Phrases::decode`] found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// Rows as greedy decoding sees them; tokens of the phrases, by the best path of each.
    pub decoded: Decoded,
    /// The phrases in order; none when silence is more probable than any.
    pub hits: Vec<Hit>,
}

/// How many phrases a decode may find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One, or none.
    One,
    /// Any number, one after another.
    Many,
}

impl Phrases {
    /// Build the graph.
    ///
    /// `pieces` has the text of every column, empty for those that are no text. `texts` has for
    /// each phrase one or more texts to spell. Phrases of one number in `groups` mean the same:
    /// their probabilities are added.
    ///
    /// # Errors
    /// [`Error::Scores`] if `blank_id` is no column or the lengths differ.
    pub fn new(
        pieces: &[Vec<u8>],
        blank_id: i64,
        texts: &[Vec<Vec<u8>>],
        groups: &[usize],
    ) -> Result<Self, Error> {
        let vocab = pieces.len();
        let blank = usize::try_from(blank_id).ok().filter(|b| *b < vocab);
        let blank = blank.ok_or_else(|| {
            wrong(
                format!("a blank_id that is one of {vocab} pieces"),
                blank_id,
            )
        })?;
        if texts.len() != groups.len() {
            return Err(wrong(format!("{} groups", texts.len()), groups.len()));
        }
        if let Some(group) = groups.iter().find(|group| **group >= texts.len()) {
            return Err(wrong(format!("groups below {}", texts.len()), group));
        }
        let num_groups = groups.iter().max().map_or(0, |group| group + 1);
        let mut ids: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for (id, piece) in pieces.iter().enumerate() {
            if id != blank && !piece.is_empty() {
                ids.entry(piece).or_default().push(id);
            }
        }
        let draft = Draft::new(&ids, texts);
        Ok(draft.finish(vocab, blank, groups.to_vec(), num_groups))
    }

    /// Per phrase: whether the pieces can spell it; the others are never found.
    #[must_use]
    pub fn spelled(&self) -> &[bool] {
        &self.spelled
    }

    /// Prefixes in the graph.
    #[must_use]
    pub fn num_nodes(&self) -> usize {
        self.first_arc.len() - 1
    }

    /// Pieces in the graph: a decode costs rows times arcs.
    #[must_use]
    pub fn num_arcs(&self) -> usize {
        self.arcs.len()
    }

    /// Find the most probable phrase, or sequence of phrases.
    ///
    /// ```text
    /// a_t(arc)  = p_t(piece) (a_{t-1}(arc) + b_{t-1}(from) + sum of a_{t-1} into from, other pieces)
    /// b_t(node) = p_t(blank) (b_{t-1}(node) + sum of a_{t-1} into node)
    /// P(phrase) = b_T(end) + sum of a_T into end
    /// ```
    ///
    /// In double precision, rescaled at every row; exact but for prefixes that are `1e-290` less
    /// probable than the best prefix of the same row. [`Mode::Many`] first takes the best path
    /// through the graph with its ends joined to its root, cuts the rows half way between
    /// two phrases, and then decides each stretch as [`Mode::One`] does.
    /// Nothing is allocated per row.
    ///
    /// # Errors
    /// Those of [`ctc::greedy`]; [`Error::Scores`] if there are not as many columns as pieces.
    ///
    /// Source: Graves et al. 2006, section 4.1, on a graph instead of one sequence.
    pub fn decode(
        &self,
        scores: &[f32],
        vocab: usize,
        prompt_frames: usize,
        mode: Mode,
        backend: Backend,
    ) -> Result<Found, Error> {
        if vocab != self.vocab {
            return Err(wrong(
                format!("{} columns, one per piece", self.vocab),
                vocab,
            ));
        }
        let blank = self.columns[BLANK];
        let mut decoded = ctc::greedy(scores, vocab, blank as i64, prompt_frames, backend)?;
        decoded.token_ids.clear();
        decoded.start_frame.clear();
        decoded.end_frame.clear();
        decoded.log_probs.clear();
        decoded.entropies.clear();
        let mut search = Search::new(self, scores, decoded, prompt_frames);
        let mut hits = Vec::new();
        match mode {
            Mode::One => hits.extend(search.one(0..search.num_frames())),
            Mode::Many => {
                for stretch in search.stretches() {
                    hits.extend(search.one(stretch));
                }
            }
        }
        Ok(Found {
            decoded: search.decoded,
            hits,
        })
    }

    fn arcs_into(&self, node: usize) -> Range<usize> {
        self.first_arc[node]..self.first_arc[node + 1]
    }
}

fn wrong(expected: String, found: impl ToString) -> Error {
    Error::Scores {
        expected,
        found: found.to_string(),
    }
}
