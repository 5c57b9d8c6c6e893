//! Which operations depend on each other, and where to look for those.

pub mod before;
pub mod depend;
pub mod drains;
pub mod index;
pub mod observe;
