//! Decoding restricted to a list of phrases: exact CTC sums over every spelling of every phrase.

use std::collections::HashMap;
use std::ops::Range;

use crate::ctc::{self, Decoded};
use crate::error::Error;
use crate::simd::Backend;

/// Prefixes this far behind the best one of the same frame are taken as impossible.
const TINY: f64 = 1e-290;
const NONE: u32 = u32::MAX;
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

/// The graph while it grows: a trie over bytes, and the pieces that fit into it.
#[derive(Default)]
struct Draft {
    children: HashMap<(usize, u8), usize>,
    /// Per node: the arcs into it, as (from, piece). A node without arcs cannot be spelled.
    into: Vec<Vec<(usize, usize)>>,
    ends: Vec<(usize, usize)>,
    spelled: Vec<bool>,
}

impl Draft {
    fn new(ids: &HashMap<&[u8], Vec<usize>>, texts: &[Vec<Vec<u8>>]) -> Self {
        let longest = ids.keys().map(|piece| piece.len()).max().unwrap_or(0);
        let mut draft = Self {
            into: vec![Vec::new()],
            ..Self::default()
        };
        let mut path = Vec::new();
        for (phrase, spellings) in texts.iter().enumerate() {
            let mut spelled = false;
            for text in spellings.iter().filter(|text| !text.is_empty()) {
                draft.walk(text, ids, longest, &mut path);
                let end = path[text.len()];
                if !draft.into[end].is_empty() {
                    draft.ends.push((end, phrase));
                    spelled = true;
                }
            }
            draft.spelled.push(spelled);
        }
        draft
    }

    /// Add the nodes that a text lacks, with the arcs into them; `path` becomes its nodes.
    fn walk(
        &mut self,
        text: &[u8],
        ids: &HashMap<&[u8], Vec<usize>>,
        longest: usize,
        path: &mut Vec<usize>,
    ) {
        path.clear();
        path.push(ROOT);
        for (at, byte) in text.iter().enumerate() {
            let key = (path[at], *byte);
            if let Some(node) = self.children.get(&key) {
                path.push(*node);
                continue;
            }
            let node = self.into.len();
            self.children.insert(key, node);
            path.push(node);
            let mut arcs = Vec::new();
            for start in (at + 1).saturating_sub(longest)..=at {
                let from = path[start];
                if from == ROOT || !self.into[from].is_empty() {
                    let fit = ids.get(&text[start..=at]).into_iter().flatten();
                    arcs.extend(fit.map(|id| (from, *id)));
                }
            }
            self.into.push(arcs);
        }
    }

    /// Keep what leads to an end, number it, and look up which arcs repeat a piece.
    fn finish(self, vocab: usize, blank: usize, groups: Vec<usize>, num_groups: usize) -> Phrases {
        let mut alive = vec![false; self.into.len()];
        alive[ROOT] = true;
        for (end, _) in &self.ends {
            alive[*end] = true;
        }
        for node in (1..self.into.len()).rev() {
            if alive[node] {
                for (from, _) in &self.into[node] {
                    alive[*from] = true;
                }
            }
        }
        let mut number = vec![0; self.into.len()];
        let mut columns = vec![blank];
        let mut compact = HashMap::new();
        let mut first_arc = vec![0];
        let mut arcs: Vec<Arc> = Vec::new();
        for (old, into) in self.into.iter().enumerate().filter(|(old, _)| alive[*old]) {
            number[old] = first_arc.len() - 1;
            for (from, id) in into {
                let from = number[*from];
                let column = *compact.entry(*id).or_insert_with(|| {
                    columns.push(*id);
                    columns.len() - 1
                });
                let before = first_arc[from]..first_arc[from + 1];
                let repeats = arcs[before].iter().any(|arc| arc.column == column);
                arcs.push(Arc {
                    from,
                    column,
                    repeats,
                });
            }
            first_arc.push(arcs.len());
        }
        let ends = self.ends.into_iter();
        Phrases {
            vocab,
            columns,
            first_arc,
            arcs,
            ends: ends.map(|(node, phrase)| (number[node], phrase)).collect(),
            groups,
            num_groups,
            spelled: self.spelled,
        }
    }
}

