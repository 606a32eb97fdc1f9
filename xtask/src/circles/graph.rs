//! Circles in a directed graph.

/// The strongly connected components of more than one node, after Tarjan (Depth-first search and linear graph algorithms, 1972).
/// `successors` has the nodes that each node points to.
pub(super) fn circles(successors: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        successors,
        order: vec![None; successors.len()],
        lowest: vec![0; successors.len()],
        on_stack: vec![false; successors.len()],
        stack: Vec::new(),
        visited: 0,
        circles: Vec::new(),
    };
    for node in 0..successors.len() {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    search.circles
}

struct Search<'a> {
    successors: &'a [Vec<usize>],
    /// When each node was visited.
    order: Vec<Option<usize>>,
    /// The earliest node on the stack that each node reaches, in that order.
    lowest: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    visited: usize,
    circles: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, node: usize) {
        let order = self.visited;
        self.visited += 1;
        self.order[node] = Some(order);
        self.lowest[node] = order;
        self.stack.push(node);
        self.on_stack[node] = true;
        for &next in &self.successors[node] {
            match self.order[next] {
                None => {
                    self.visit(next);
                    self.lowest[node] = self.lowest[node].min(self.lowest[next]);
                }
                Some(order) if self.on_stack[next] => self.lowest[node] = self.lowest[node].min(order),
                Some(_) => {}
            }
        }
        if self.lowest[node] != order {
            return;
        }
        let start = self.stack.iter().rposition(|other| *other == node).unwrap_or(0);
        let mut circle = self.stack.split_off(start);
        circle.iter().for_each(|node| self.on_stack[*node] = false);
        if circle.len() > 1 {
            circle.sort_unstable();
            self.circles.push(circle);
        }
    }
}
