//! Who waits for whom: which threads cannot go on, and circles among them. Pure.

use std::collections::VecDeque;

/// What ends the wait of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// Something else than the threads of the graph may let it go on, or it does not wait.
    pub may_go_on: bool,
    /// Each of these threads, by position, could; nobody else.
    pub enders: Vec<usize>,
    /// These have what it waits for, and not only could do something for it.
    pub named: bool,
}

/// Which threads cannot go on: all who could end their wait cannot either. The greatest such set.
pub(super) fn stuck(nodes: &[Node]) -> Vec<bool> {
    let mut stuck: Vec<bool> = nodes.iter().map(|node| !node.may_go_on).collect();
    loop {
        // A thread that waits does not end its own wait.
        let helped = |(t, node): (usize, &Node)| stuck[t] && node.enders.iter().any(|&e| e != t && !stuck[e]);
        let Some(t) = nodes.iter().enumerate().position(helped) else { return stuck };
        stuck[t] = false;
    }
}

/// Circles of threads that cannot go on. No two have a thread in common. A thread that any of several could help waits for none of
/// them in particular.
pub(super) fn circles(nodes: &[Node], stuck: &[bool]) -> Vec<Vec<usize>> {
    let next = |t: usize| match &nodes[t] {
        Node { named: false, enders, .. } if enders.len() > 1 => Vec::new(),
        node => node.enders.iter().copied().filter(|&e| stuck[e]).collect(),
    };
    disjoint(nodes.len(), &|t| stuck[t], &next)
}

/// Circles of threads that wait for what the next one's process has. There is somebody who may go on and could help: another thread
/// of that process.
pub(super) fn possible(nodes: &[Node], stuck: &[bool]) -> Vec<Vec<usize>> {
    let waits = |t: usize| !stuck[t] && !nodes[t].may_go_on && nodes[t].named;
    let next = |t: usize| nodes[t].enders.iter().copied().filter(|&e| e != t && waits(e)).collect();
    disjoint(nodes.len(), &waits, &next)
}

/// The shortest circles through threads that are `members`, those of the lowest threads first.
fn disjoint(count: usize, members: &dyn Fn(usize) -> bool, next: &dyn Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    let mut taken = vec![false; count];
    let mut found = Vec::new();
    for start in (0..count).filter(|&t| members(t)) {
        match shortest(start, count, next) {
            Some(circle) if circle.iter().all(|&t| !taken[t]) => {
                circle.iter().for_each(|&t| taken[t] = true);
                found.push(circle);
            }
            _ => {}
        }
    }
    found
}

/// The shortest way from `start` back to it; `start` first.
fn shortest(start: usize, count: usize, next: &dyn Fn(usize) -> Vec<usize>) -> Option<Vec<usize>> {
    let mut from = vec![None; count];
    let mut open = VecDeque::from([start]);
    while let Some(t) = open.pop_front() {
        for to in next(t) {
            if to == start {
                let mut path = vec![t];
                while let Some(before) = from[path[path.len() - 1]] {
                    path.push(before);
                }
                path.reverse();
                return Some(path);
            }
            if from[to].is_none() {
                from[to] = Some(t);
                open.push_back(to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(enders: &[usize]) -> Node {
        Node { may_go_on: false, enders: enders.to_vec(), named: true }
    }

    fn idle(enders: &[usize]) -> Node {
        Node { named: false, ..waits(enders) }
    }

    fn free() -> Node {
        Node { may_go_on: true, ..Node::default() }
    }

    fn found(nodes: &[Node]) -> (Vec<bool>, Vec<Vec<usize>>, Vec<Vec<usize>>) {
        let stuck = stuck(nodes);
        let (circles, possible) = (circles(nodes, &stuck), possible(nodes, &stuck));
        (stuck, circles, possible)
    }

    #[test]
    fn a_circle_and_who_waits_for_it() {
        let nodes = [waits(&[1]), waits(&[2]), waits(&[1]), free(), waits(&[3])];
        assert_eq!(found(&nodes), (vec![true, true, true, false, false], vec![vec![1, 2]], vec![]));
    }

    #[test]
    fn one_that_can_be_helped_by_somebody_else_is_only_possible() {
        assert_eq!(found(&[waits(&[1]), waits(&[0, 2]), free()]), (vec![false; 3], vec![], vec![vec![0, 1]]));
        // Who waits for anybody, as the threads of a pool do, is no part of a circle as long as somebody may go on.
        assert_eq!(found(&[idle(&[1, 2]), idle(&[0, 2]), free()]), (vec![false; 3], vec![], vec![]));
        // A time limit: it goes on by itself.
        assert_eq!(found(&[waits(&[1]), free()]), (vec![false; 2], vec![], vec![]));
    }

    #[test]
    fn all_of_several_cannot_help() {
        let nodes = [waits(&[1, 2]), idle(&[0]), idle(&[0, 1])];
        assert_eq!(found(&nodes), (vec![true; 3], vec![vec![0, 1]], vec![]));
        // Of these, nobody waits for somebody in particular.
        let nodes = [idle(&[1, 2]), idle(&[0, 2]), idle(&[0, 1])];
        assert_eq!(found(&nodes), (vec![true; 3], vec![], vec![]));
    }

    #[test]
    fn nobody_can_end_it() {
        assert_eq!(found(&[waits(&[]), free()]), (vec![true, false], vec![], vec![]));
    }

    #[test]
    fn a_thread_that_waits_for_itself() {
        assert_eq!(found(&[free(), waits(&[1])]), (vec![false, true], vec![vec![1]], vec![]));
    }

    #[test]
    fn two_circles() {
        let nodes = [waits(&[3]), waits(&[2]), waits(&[1]), waits(&[0])];
        assert_eq!(found(&nodes).1, [vec![0, 3], vec![1, 2]]);
    }

    #[test]
    fn the_shortest_way_back() {
        let nodes = [waits(&[1]), waits(&[2, 3]), waits(&[3]), waits(&[0])];
        assert_eq!(found(&nodes).1, [vec![0, 1, 3]]);
    }
}
