//! The sums: how probable each phrase is in a stretch of rows.

use std::ops::Range;

use crate::ctc::Decoded;

use super::{BLANK, Hit, Phrases, ROOT};

/// Prefixes this far behind the best one of the same frame are taken as impossible.
const TINY: f64 = 1e-290;

/// One decode: the scores that the graph needs, and all working memory.
pub(super) struct Search<'a> {
    pub(super) graph: &'a Phrases,
    pub(super) decoded: Decoded,
    pub(super) prompt_frames: usize,
    /// Per row after the prompts: log-probability of every compact column.
    pub(super) log_p: Vec<f64>,
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
    pub(super) fn new(
        graph: &'a Phrases,
        scores: &[f32],
        decoded: Decoded,
        prompt_frames: usize,
    ) -> Self {
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

    pub(super) fn num_frames(&self) -> usize {
        self.decoded.argmax.len() - self.prompt_frames
    }

    /// Decide for one phrase in a stretch, and add its tokens.
    pub(super) fn one(&mut self, stretch: Range<usize>) -> Option<Hit> {
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
