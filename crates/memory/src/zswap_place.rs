//! What to do about zswap by where swap is.

use rubus_machine::swap_place::{SwapPlace, WEIGH};
use rubus_vocabulary::machine::SwapArea;
use rubus_vocabulary::next_step::NextStep;

/// zswap stands before a swap on a disk that takes it; elsewhere the set-ups are weighed first.
pub(crate) fn turn_on(areas: &[SwapArea], place: SwapPlace) -> NextStep {
    match place {
        SwapPlace::OnDisks => NextStep::command(&["rubus", "plan", "zswap"], "to turn it on"),
        SwapPlace::InMemory => NextStep::by_hand(
            "nothing: swap is in zram, which compresses too, and no disk here takes swap",
        ),
        SwapPlace::Open if areas.is_empty() => {
            where_swap_belongs("it says where to put swap, which zswap needs")
        }
        SwapPlace::Open if is_in_zram(areas) => where_swap_belongs(
            "swap is in zram, which compresses too; it weighs that against zswap before a disk",
        ),
        SwapPlace::Open => where_swap_belongs("it weighs better places for swap than this one"),
    }
}

/// The verb that decides on the place of swap, for the findings of a survey as well.
pub(crate) fn where_swap_belongs(words: &str) -> NextStep {
    let command: Vec<&str> = WEIGH.split(' ').collect();
    NextStep::command(&command, words)
}

/// Whether no swap is on a disk.
pub(crate) fn is_in_zram(areas: &[SwapArea]) -> bool {
    areas.iter().all(|area| {
        let device = area.device.text();
        device.is_some_and(|device| device.starts_with("zram"))
    })
}

#[cfg(test)]
mod tests {
    use rubus_vocabulary::fact::Fact;

    use super::*;

    fn area(device: &str) -> SwapArea {
        SwapArea {
            path: format!("/dev/{device}"),
            kind: "partition".into(),
            size_bytes: 2 << 30,
            used_bytes: 0,
            priority: -2,
            device: Fact::known(device.into(), "a file"),
        }
    }

    #[test]
    fn where_swap_is_in_no_good_place_the_set_ups_are_weighed() {
        let next = |areas: &[SwapArea], place| {
            let step = turn_on(areas, place);
            step.command.map_or(step.words, |command| command.join(" "))
        };
        let (on_disk, in_memory) = ([area("sda3")], [area("zram0")]);
        assert_eq!(next(&on_disk, SwapPlace::OnDisks), "rubus plan zswap");
        for areas in [&on_disk[..], &in_memory, &[]] {
            assert_eq!(next(areas, SwapPlace::Open), WEIGH);
        }
        let nothing = next(&in_memory, SwapPlace::InMemory);
        assert!(nothing.starts_with("nothing: swap is in zram"), "{nothing}");
    }
}
