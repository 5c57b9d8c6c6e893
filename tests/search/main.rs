//! The model and the searches, in one binary: each of these files alone would be linked with the whole library. What they have in common is the
//! machine that runs model programs ([`interp`]).

mod bounded;
mod classic;
mod corpus;
mod counts;
mod disorder;
mod interp;
mod mld;
mod model;
mod optimal;
mod oracle;
mod pieces;
mod predict;
mod race;
mod sharing;
mod shrink;
mod stateful;
mod tso;
mod walk;