/// One decode: the scores that the graph needs, and all working memory.
struct Search<'a> {
    graph: &'a Phrases,
    decoded: Decoded,
    prompt_frames: usize,
    /// Per row after the prompts: log-probability of every compact column.
    log_p: Vec<f64>,
    /// Probabilities of one row, divided by that of the best prefix so far.
    p: Vec<f64>,
    /// Per arc: paths whose last row has its piece.
    with_piece: Vec<f64>,
    /// Per node: paths whose last row is blank.
    with_blank: Vec<f64>,
    /// Per node: both.
    total: Vec<f64>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Phrases, scores: &[f32], decoded: Decoded, prompt_frames: usize) -> Self {
        let mut log_p =
            Vec::with_capacity((decoded.argmax.len() - prompt_frames) * graph.columns.len());
        let rows = scores.chunks_exact(graph.vocab).enumerate();
        for (t, row) in rows.skip(prompt_frames) {
            let best = row[decoded.argmax[t] as usize];
            let log_sum = f64::from(best) - f64::from(decoded.log_prob[t]);
            log_p.extend(graph.columns.iter().map(|c| f64::from(row[*c]) - log_sum));
        }
        Self {
            graph,
            decoded,
            prompt_frames,
            log_p,
            p: vec![0.0; graph.columns.len()],
            with_piece: vec![0.0; graph.num_arcs()],
            with_blank: vec![0.0; graph.num_nodes()],
            total: vec![0.0; graph.num_nodes()],
        }
    }

    fn num_frames(&self) -> usize {
        self.decoded.argmax.len() - self.prompt_frames
    }

    /// Decide for one phrase in a stretch, and add its tokens.
    fn one(&mut self, stretch: Range<usize>) -> Option<Hit> {
        let scale = self.forward(stretch.clone());
        let graph = self.graph;
        let mut groups = vec![0.0; graph.num_groups];
        for (node, phrase) in &graph.ends {
            groups[graph.groups[*phrase]] += self.total[*node];
        }
        let silence = self.total[ROOT];
        let best = largest(&groups, None)?;
        if groups[best] <= silence {
            return None;
        }
        let next = largest(&groups, Some(best));
        let (end, phrase) = self.best_end(best)?;
        let (num_tokens, speech_frames) = self.align(end, stretch.clone());
        let rows = self.prompt_frames + stretch.start..self.prompt_frames + stretch.end;
        let free = self.decoded.log_prob[rows].iter().map(|p| f64::from(*p));
        Some(Hit {
            phrase,
            runner_up: next.and_then(|group| Some(self.best_end(group)?.1)),
            log_prob: groups[best].ln() + scale,
            free_log_prob: free.sum(),
            margin: next.map_or(f64::INFINITY, |n| groups[best].ln() - groups[n].ln()),
            posterior: groups[best] / (groups.iter().sum::<f64>() + silence),
            first_frame: stretch.start,
            end_frame: stretch.end,
            speech_frames,
            num_tokens,
        })
    }

    /// The most probable (end, phrase) of a group after [`Self::forward`].
    fn best_end(&self, group: usize) -> Option<(usize, usize)> {
        let ends = self.graph.ends.iter().copied();
        ends.filter(|(_, phrase)| self.graph.groups[*phrase] == group)
            .max_by(|a, b| self.total[a.0].total_cmp(&self.total[b.0]))
    }

    /// Sum over all paths; leaves `total`, and returns the logarithm of its unit.
    fn forward(&mut self, stretch: Range<usize>) -> f64 {
        let graph = self.graph;
        self.with_piece.fill(0.0);
        self.with_blank.fill(0.0);
        self.total.fill(0.0);
        self.with_blank[ROOT] = 1.0;
        self.total[ROOT] = 1.0;
        let width = graph.columns.len();
        let (mut scale, mut most) = (0.0, 1.0_f64);
        for row in self.log_p[stretch.start * width..stretch.end * width].chunks_exact(width) {
            for (p, log_p) in self.p.iter_mut().zip(row) {
                *p = log_p.exp() / most;
            }
            scale += most.ln();
            let blank = self.p[BLANK];
            most = 0.0;
            // An arc begins at a lower node than it ends in: that one is still as it was.
            for node in (1..graph.num_nodes()).rev() {
                let mut sum = 0.0;
                for a in graph.arcs_into(node) {
                    let arc = graph.arcs[a];
                    let before = if arc.repeats {
                        let others = graph.arcs_into(arc.from);
                        let others = others.filter(|b| graph.arcs[*b].column != arc.column);
                        self.with_blank[arc.from] + others.map(|b| self.with_piece[b]).sum::<f64>()
                    } else {
                        self.total[arc.from]
                    };
                    let new = flush(self.p[arc.column] * (self.with_piece[a] + before));
                    self.with_piece[a] = new;
                    sum += new;
                }
                self.with_blank[node] = flush(blank * self.total[node]);
                self.total[node] = self.with_blank[node] + sum;
                most = most.max(self.total[node]);
            }
            self.with_blank[ROOT] = flush(blank * self.total[ROOT]);
            self.total[ROOT] = self.with_blank[ROOT];
            most = most.max(self.total[ROOT]);
            if most == 0.0 {
                break;
            }
        }
        scale
    }

    /// Add the tokens of the best path to an end; returns how many, and the rows with speech.
    fn align(&mut self, end: usize, stretch: Range<usize>) -> (usize, usize) {
        let graph = self.graph;
        // The nodes that lead to the end, and their arcs: state s < n is blank at node s.
        let mut wanted = vec![false; end + 1];
        wanted[end] = true;
        for node in (1..=end).rev() {
            if wanted[node] {
                for a in graph.arcs_into(node) {
                    wanted[graph.arcs[a].from] = true;
                }
            }
        }
        let nodes: Vec<usize> = (0..=end).filter(|node| wanted[*node]).collect();
        let n = nodes.len();
        let mut arcs = Vec::new(); // (from, column)
        let mut first = vec![0];
        for node in &nodes {
            for a in graph.arcs_into(*node) {
                let from = nodes.partition_point(|other| *other < graph.arcs[a].from);
                arcs.push((from, graph.arcs[a].column));
            }
            first.push(arcs.len());
        }
        let states = n + arcs.len();
        let mut best = vec![f64::NEG_INFINITY; states];
        best[ROOT] = 0.0;
        let mut back = vec![0_u32; states * stretch.len()];
        let width = graph.columns.len();
        let rows = self.log_p[stretch.start * width..stretch.end * width].chunks_exact(width);
        for (row, back) in rows.zip(back.chunks_exact_mut(states)) {
            for node in (0..n).rev() {
                for a in first[node]..first[node + 1] {
                    let (from, column) = arcs[a];
                    let mut came = n + a;
                    let others = (first[from]..first[from + 1]).filter(|b| arcs[*b].1 != column);
                    for state in others.map(|b| n + b).chain([from]) {
                        if best[state] > best[came] {
                            came = state;
                        }
                    }
                    back[n + a] = came as u32;
                }
                let mut came = node;
                for a in first[node]..first[node + 1] {
                    if best[n + a] > best[came] {
                        came = n + a;
                    }
                }
                back[node] = came as u32;
                best[node] = best[came] + row[BLANK];
                for a in first[node]..first[node + 1] {
                    best[n + a] = best[back[n + a] as usize] + row[arcs[a].1];
                }
            }
        }
        let mut state = n - 1;
        for a in first[n - 1]..first[n] {
            if best[n + a] > best[state] {
                state = n + a;
            }
        }
        self.trace(state, n, &arcs, &back, stretch)
    }

    fn trace(
        &mut self,
        mut state: usize,
        n: usize,
        arcs: &[(usize, usize)],
        back: &[u32],
        stretch: Range<usize>,
    ) -> (usize, usize) {
        let (states, width) = (n + arcs.len(), self.graph.columns.len());
        let found = &mut self.decoded;
        let first_token = found.token_ids.len();
        let (mut last, mut speech_frames) = (usize::MAX, 0);
        for t in (0..stretch.len()).rev() {
            let frame = stretch.start + t;
            let row = self.prompt_frames + frame;
            if state >= n {
                let column = arcs[state - n].1;
                let log_prob = self.log_p[frame * width + column].min(0.0) as f32;
                if state != last {
                    found.token_ids.push(self.graph.columns[column] as i32);
                    found.start_frame.push(frame as i32);
                    found.end_frame.push(frame as i32 + 1);
                    found.log_probs.push(log_prob);
                    found.entropies.push(found.entropy[row]);
                } else {
                    let token = found.token_ids.len() - 1;
                    found.start_frame[token] = frame as i32;
                    if log_prob >= found.log_probs[token] {
                        found.log_probs[token] = log_prob;
                        found.entropies[token] = found.entropy[row];
                    }
                }
            }
            let free = found.argmax[row] as usize != self.graph.columns[BLANK];
            speech_frames += usize::from(state >= n || free);
            last = state;
            state = back[t * states + state] as usize;
        }
        found.token_ids[first_token..].reverse();
        found.start_frame[first_token..].reverse();
        found.end_frame[first_token..].reverse();
        found.log_probs[first_token..].reverse();
        found.entropies[first_token..].reverse();
        (found.token_ids.len() - first_token, speech_frames)
    }

    /// The best path through phrases in any number, cut half way between two of them.
    fn stretches(&self) -> Vec<Range<usize>> {
        let spans = Loop::new(self.graph, self.num_frames()).run(&self.log_p);
        let mut start = 0;
        let mut out = Vec::with_capacity(spans.len());
        for (i, (_, end)) in spans.iter().enumerate() {
            let border = spans
                .get(i + 1)
                .map_or(self.num_frames(), |(next, _)| (end + next).div_ceil(2));
            out.push(start..border);
            start = border;
        }
        out
    }
}

