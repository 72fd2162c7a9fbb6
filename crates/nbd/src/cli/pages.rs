//! Exit statuses and examples of `rubus nbd`.

use rubus_vocabulary::verb::{GUARDED, MISTAKE, PLAIN, Page};

/// In the order of the commands.
pub const PAGES: &[Page] = &[
    Page {
        name: "rubus-nbd-info",
        statuses: PLAIN,
        examples: &[(
            "rubus nbd info nbd://192.168.1.5/disk",
            "Show size, block sizes and features of an export.",
        )],
    },
    Page {
        name: "rubus-nbd-list",
        statuses: PLAIN,
        examples: &[("rubus nbd list nbd://192.168.1.5", "List the exports of a server.")],
    },
    Page {
        name: "rubus-nbd-copy",
        statuses: &[
            (0, "complete"),
            (1, "cut short, or parts of SRC could not be read"),
            MISTAKE,
            GUARDED,
        ],
        examples: &[(
            "rubus nbd copy nbd://192.168.1.5/disk disk.img",
            "Copy a network disk to a file. Repeat the command to resume.",
        )],
    },
    Page {
        name: "rubus-nbd-clones-list",
        statuses: &[(0, "all are usable"), (1, "a clone is not usable"), MISTAKE],
        examples: &[("rubus nbd clones list clones/", "Show what each client wrote.")],
    },
    Page {
        name: "rubus-nbd-clones-reset",
        statuses: PLAIN,
        examples: &[(
            "rubus nbd clones reset clones/ board7",
            "Give board7 the golden image again. What it wrote is lost.",
        )],
    },
    Page {
        name: "rubus-nbd-clones-remove",
        statuses: PLAIN,
        examples: &[(
            "rubus nbd clones remove clones/ board7",
            "Remove the clone of board7. What it wrote is lost.",
        )],
    },
    Page {
        name: "rubus-nbd-clones-merge",
        statuses: PLAIN,
        examples: &[(
            "rubus nbd clones merge clones/ board7 --to board7.img",
            "Write the disk that board7 sees to a new image.",
        )],
    },
];
