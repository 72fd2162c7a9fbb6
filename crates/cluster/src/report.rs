//! Everything that is said of a design: the answer of `rubus cluster size`, as JSON too.

use rubus_vocabulary::basis::Basis;
use rubus_vocabulary::next_step::NextStep;
use serde::Serialize;

use crate::beside::Beside;
use crate::capacity::{self, Capacity};
use crate::ceilings::{self, Ceiling};
use crate::cost::{self, Cost};
use crate::design::Design;
use crate::disks::Media;
use crate::layout::Layout;
use crate::loss::{self, Loss};
use crate::memory::{self, BoardMemory, Fit};
use crate::rebuild::{self, Rebuild};
use crate::release::{FAST_EC, Release};

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// Version of this structure: 1. Fields are only added within a version.
    pub schema: u32,
    /// What to do next.
    pub next: NextStep,
    /// What was sized.
    pub design: Design,
    /// How much fits.
    pub capacity: Capacity,
    /// What a loss does.
    pub loss: Loss,
    /// The memory of each kind of board.
    pub memory: Vec<BoardMemory>,
    /// What it carries.
    pub ceilings: Vec<Ceiling>,
    /// What such a cluster really gave, where a run was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// Being whole again.
    pub rebuild: Rebuild,
    /// What it costs to buy and to run.
    pub cost: Cost,
    /// What a person who runs Ceph would say about it, the gravest first.
    pub reservations: Vec<String>,
}

impl Report {
    /// The answer for a design.
    ///
    /// # Errors
    /// When it cannot be built; see [`Design::check`].
    pub fn of(design: Design) -> Result<Report, String> {
        design.check()?;
        let capacity = capacity::capacity(&design);
        let memory = memory::memory(&design);
        let loss = loss::loss(&design, &capacity);
        Ok(Report {
            schema: 1,
            next: next(&design, &memory),
            ceilings: ceilings::ceilings(&design),
            beside: None,
            rebuild: rebuild::rebuild(&design, &capacity),
            cost: cost::cost(&design, &capacity),
            reservations: reservations(&design, &loss, &memory),
            loss,
            memory,
            capacity,
            design,
        })
    }

    /// Whether the boards have the memory for it.
    pub fn fits(&self) -> bool {
        fits(&self.memory)
    }
}

fn fits(memory: &[BoardMemory]) -> bool {
    memory.iter().any(|memory| memory.fit > Fit::OnlyWithoutMonitor)
        && memory.iter().all(|memory| memory.fit != Fit::TooSmall)
}

/// Memory that does not suffice first, then what was not measured.
fn next(design: &Design, memory: &[BoardMemory]) -> NextStep {
    if let Some(least) = memory.iter().min_by_key(|memory| memory.fit).filter(|_| !fits(memory)) {
        let words = format!("take boards with more memory than {}: {}", least.board, least.words);
        return NextStep::by_hand(&words);
    }
    if design.groups.iter().any(|group| group.disk.figures.basis == Basis::Assumed) {
        let words =
            "on one such board, in a directory on its disk; then size again with --node-from last";
        return NextStep::command(&["rubus", "bench", "."], words);
    }
    NextStep::by_hand("describe it for what deploys it: rubus cluster spec with the same options")
}

fn reservations(design: &Design, loss: &Loss, memory: &[BoardMemory]) -> Vec<String> {
    let mut said = Vec::new();
    let boards = design.boards();
    for memory in memory.iter().filter(|memory| memory.fit < Fit::Good) {
        said.push(format!("Memory of {}: {}", memory.board, memory.words));
    }
    if loss.survives == 1 && !loss.heals {
        said.push(format!(
            "One loss takes all redundancy of {} until the board is replaced. Add a board, or keep a backup and a spare.",
            design.layout.name()
        ));
    }
    if let (Layout::Erasure { data, parity, .. }, domains) =
        (design.layout, design.domains().len() as u32)
    {
        if domains < data + parity + 1 {
            said.push(format!(
                "Ceph advises k + m + 1 = {} failure domains for {}; there are {domains}.",
                data + parity + 1,
                design.layout.name()
            ));
        }
    }
    if boards < 3 {
        said.push(
            "Monitors need a majority: with 2 boards the loss of one stops the cluster, unless a third machine runs a monitor."
                .into(),
        );
    } else if boards == 4 {
        said.push(
            "Run 3 monitors on 4 boards, not 4: with 2 lost boards the majority may be gone."
                .into(),
        );
    }
    let media: Vec<Media> = design.groups.iter().map(|group| group.disk.media).collect();
    if media.iter().any(|media| matches!(media, Media::Ssd | Media::Nvme)) {
        said.push(
            "Consumer SSDs without power-loss protection flush slowly. BlueStore flushes for every small write, so measure \
             commits first (rubus bench) and give the run with --node-from."
                .into(),
        );
    }
    if media.contains(&Media::Hdd) {
        said.push("Hard disks without an SSD for BlueStore's database give tens of small writes per second each.".into());
    }
    if design.groups.iter().any(|group| group.board.bus.is_usb()) {
        said.push(
            "USB bridges reset under load and cannot always discard. Ceph sees a reset as a failed OSD; use bridges with UAS \
             and a power supply that carries disk and board."
                .into(),
        );
    }
    if design.groups.iter().any(|group| group.board.is_arm && group.board.bus.is_usb()) {
        said.push("Put the monitor's store on the SSD, not on the SD card: it flushes all the time and wears the card.".into());
    }
    said.extend(of_release(design));
    if design.groups.iter().any(|group| group.disk.figures.basis == Basis::Assumed) {
        said.push("Disk and processor figures are assumed (~); the ranges are wide because disks differ that much.".into());
    }
    said.push(
        "No layout replaces a backup: a deleted image, a bad upgrade or a theft takes all copies."
            .into(),
    );
    said
}

fn of_release(design: &Design) -> Vec<String> {
    let mut said = Vec::new();
    let release = design.release;
    if release < Release::new(19, 0, 0) {
        said.push(format!(
            "{} {release} gets no more fixes upstream; upstream fixed CVE-2025-30156 only in 19.2.6 and 20.2.4.",
            release.name()
        ));
    } else if !release.has_new_keys() {
        said.push(format!(
            "{release} has CVE-2025-30156; upstream fixed it in 19.2.6, 20.2.4 and 21.2.0."
        ));
    }
    if design.has_arm() && release.has_new_keys() {
        said.push(
            "New keys are aes256k, which kernels before 7.0 cannot use (Raspberry Pi OS: 6.18). Map images with librbd \
             (rbd-nbd, QEMU), or make clients legacy keys and mute the warning."
                .into(),
        );
    }
    if design.has_arm() {
        said.push(
            "OSDs crashed on arm64 in tcmalloc's stack traces (rook#14502); set TCMALLOC_STACKTRACE_METHOD=generic_fp, as \
             `rubus cluster spec` does."
                .into(),
        );
    }
    if release.major >= 21 {
        said.push(
            "Umbrella doubles the placement groups per OSD; pin mon_target_pg_per_osd to 100 on boards below 4 GiB per OSD."
                .into(),
        );
    }
    match design.layout {
        Layout::Erasure { fast: true, .. } => said.push(
            "Fast EC cannot be switched off again on a pool; check a small pool with your clients first.".into(),
        ),
        Layout::Erasure { fast: false, .. } if release >= FAST_EC => said.push(
            "Legacy EC reads and writes whole stripes for each small write; --fast-ec needs fewer operations and less space."
                .into(),
        ),
        _ => {}
    }
    said
}