/// Index of the largest value above zero, leaving out one; the first on ties.
fn largest(values: &[f64], without: Option<usize>) -> Option<usize> {
    let mut best: Option<usize> = None;
    for (i, value) in values.iter().enumerate() {
        if Some(i) != without && *value > best.map_or(0.0, |b| values[b]) {
            best = Some(i);
        }
    }
    best
}

/// Numbers with too few bits left become zero; they are also slow.
fn flush(value: f64) -> f64 {
    if value < TINY { 0.0 } else { value }
}

/// The best path to a state of the loop: its score, the phrases before, its first row.
#[derive(Debug, Clone, Copy)]
struct Token {
    score: f64,
    record: u32,
    start: u32,
}

const DEAD: Token = Token {
    score: f64::NEG_INFINITY,
    record: NONE,
    start: 0,
};

impl Token {
    fn or(self, other: Self) -> Self {
        if other.score > self.score {
            other
        } else {
            self
        }
    }

    fn after(self, log_p: f64) -> Self {
        Self {
            score: self.score + log_p,
            ..self
        }
    }
}

/// A phrase that ended: the record before it, and its rows.
#[derive(Debug, Clone, Copy)]
struct Record {
    before: u32,
    start: u32,
    end: u32,
}

/// Token passing over the graph with its ends joined to its root.
struct Loop<'a> {
    graph: &'a Phrases,
    /// Arcs into a node where a phrase ends.
    last_arcs: Vec<usize>,
    with_piece: Vec<Token>,
    with_blank: Vec<Token>,
    best: Vec<Token>,
    records: Vec<Record>,
}

