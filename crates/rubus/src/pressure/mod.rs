//! More memory than there is, in a control group: who takes it (`eater`), what pages go to (`set_up`), who watches and
//! steers (`course`), and who takes everything away again, whatever happens (`keeper`).

mod counters;
pub mod course;
pub mod eater;
pub mod keeper;
pub mod set_up;
