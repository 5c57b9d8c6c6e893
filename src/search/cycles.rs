//! The graph of states that a search has met, and the cycles in it in which nobody gets on.
//!
//! A cycle is *fair* if every thread that could move in one of its states moves in it, so that no scheduler that is fair to threads leaves it by itself (strong
//! fairness). A fair cycle without progress (`vsrun_model::progress`: output, a connection, a thread that begins or ends, `VS_progress`) is a livelock. That a
//! thread goes round while another one that could end that is never let go on is none.
//!
//! Fair cycles are found as a Streett automaton is found to be empty (Emerson, Lei 1987): of each strongly connected component by transitions without progress, states
//! in which a thread could move that does not move within the component are taken out, and what is left is looked at again.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use vsrun_model::arena::{Choice, Seen};
use vsrun_model::states::State;
use vsrun_model::Uid;

/// A state by its number, in the order in which they were met.
type Node = usize;

#[derive(Debug, Default)]
struct Known {
    /// Threads that can move.
    enabled: Vec<Uid>,
    /// What leads to other states: the choice, where to, and whether it is progress.
    edges: Vec<(Choice, Node, bool)>,
}

/// The states that were met.
#[derive(Debug, Default)]
pub(super) struct Graph {
    numbers: HashMap<[u64; 2], Node>,
    states: Vec<Known>,
    /// First states of cycles that have been told.
    told: BTreeSet<Node>,
}

/// A fair cycle without progress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cycle {
    /// What leads from the first state to it.
    pub stem: Vec<Choice>,
    /// Once round.
    pub round: Vec<Choice>,
}

impl Graph {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// `None`: it is not told from others.
    fn number(&mut self, state: &State) -> Option<Node> {
        if !state.is_told() {
            return None;
        }
        let next = self.states.len();
        let number = *self.numbers.entry(state.digest).or_insert(next);
        if number == next {
            self.states.push(Known::default());
        }
        Some(number)
    }

    /// An execution has made that choice in a state and come to another one. In the first these operations were pending, where that is known.
    pub fn add(&mut self, (from, choice, to): (&State, Choice, &State), seen: Option<&[Seen]>) {
        let Some(at) = self.number(from) else { return };
        if let Some(seen) = seen {
            let can = seen.iter().filter(|s| s.choices > 0).map(|s| s.act.uid);
            self.states[at].enabled = can.collect();
        }
        let Some(number) = self.number(to) else { return };
        self.states[at].edges.push((choice, number, from.progress != to.progress));
    }

    /// Fair cycles without progress that have not been told yet, one for each part of the graph that has some.
    pub fn cycles(&mut self) -> Vec<Cycle> {
        let mut found = Vec::new();
        let mut parts = vec![(0..self.states.len()).collect::<Vec<Node>>()];
        let mut part_of = vec![0; self.states.len()];
        let mut next_part = 1;
        while let Some(part) = parts.pop() {
            part.iter().for_each(|&node| part_of[node] = next_part);
            let components = self.components(&part, &part_of, next_part);
            next_part += 1;
            for component in components {
                component.iter().for_each(|&node| part_of[node] = next_part);
                let inside = |node: Node| part_of[node] == next_part;
                let within = |node: &Node| {
                    let edges = self.states[*node].edges.iter();
                    edges.filter(|(_, to, progress)| !progress && inside(*to)).map(|(choice, ..)| choice.uid)
                };
                let moving: BTreeSet<Uid> = component.iter().flat_map(within).collect();
                let waits = |node: &Node| self.states[*node].enabled.iter().any(|uid| !moving.contains(uid));
                if !moving.is_empty() && !component.iter().any(waits) {
                    found.extend(self.round(&moving, &inside));
                } else if !moving.is_empty() {
                    let rest: Vec<Node> = component.iter().copied().filter(|node| !waits(node)).collect();
                    if !rest.is_empty() && rest.len() < component.len() {
                        parts.push(rest);
                    }
                }
                next_part += 1;
            }
        }
        found.sort_unstable_by_key(|&(node, _)| node);
        let new = found.into_iter().filter(|(node, _)| self.told.insert(*node));
        new.map(|(_, cycle)| cycle).collect()
    }

