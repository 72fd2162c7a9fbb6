//! How a board is started.

use std::path::PathBuf;
use std::time::Duration;

use crate::board::Throttle;
use crate::firmware::Switches;

/// How a board is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Limits of the SD card.
    pub throttle_sd: Option<Throttle>,
    /// Files for the board: each one is put into `/run/lab/push`, which is in the `PATH` of every
    /// command, under its own name and with its permissions.
    pub push: Vec<PathBuf>,
    /// The firmware's switches.
    pub switches: Switches,
    /// How long to wait until the board takes commands, where the usual ten minutes are too many.
    pub patience: Option<Duration>,
    /// What the console says of a start that will not come to an end: no more is waited then.
    pub hopeless: &'static [&'static str],
    /// Words that the firmware adds to the kernel's command line, as a Raspberry Pi's does on its own.
    pub kernel_words: String,
    /// Boots without the SD card.
    pub without_card: bool,
    /// Boots with every USB disk pulled out.
    pub without_usb: bool,
    /// With a network card, behind which there is only this machine: [`crate::session::HOST_ADDRESS`]. A Pi's is in
    /// its only USB plug, where there is no USB disk then.
    pub network: bool,
    /// While a processor works, the board's clock counts its instructions, [`crate::emulator::INSTRUCTION_NS`] for each: the processor time of a
    /// program on the board says how many it took, its own and those of the kernel for it, whatever this machine is doing
    /// meanwhile. Starting takes about twice as long.
    pub counts_instructions: bool,
    /// Arguments of the emulator for devices that only this start of the board has.
    pub own_devices: Vec<String>,
    /// The card is in a USB reader, whose disk the system can be made to flush; the slot has no such command. For `pc`.
    pub card_in_reader: bool,
    /// What is written to each disk is logged too: [`crate::session::Session::write_logs`]. For a card in a reader.
    pub logs_writes: bool,
}
