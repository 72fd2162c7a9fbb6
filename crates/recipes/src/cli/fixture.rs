//! A change for the tests of the verbs.

use rubus_host::simulated::rehearsal::SimulatedMachine;

use rubus_change::apply::{Change, ChangeStore};
use rubus_change::fixture::plans::small_plan;

/// A change that is applied.
pub(super) fn applied() -> Change {
    let machine = &mut SimulatedMachine::new().directory("/changes");
    let change = ChangeStore::at("/changes").begin(small_plan(), Vec::new(), "now", machine);
    let mut change = change.unwrap();
    change.state.is_finished = true;
    change
}