    /// Strongly connected components of a part by edges without progress (Tarjan), those with an edge in them.
    fn components(&self, part: &[Node], part_of: &[usize], number: usize) -> Vec<Vec<Node>> {
        const NEW: usize = usize::MAX;
        let mut index: BTreeMap<Node, usize> = part.iter().map(|&node| (node, NEW)).collect();
        let mut low: BTreeMap<Node, usize> = BTreeMap::new();
        let (mut stack, mut on_stack, mut found) = (Vec::new(), BTreeSet::new(), Vec::new());
        let mut next = 0;
        for &root in part {
            if index[&root] != NEW {
                continue;
            }
            let mut path = vec![(root, 0)];
            while let Some((node, at)) = path.pop() {
                if at == 0 {
                    index.insert(node, next);
                    low.insert(node, next);
                    next += 1;
                    stack.push(node);
                    on_stack.insert(node);
                }
                let edges = &self.states[node].edges;
                let open = (at..edges.len()).find(|&n| !edges[n].2 && part_of[edges[n].1] == number);
                let Some(n) = open else {
                    // All is known of it.
                    if low[&node] == index[&node] {
                        let from = stack.iter().rposition(|&other| other == node).unwrap_or(0);
                        let component = stack.split_off(from);
                        component.iter().for_each(|other| {
                            on_stack.remove(other);
                        });
                        let itself = edges.iter().any(|(_, to, progress)| !progress && *to == node);
                        if component.len() > 1 || itself {
                            found.push(component);
                        }
                    }
                    if let Some(&(above, _)) = path.last() {
                        let least = low[&above].min(low[&node]);
                        low.insert(above, least);
                    }
                    continue;
                };
                path.push((node, n + 1));
                let to = edges[n].1;
                if index[&to] == NEW {
                    path.push((to, 0));
                } else if on_stack.contains(&to) {
                    let least = low[&node].min(index[&to]);
                    low.insert(node, least);
                }
            }
        }
        found
    }

    /// From the state of a component that is nearest to the first one, once round so that each of `moving` makes a step.
    fn round(&self, moving: &BTreeSet<Uid>, inside: &dyn Fn(Node) -> bool) -> Option<(Node, Cycle)> {
        let (stem, start) = self.way(0, inside, &|_, _, _| true)?;
        let (mut at, mut round) = (start, Vec::new());
        let mut left = moving.clone();
        let stays = |_: &Choice, to: Node, progress: bool| !progress && inside(to);
        while let Some(&uid) = left.first() {
            let edge = |node: Node| {
                let mut edges = self.states[node].edges.iter();
                edges.find(|(choice, to, progress)| choice.uid == uid && stays(choice, *to, *progress))
            };
            let (way, node) = self.way(at, &|node| edge(node).is_some(), &stays)?;
            let &(choice, to, _) = edge(node)?;
            round.extend(way);
            round.push(choice);
            round.iter().for_each(|choice: &Choice| {
                left.remove(&choice.uid);
            });
            at = to;
        }
        round.extend(self.way(at, &|node| node == start, &stays)?.0);
        Some((start, Cycle { stem, round }))
    }

