//! What to do next about what a look shows: the weightiest trouble first.

use rubus_vocabulary::next_step::NextStep;
use rubus_vocabulary::units::percent;

use crate::rates::DiskLook;
use crate::{Header, Look};

/// From this share of the time on, waiting is felt.
const MUCH: f64 = 0.1;
/// From this share of all processors on, nothing else goes fast.
const BUSY: f64 = 0.9;

/// What a look asks its reader to do.
pub fn next(header: &Header, look: &Look) -> NextStep {
    of_disks(header)
        .or_else(|| of_network_disks(look))
        .or_else(|| of_supply(look))
        .or_else(|| of_waiting(look))
        .or_else(|| of_processors(look))
        .unwrap_or_else(|| NextStep::by_hand("nothing: nothing waits for long"))
}

/// A disk that fails or wears out.
fn of_disks(header: &Header) -> Option<NextStep> {
    let bad = header.health.iter().find(|one| one.needs_action())?;
    let fix = bad.fix.as_deref().unwrap_or("make a backup now");
    let words = format!("{}: {}", bad.disk, fix.trim_end_matches('.'));
    Some(match &bad.command {
        Some(command) => {
            let command: Vec<&str> = command.split_whitespace().collect();
            NextStep::command(&command, &words)
        }
        None => NextStep::by_hand(&words),
    })
}

fn of_network_disks(look: &Look) -> Option<NextStep> {
    let attached = &look.nbd.as_ref()?.attached;
    let (one, trouble) = attached.iter().find_map(|one| Some((one, one.trouble.as_ref()?)))?;
    let words = format!("see to the server of {}, which waits: {trouble}", one.device);
    Some(NextStep::by_hand(&words))
}

fn of_supply(look: &Look) -> Option<NextStep> {
    let throttling = look.throttling.as_ref()?;
    let words = match (throttling.undervoltage_now, throttling.throttled_now) {
        (true, _) => "give the board a better supply or cable: its voltage is too low now",
        (false, true) => "cool the board: it is throttled now",
        (false, false) => return None,
    };
    Some(NextStep::by_hand(words))
}

/// What programs wait for.
fn of_waiting(look: &Look) -> Option<NextStep> {
    let pressure = &look.pressure;
    if let Some(share) = pressure.memory_some.filter(|share| *share >= MUCH) {
        let words = format!("programs wait for memory {} of the time", percent(share));
        return Some(NextStep::command(&["rubus", "zswap"], &words));
    }
    let share = pressure.io_some.filter(|share| *share >= MUCH)?;
    let words = format!("programs wait for disks {} of the time", percent(share));
    let sum = |of: fn(&crate::DiskRates) -> f64| -> f64 {
        look.disks.iter().filter_map(|disk: &DiskLook| Some(of(disk.rates.as_ref()?))).sum()
    };
    let written = sum(|rates| rates.written_bytes_per_second);
    Some(if written > sum(|rates| rates.read_bytes_per_second) {
        NextStep::command(&["sudo", "rubus", "writers"], &format!("who writes: {words}"))
    } else {
        NextStep::command(&["rubus", "checkup"], &format!("what holds the disk back: {words}"))
    })
}

fn of_processors(look: &Look) -> Option<NextStep> {
    let cpu = look.cpu.as_ref()?;
    let busy = cpu.user + cpu.system + cpu.irq + cpu.softirq + cpu.steal;
    (busy >= BUSY).then(|| {
        let words =
            format!("it shows which program needs the processors: they are {} busy", percent(busy));
        NextStep::command(&["top"], &words)
    })
}
