//! Phrases one after another: the best path through the graph with its ends joined to its root.

use std::ops::Range;

use super::search::Search;
use super::{BLANK, Phrases, ROOT};

const NONE: u32 = u32::MAX;

impl Search<'_> {
    /// The best path through phrases in any number, cut half way between two of them.
    pub(super) fn stretches(&self) -> Vec<Range<usize>> {
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
