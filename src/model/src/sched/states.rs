//! States that are told apart: an execution that comes to one that was met before ends there, since what comes after it is known, or will be.
//!
//! Who carries the threads says what tells their memory apart, before each decision; what tells the world apart is [`World::digest`](crate::World).

use crate::arena::{Arena, MAX_STATES};
use crate::base::mixer::{Mixer, Purpose};
use crate::base::NONE;
use crate::state::pieces::{kind, Piece};
use crate::state::visited::{Met, State};
use crate::state::End;

impl Arena {
    /// The state before the next transition is to be told.
    pub fn is_to_tell_state(&self) -> bool {
        self.plan.states && self.taken >= u64::from(self.plan.prefix_len) && self.world.end == End::RUNNING
    }

    /// What tells the state before the next transition apart is told piece by piece, too.
    #[inline]
    pub fn tells_pieces(&self) -> bool {
        self.plan.pieces && self.is_to_tell_state()
    }

    /// That begins.
    pub fn begins_pieces(&mut self) {
        self.pieces.add([kind::STATE, self.taken]);
    }

    /// A piece of it.
    pub fn adds_piece(&mut self, piece: Piece) {
        self.pieces.add(piece);
    }

    /// Within the prefix nobody tells states: from where on they are not told apart is known.
    pub(super) fn note_untold(&mut self) {
        let at = u64::from(self.plan.untold);
        self.world.untold |= at > 0 && self.taken + 1 >= at;
    }

    /// The execution has come to a state. `memory`: a hash of all that the threads have in memory and registers, and of what the kernel keeps for them;
    /// `None`: that is not known.
    pub fn comes_to_state(&mut self, memory: Option<[u64; 2]>) {
        if !self.is_to_tell_state() {
            return;
        }
        let world = self.world.digest();
        let uses = self.files.digest_of_uses();
        if self.tells_pieces() {
            self.world.each_piece(&mut |at, is| self.pieces.add([at, is[0]]));
            self.pieces.add([kind::USES, uses[0]]);
        }
        let digest = memory.zip(world).map(|both| Mixer::of(Purpose::STATE, &(both, uses)));
        let at = self.taken as usize;
        let state = State { digest: digest.unwrap_or_default(), progress: self.world.progress.at };
        let kept = at < MAX_STATES;
        if kept {
            self.states[at] = state;
        }
        let Some(digest) = digest.filter(|_| kept) else {
            self.world.untold = true;
            return;
        };
        if self.visited.meet(digest) == Met::Before {
            self.world.finish(End::MET, self.world.current, NONE, 0);
        }
    }
}
