//! From texts to the graph of their spellings.

use std::collections::HashMap;

use super::{Arc, Phrases, ROOT};

/// The graph while it grows: a trie over bytes, and the pieces that fit into it.
#[derive(Default)]
pub(super) struct Draft {
    children: HashMap<(usize, u8), usize>,
    /// Per node: the arcs into it, as (from, piece). A node without arcs cannot be spelled.
    into: Vec<Vec<(usize, usize)>>,
    ends: Vec<(usize, usize)>,
    spelled: Vec<bool>,
}

impl Draft {
    pub(super) fn new(ids: &HashMap<&[u8], Vec<usize>>, texts: &[Vec<Vec<u8>>]) -> Self {
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
    pub(super) fn finish(
        self,
        vocab: usize,
        blank: usize,
        groups: Vec<usize>,
        num_groups: usize,
    ) -> Phrases {
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
