//! The recipe `network-root` on the emulated Raspberry Pi 3: without its server it starts from the card, with it from the
//! network, and from there it is undone; the card is then what it was.
//!
//! The emulator's USB network carries a tenth of a megabyte per second, by which a system would be copied for an hour. So
//! the board that is changed serves the export to itself, from a USB disk and under the server's address; afterwards this
//! machine serves what is on that disk.

mod common;

use std::path::Path;

use common::desktop::{SOON, must};
use common::network_root::{
    MAY_DIFFER, Server, apply, clock, is_on_the_card, is_on_the_network, needs, root,
};
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::devices::programs;
use rubus_lab::kit::{Kit, UsbDisk};
use rubus_lab::outside::{differences, manifest};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{HOST_ADDRESS, Options, Session};

const TEST: &str = "vm_pi3_network_root";
const EXPORT_BYTES: u64 = 2 << 30;

#[test]
fn a_raspberry_pi_3_starts_from_the_network_and_from_its_card() {
    if !can_boot(TEST, Board::Pi3) || !common::can_run(TEST, &needs()) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pi3) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let options = Options {
        push: vec![rubus],
        ..Options::default()
    };
    let told = clock();

    // The USB disk is in the plug that the network needs later.
    let blank = UsbDisk::blank(0, EXPORT_BYTES);
    let with_disk = Kit::temporary(&cache, Board::Pi3, &[blank]).unwrap();
    let before = manifest(&with_disk.sd()).unwrap();
    let Some(mut server) = Server::over(TEST, with_disk.usb(0)) else {
        return;
    };
    server.kill();
    let address = server.address();
    let mut old = Session::boot_kit(&cache, &with_disk, &options).unwrap();
    told("the card's system runs");
    serve_to_itself(&mut old, &server);
    apply(&mut old, &address, "wait=10");
    told("applied");
    must(&mut old, "rubus detach && pkill -x rubus", SOON);
    old.switch_off().unwrap();

    let kit = Kit::temporary(&cache, Board::Pi3, &[]).unwrap();
    move_card(&with_disk.sd(), &kit.sd());
    let options = Options {
        network: true,
        ..options
    };
    let boot = || Session::boot_kit(&cache, &kit, &options).unwrap();

    let mut card = boot();
    is_on_the_card(&mut card);
    told("without the server the card's system runs");
    card.switch_off().unwrap();

    server.come_back();
    let mut network = boot();
    told("with it, the network root");
    is_on_the_network(&mut network, &address);
    must(&mut network, "echo here >/log && sync /log", SOON);
    must(&mut network, "rubus undo --yes", SOON);
    told("verified and undone there");
    network.switch_off().unwrap();
    assert_eq!(server.file("/log"), "here\n");

    let mut back = boot();
    assert_ne!(root(&mut back), "/dev/nbd0");
    assert!(!back.console().contains("rubus: "), "{}", back.console());
    told("the old system runs, and asks for no network");
    back.switch_off().unwrap();
    let lost = differences(&before, &manifest(&kit.sd()).unwrap(), MAY_DIFFER);
    assert!(lost.is_empty(), "on the card:\n{}", lost.join("\n"));
}

/// The board has the server's address itself, and serves its USB disk there.
fn serve_to_itself(board: &mut Session, server: &Server) {
    let disk = board.usb_device(0).unwrap();
    let script = format!(
        "install -D $(command -v rubus) /usr/local/bin/rubus
         ip link set lo up; ip addr add {HOST_ADDRESS}/32 dev lo
         setsid rubus serve {disk} --name root --listen {HOST_ADDRESS}:{} --quiet </dev/null >/run/served 2>&1 &
         until rubus nbd info {} >/run/info 2>&1; do sleep 0.5; [ -e /proc/$! ] || {{ cat /run/served >&2; exit 1; }}; done",
        server.port(),
        server.address()
    );
    must(board, &script, SOON);
}

fn move_card(from: &Path, to: &Path) {
    let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
    programs::run("cp", &["--sparse=always", from, to]).unwrap();
}