impl<'a> Loop<'a> {
    fn new(graph: &'a Phrases, num_frames: usize) -> Self {
        let mut ends: Vec<usize> = graph.ends.iter().map(|(node, _)| *node).collect();
        ends.sort_unstable();
        ends.dedup();
        Self {
            graph,
            last_arcs: ends
                .into_iter()
                .flat_map(|node| graph.arcs_into(node))
                .collect(),
            with_piece: vec![DEAD; graph.num_arcs()],
            with_blank: vec![DEAD; graph.num_nodes()],
            best: vec![DEAD; graph.num_nodes()],
            records: Vec::with_capacity(2 * num_frames),
        }
    }

    /// Per phrase of the best path: its first row, and the row after its last.
    fn run(mut self, log_p: &[f64]) -> Vec<(usize, usize)> {
        let graph = self.graph;
        let width = graph.columns.len();
        let mut root = Token { score: 0.0, ..DEAD };
        // Two phrases that just ended, of different last pieces: the next phrase may begin at once
        // unless it begins with the same piece.
        let mut ended = [(DEAD, BLANK); 2];
        for (t, row) in log_p.chunks_exact(width).enumerate() {
            for node in (1..graph.num_nodes()).rev() {
                let mut best = DEAD;
                for a in graph.arcs_into(node) {
                    let arc = graph.arcs[a];
                    let before = if arc.from == ROOT {
                        let other = ended.iter().find(|(_, column)| *column != arc.column);
                        let token = root.or(other.map_or(DEAD, |(token, _)| *token));
                        Token {
                            start: t as u32,
                            ..token
                        }
                    } else if arc.repeats {
                        let others = graph.arcs_into(arc.from);
                        others
                            .filter(|b| graph.arcs[*b].column != arc.column)
                            .fold(self.with_blank[arc.from], |token, b| {
                                token.or(self.with_piece[b])
                            })
                    } else {
                        self.best[arc.from]
                    };
                    self.with_piece[a] = self.with_piece[a].or(before).after(row[arc.column]);
                    best = best.or(self.with_piece[a]);
                }
                self.with_blank[node] = self.best[node].after(row[BLANK]);
                self.best[node] = best.or(self.with_blank[node]);
            }
            root = root.or(ended[0].0).after(row[BLANK]);
            ended = self.end(t as u32 + 1);
        }
        self.history(root.or(ended[0].0).record)
    }

    /// The best phrase that ends here, and the best that ends with another piece.
    fn end(&mut self, end: u32) -> [(Token, usize); 2] {
        let mut ended = [(DEAD, BLANK); 2];
        for a in &self.last_arcs {
            let (token, column) = (self.with_piece[*a], self.graph.arcs[*a].column);
            if token.score > ended[0].0.score {
                if ended[0].1 != column {
                    ended[1] = ended[0];
                }
                ended[0] = (token, column);
            } else if token.score > ended[1].0.score && column != ended[0].1 {
                ended[1] = (token, column);
            }
        }
        for (token, _) in &mut ended {
            if token.score > f64::NEG_INFINITY {
                self.records.push(Record {
                    before: token.record,
                    start: token.start,
                    end,
                });
                token.record = self.records.len() as u32 - 1;
            }
        }
        ended
    }

    fn history(&self, mut record: u32) -> Vec<(usize, usize)> {
        let mut spans = Vec::new();
        while let Some(found) = self.records.get(record as usize) {
            spans.push((found.start as usize, found.end as usize));
            record = found.before;
        }
        spans.reverse();
        spans
    }
}
