//! Exit statuses and examples of `rubus cluster`.

use rubus_vocabulary::verb::{PLAIN, Page};

/// In the order of the commands.
pub const PAGES: &[Page] = &[
    Page {
        name: "rubus-cluster-size",
        statuses: &[
            (0, "answered"),
            (1, "the boards have too little memory"),
            (2, "an impossible layout, or wrong arguments"),
        ],
        examples: &[(
            "rubus cluster size --nodes 4 --board pi5-8gb --disk 1TB",
            "Say what four boards would hold, carry and survive.",
        )],
    },
    Page {
        name: "rubus-cluster-compare",
        statuses: PLAIN,
        examples: &[(
            "rubus cluster compare --nodes 4 --board pi5-8gb --disk 1TB",
            "Compare copies with erasure coding, and with a single server.",
        )],
    },
    Page {
        name: "rubus-cluster-spec",
        statuses: PLAIN,
        examples: &[(
            "rubus cluster spec --nodes 4 --board pi5-8gb --disk 1TB",
            "Print the files that deploy it. Deploys nothing.",
        )],
    },
    Page {
        name: "rubus-cluster-boards",
        statuses: PLAIN,
        examples: &[("rubus cluster boards", "List the kinds of boards, with their limits.")],
    },
];
