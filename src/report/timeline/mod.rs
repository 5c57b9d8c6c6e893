//! A picture of one execution: lanes of threads, steps, what came directly before what, and who waits for whom at the end. As a page for people
//! ([`html()`]), for Perfetto ([`perfetto()`]), for Graphviz ([`dot()`]), and as data ([`json()`]).

mod data;
mod html;
mod picture;

pub(crate) use data::waits;
pub use data::{dot, json, perfetto};
pub use html::html;
pub(crate) use picture::{graph, lanes};
pub use picture::{About, Edge, Graph, Lane, Node, Picture};
