//! The recipe `network-root` on the emulated Raspberry Pi 3: without its server it starts from the card, with it from the
//! network, and from there it is undone; the card is then what it was.
//!
//! The emulator's USB network carries a tenth of a megabyte per second, by which a system would be copied for an hour. So
//! the board that is changed serves the export to itself, from its card and under the server's address; afterwards this
//! machine takes the image from the card and serves it.

use crate::common::desktop::{SOON, must};
use crate::common::network_root::{
    MAY_DIFFER, Server, apply, asks_for_no_network, clock, is_on_the_card, is_on_the_network, needs,
};
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::kit::Kit;
use rubus_lab::outside::{differences, manifest, take_file};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{HOST_ADDRESS, Options, Session};

const TEST: &str = "vm_pi3_network_root";
/// What is in this directory is copied to no other root.
const IMAGE: &str = "/tmp/root.img";

#[test]
fn a_raspberry_pi_3_starts_from_the_network_and_from_its_card() {
    if !can_boot(TEST, Board::Pi3) || !crate::common::can_run(TEST, &needs()) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pi3) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let options = Options { push: vec![rubus], network: true, ..Options::default() };
    let Some(mut server) = Server::start(TEST) else {
        return;
    };
    server.kill();
    let address = server.address();
    let kit = Kit::temporary(&cache, Board::Pi3, &[]).unwrap();
    let before = manifest(&kit.sd()).unwrap();
    let boot = || Session::boot_kit(&cache, &kit, &options).unwrap();
    let told = clock();

    let mut old = boot();
    told("the card's system runs");
    serve_to_itself(&mut old, &server);
    apply(&mut old, &address, "wait=10");
    told("applied");
    must(&mut old, "rubus detach && pkill -x rubus", SOON);
    old.switch_off().unwrap();

    take_file(&kit.sd(), IMAGE, server.image()).unwrap();
    told("the image is on this machine");

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

    asks_for_no_network(boot());
    told("the old system runs, and asks for no network");
    let lost = differences(&before, &manifest(&kit.sd()).unwrap(), MAY_DIFFER);
    assert!(lost.is_empty(), "on the card:\n{}", lost.join("\n"));
}

/// The board has the server's address itself, and serves a file of its card there.
fn serve_to_itself(board: &mut Session, server: &Server) {
    let script = format!(
        "install -D $(command -v rubus) /usr/local/bin/rubus
         modprobe cdc_ether; until ls /sys/class/net | grep -q ^en; do sleep 0.2; done
         ip link set $(ls /sys/class/net | grep ^en) up
         ip link set lo up; ip addr add {HOST_ADDRESS}/32 dev lo
         setsid rubus serve {IMAGE} --name root --size 2GiB --listen {HOST_ADDRESS}:{} --quiet </dev/null >/run/served 2>&1 &
         until rubus nbd info {} >/run/info 2>&1; do sleep 0.5; [ -e /proc/$! ] || {{ cat /run/served >&2; exit 1; }}; done",
        server.port(),
        server.address()
    );
    must(board, &script, SOON);
}
