//! The pages of the commands that are the roof's own; each room has those of its commands.

use rubus_vocabulary::verb::{GUARDED, MISTAKE, PLAIN, Page};

/// In the order of the commands.
pub const PAGES: &[Page] = &[
    Page {
        name: "rubus",
        statuses: &[
            (0, "fine"),
            (1, "the answer is no: a check failed, a run was cut short"),
            MISTAKE,
            GUARDED,
            (4, "a change failed and was undone"),
            (5, "a change failed and could not be undone"),
        ],
        examples: &[
            ("rubus", "Measure the disk under the current directory: what limits it?"),
            ("rubus survey", "Look at the machine, and list settings worth changing."),
            ("rubus advise desktop", "Say which disk or setting would help, and how much."),
            (
                "rubus plan desktop device=/dev/sda",
                "Show how the system would move to that disk. Changes nothing.",
            ),
            ("sudo rubus undo", "Take back the last change."),
        ],
    },
    Page {
        name: "rubus-survey",
        statuses: PLAIN,
        examples: &[
            (
                "rubus survey --save board.tar",
                "Save what was read, without serial numbers, for another machine.",
            ),
            ("rubus --machine board.tar survey", "Show the machine that was saved."),
        ],
    },
    Page {
        name: "rubus-explain",
        statuses: PLAIN,
        examples: &[(
            "rubus explain usb3-disk-at-usb2",
            "Say when that finding speaks, why it is believed, and how to disprove it.",
        )],
    },
    Page {
        name: "rubus-advise",
        statuses: &[(0, "answered"), (1, "a measurement failed (only with --measure)"), MISTAKE],
        examples: &[
            (
                "rubus advise server --with nvme",
                "Rank the disks here and an NVMe SSD for a small server.",
            ),
            (
                "rubus advise --measure",
                "Measure what is unknown first: better advice, some minutes.",
            ),
        ],
    },
    Page {
        name: "rubus-completions",
        statuses: PLAIN,
        examples: &[(
            "rubus completions bash > ~/.local/share/bash-completion/completions/rubus",
            "Complete commands and options in new shells.",
        )],
    },
    Page {
        name: "rubus-manual",
        statuses: PLAIN,
        examples: &[("rubus manual | man -l -", "Read the manual page without installing it.")],
    },
];
