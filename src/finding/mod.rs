//! What vsrun found, as plain data: made once by the runtime, which looks at a world that stands still ([`Finding`]), put
//! together by the exploration ([`Summary`]), and turned into reports, scenarios and JSON by others.

mod apart;
mod ending;
mod explained;
mod gone;
mod hunt;
mod outcomes;
mod people;
mod place;
mod seen;
mod shortened;
mod status;
mod summary;
mod swarm;
mod touched;
mod words;
mod worked;

pub use apart::{Apart, Differing, Nearest, Without};
pub use ending::{BugKind, Ending, Intrusion, SignalView, Verdict};
pub use explained::{Explained, Move, Shows, Turn};
pub use gone::{GoneView, OriginView};
pub use hunt::{Hunt, Phase};
pub use outcomes::{OutcomeView, Outcomes, Printed};
pub use people::People;
pub use place::{LineView, PlaceView};
pub use seen::{
    CycleLink, Finding, ObjectView, Pending, ProcessView, RaceView, StepView, ThreadStatus, ThreadView, UseView,
};
pub use shortened::{Length, Shortened};
pub use status::ProgramStatus;
pub use summary::{Bug, FewRun, Summary};
pub use swarm::{LotKind, LotWorked, Missed, Swarm, SwarmBug};
pub use touched::{Touched, Use, Uses};
pub(crate) use words::words;
pub use words::{signal_name, Names, Thing, Words};
pub use worked::Worked;