    /// A shortest way from a state to one that is wanted, by edges that may be taken.
    fn way(
        &self,
        from: Node,
        wanted: &dyn Fn(Node) -> bool,
        may: &dyn Fn(&Choice, Node, bool) -> bool,
    ) -> Option<(Vec<Choice>, Node)> {
        let mut before: HashMap<Node, Option<(Node, Choice)>> = HashMap::from([(from, None)]);
        let mut next = VecDeque::from([from]);
        while let Some(node) = next.pop_front() {
            if wanted(node) {
                let (mut way, mut at) = (Vec::new(), node);
                while let Some((earlier, choice)) = before[&at] {
                    way.push(choice);
                    at = earlier;
                }
                way.reverse();
                return Some((way, node));
            }
            for (choice, to, progress) in &self.states[node].edges {
                if may(choice, *to, *progress) && !before.contains_key(to) {
                    before.insert(*to, Some((node, *choice)));
                    next.push_back(*to);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vsrun_model::{Act, Kind};

    fn state(n: u64, progress: u64) -> State {
        State { digest: [n + 1, 7], progress }
    }

    fn choice(uid: u64) -> Choice {
        Choice::new(Uid(uid), 0, Kind::YIELD)
    }

    /// Edges (from, thread, to) without progress; in each state those threads can move that are named.
    fn graph(edges: &[(u64, u64, u64)], enabled: &[&[u64]]) -> Graph {
        let mut graph = Graph::default();
        for &(from, uid, to) in edges {
            let seen: Vec<Seen> = enabled[from as usize]
                .iter()
                .map(|&uid| Seen { act: Act { uid: Uid(uid), ..Act::NOTHING }, choices: 1, asleep: 0 })
                .collect();
            graph.add((&state(from, 0), choice(uid), &state(to, 0)), Some(&seen));
        }
        graph
    }

    fn uids(choices: &[Choice]) -> Vec<u64> {
        choices.iter().map(|choice| choice.uid.0).collect()
    }

    #[test]
    fn who_could_move_and_does_not_makes_a_cycle_unfair() {
        // Thread 1 goes round, thread 2 could go on.
        let mut unfair = graph(&[(0, 1, 1), (1, 1, 0), (0, 2, 2), (1, 2, 3)], &[&[1, 2], &[1, 2], &[], &[]]);
        assert_eq!(unfair.cycles(), []);
        // The other one cannot.
        let mut fair = graph(&[(0, 1, 1), (1, 1, 0)], &[&[1], &[1]]);
        let cycles = fair.cycles();
        assert_eq!((cycles.len(), uids(&cycles[0].stem), uids(&cycles[0].round)), (1, vec![], vec![1, 1]));
        assert_eq!(fair.cycles(), [], "it is told once");
    }

    #[test]
    fn a_thread_that_can_move_in_some_states_only_has_to_move_in_these() {
        // 0 -1-> 1 -1-> 0, and from 1 thread 2 leads out for good: a fair scheduler takes it.
        let mut out = graph(&[(0, 1, 1), (1, 1, 0), (1, 2, 2)], &[&[1], &[1, 2], &[]]);
        assert_eq!(out.cycles(), []);
        // There is a smaller cycle in which thread 2 cannot move.
        let mut inner = graph(&[(0, 1, 1), (1, 1, 2), (2, 1, 1), (2, 1, 0), (0, 2, 3)], &[&[1, 2], &[1], &[1], &[]]);
        let cycles = inner.cycles();
        assert_eq!((cycles.len(), uids(&cycles[0].stem), uids(&cycles[0].round)), (1, vec![1], vec![1, 1]));
    }

    #[test]
    fn each_thread_that_moves_in_it_makes_a_step_of_the_round() {
        let edges = [(0, 9, 1), (1, 1, 2), (2, 2, 1), (1, 3, 3), (3, 1, 1)];
        let mut graph = graph(&edges, &[&[9], &[1, 3], &[2], &[1]]);
        let cycles = graph.cycles();
        assert_eq!(cycles.len(), 1);
        assert_eq!(uids(&cycles[0].stem), [9]);
        let round: BTreeSet<u64> = uids(&cycles[0].round).into_iter().collect();
        assert_eq!(round, BTreeSet::from([1, 2, 3]));
    }

    #[test]
    fn progress_is_no_part_of_a_livelock() {
        let mut graph = graph(&[(0, 1, 1)], &[&[1]]);
        let seen = [Seen { act: Act { uid: Uid(1), ..Act::NOTHING }, choices: 1, asleep: 0 }];
        graph.add((&state(1, 0), choice(1), &state(0, 5)), Some(&seen));
        assert_eq!(graph.cycles(), []);
        graph.add((&state(1, 0), choice(1), &state(0, 0)), None);
        assert_eq!(graph.cycles().len(), 1);
    }
}
