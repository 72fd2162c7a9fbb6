//! The pages of the commands that are the roof's own; each room has those of its commands.

use rubus_vocabulary::verb::{GUARDED, MISTAKE, PLAIN, Page, Statuses};

const MEASURED: Statuses =
    &[(0, "measured"), (1, "cut short, failed, or data came back wrong"), MISTAKE, GUARDED];
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
        name: "rubus-checkup",
        statuses: MEASURED,
        examples: &[
            (
                "rubus checkup /mnt/ssd --html ssd.html",
                "Measure the disk under /mnt/ssd, and write the page to ssd.html.",
            ),
            (
                "rubus checkup --on pi@raspberrypi",
                "Measure the home disk of another machine, over ssh.",
            ),
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
        name: "rubus-boot",
        statuses: &[
            (0, "it starts, certainly or likely"),
            (1, "it stops, or what follows is not certain"),
            MISTAKE,
        ],
        examples: &[
            ("rubus boot", "Say how this machine starts, link by link."),
            (
                "sudo rubus boot /dev/sdb --board pi4",
                "Say where the card in the reader would stop in a Raspberry Pi 4.",
            ),
            ("rubus boot card.img", "Say in which boards an image starts."),
        ],
    },
    Page {
        name: "rubus-bench",
        statuses: MEASURED,
        examples: &[
            (
                "rubus bench . /mnt/ssd --json both.json",
                "Measure two disks one after the other, and keep the figures as JSON.",
            ),
            (
                "rubus bench /dev/sda --read-only",
                "Measure how fast a device is read; writes nothing.",
            ),
            (
                "rubus bench /dev/sda --i-will-lose-everything-on SERIAL",
                "Measure reads and writes; everything on the device is lost.",
            ),
            ("rubus bench . --suite queue-depth", "Find how many requests in flight are worth it."),
            ("rubus bench /mnt/a /mnt/b --together", "Find out whether two disks share a pipe."),
            (
                "rubus bench /home/pi --on pi@raspberrypi",
                "Measure a directory of another machine, over ssh.",
            ),
        ],
    },
    Page {
        name: "rubus-enough",
        statuses: &[
            (0, "yes, or yes with a reservation"),
            (1, "no, or undecided"),
            MISTAKE,
            GUARDED,
        ],
        examples: &[
            ("rubus enough etcd /var/lib", "Say whether etcd can keep its data below /var/lib."),
            (
                "rubus enough etcd /mnt/ssd --time 10m --json",
                "Look longer, for rarer stalls, and print the result as JSON.",
            ),
            (
                "rubus enough home-assistant",
                "Say whether this directory's storage suits Home Assistant's recorder.",
            ),
        ],
    },
    Page {
        name: "rubus-suites",
        statuses: PLAIN,
        examples: &[("rubus suites", "Show what each suite measures and writes.")],
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
