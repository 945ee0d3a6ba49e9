//! The best path of one phrase: its pieces and their rows.

use std::ops::Range;

use super::search::Search;
use super::{BLANK, ROOT};

impl Search<'_> {
    /// Add the tokens of the best path to an end; returns how many, and the rows with speech.
    pub(super) fn align(&mut self, end: usize, stretch: Range<usize>) -> (usize, usize) {
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
}
