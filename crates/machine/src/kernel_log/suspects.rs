//! Why a USB disk resets or drops off the bus: the possible causes, the likeliest first, each with what the log has for or against it.

use rubus_vocabulary::kernel_log::TroubleKind::{self, *};

use super::judge::{Cause, Health};
use super::words::Advice;

/// A possible cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The cause that is possible.
    pub cause: Cause,
    /// What the log has for it, or that it has nothing.
    pub evidence: String,
    /// What to do about it.
    pub fix: String,
    /// The command that does it, where this program has one.
    pub command: Option<String>,
}

/// The order in which causes without evidence are worth trying: by how often they turn out to be it, and how cheap the try is.
const USUAL_ORDER: [Cause; 4] = [Cause::Supply, Cause::Uas, Cause::Connection, Cause::Disk];

/// The causes of a USB disk's trouble in the order to try them; none for trouble of another kind.
pub fn suspects(health: &Health, is_uas: bool) -> Vec<Suspect> {
    let is_unsteady = [UsbDisconnect, UsbReset, UsbEnumeration, UasAbort]
        .iter()
        .any(|kind| times(health, *kind) > 0);
    if !is_unsteady {
        return Vec::new();
    }
    let mut order: Vec<Cause> = USUAL_ORDER
        .into_iter()
        .filter(|cause| *cause != Cause::Uas || is_uas || times(health, UasAbort) > 0)
        .collect();
    if !order.contains(&health.cause) {
        order.push(health.cause);
    }
    // The sort is stable: what was judged comes first, and the rest keeps its order.
    order.sort_by_key(|cause| *cause != health.cause);
    order.into_iter().map(|cause| suspect(health, cause)).collect()
}

fn suspect(health: &Health, cause: Cause) -> Suspect {
    let (kinds, without): (&[TroubleKind], _) = match cause {
        Cause::Supply => (
            &[Undervoltage, OverCurrent],
            "no low voltage was logged, but a port may give a disk too little without a word",
        ),
        Cause::Uas => {
            (&[UasAbort], "this machine has it on UAS; the log has no command that UAS gave up")
        }
        Cause::Connection | Cause::WentAway => (
            &[UsbEnumeration, UsbReset, UsbDisconnect],
            "the log has nothing of the cable or the port",
        ),
        Cause::Controller => (&[UsbController], "the log has no USB controller that stopped"),
        Cause::Disk => (&[Medium, Hardware], "the disk reported no bad place"),
        Cause::NoAnswer => (&[AtaTimeout], "the log has no command without an answer"),
        Cause::CommandQueue => (&[CardQueue], "the log has no queue that stalled"),
        Cause::Filesystem => (&[Filesystem, FilesystemReadOnly], "the filesystem has no errors"),
    };
    let counts = kinds.iter().map(|kind| (*kind, times(health, *kind)));
    let told = Health {
        cause,
        evidence: counts.filter(|(_, times)| *times > 0).collect(),
        ..health.clone()
    };
    let words = told.evidence_words();
    let Advice { fix, command, .. } = told.advice();
    Suspect {
        cause,
        evidence: if words.is_empty() { without.into() } else { words.join(", ") },
        fix,
        command,
    }
}

fn times(health: &Health, kind: TroubleKind) -> u64 {
    health.evidence.iter().find(|(one, _)| *one == kind).map_or(0, |(_, times)| *times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(cause: Cause, evidence: &[(TroubleKind, u64)]) -> Health {
        Health { part: "sda".into(), cause, is_failing: false, evidence: evidence.to_vec() }
    }

    fn order(health: &Health, is_uas: bool) -> Vec<Cause> {
        suspects(health, is_uas).into_iter().map(|suspect| suspect.cause).collect()
    }

    #[test]
    fn what_has_evidence_comes_first_and_the_rest_in_the_order_to_try() {
        let resets = health(Cause::Connection, &[(UsbReset, 5)]);
        assert_eq!(
            order(&resets, true),
            [Cause::Connection, Cause::Supply, Cause::Uas, Cause::Disk]
        );
        assert_eq!(order(&resets, false), [Cause::Connection, Cause::Supply, Cause::Disk]);
        let aborts = health(Cause::Uas, &[(UasAbort, 4), (UsbReset, 4)]);
        assert_eq!(
            order(&aborts, false),
            [Cause::Uas, Cause::Supply, Cause::Connection, Cause::Disk]
        );
        let first = &suspects(&aborts, true)[0];
        assert_eq!(first.evidence, "4 commands that UAS gave up");
        assert_eq!(first.command.as_deref(), Some("rubus plan usb-quirk device=/dev/sda"));
    }

    #[test]
    fn the_cause_that_was_judged_is_never_left_out() {
        let gone = health(Cause::WentAway, &[(UsbDisconnect, 1), (Io, 2)]);
        assert_eq!(
            order(&gone, false),
            [Cause::WentAway, Cause::Supply, Cause::Connection, Cause::Disk]
        );
        let dead = health(Cause::Controller, &[(UsbController, 1), (UsbDisconnect, 1)]);
        let first = &suspects(&dead, false)[0];
        assert_eq!(
            (first.cause, first.evidence.as_str()),
            (Cause::Controller, "that the USB controller stopped")
        );
        assert!(first.fix.contains("firmware"), "{}", first.fix);
    }

    #[test]
    fn other_trouble_than_of_the_bus_has_no_suspects() {
        assert!(suspects(&health(Cause::Disk, &[(Medium, 1)]), true).is_empty());
    }
}
