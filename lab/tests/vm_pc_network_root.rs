//! The recipe `network-root` on the quick board: a root on an export of `rubus serve` that outlives its server, the card
//! when the server is gone, and back to the card's system as it was.

use crate::common::desktop::{SOON, must};
use crate::common::network_root::{
    MAY_DIFFER, Server, apply, asks_for_no_network, clock, is_on_the_card, is_on_the_network,
    log_is_whole, needs, outlives_its_server, prepare,
};
use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::kit::Kit;
use rubus_lab::outside::{differences, manifest};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};

const TEST: &str = "vm_pc_network_root";

#[test]
fn a_root_on_the_network_outlives_its_server_and_the_card_stands_in() {
    if !can_boot(TEST, Board::Pc) || !crate::common::can_run(TEST, &needs()) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let Some(mut server) = Server::start(TEST) else {
        return;
    };
    let cache = Cache::of_this_machine();
    let kit = Kit::temporary(&cache, Board::Pc, &[]).unwrap();
    let options = Options { push: vec![rubus], network: true, ..Options::default() };
    let boot = || Session::boot_kit(&cache, &kit, &options).unwrap();
    let before = manifest(&kit.sd()).unwrap();
    let address = server.address();
    let told = clock();

    let mut old = boot();
    prepare(&mut old);
    what_is_missing_or_held_is_refused(&mut old, &address);
    told("refused what is to be refused");
    apply(&mut old, &address, "wait=20");
    told("applied");
    old.switch_off().unwrap();

    let mut network = boot();
    is_on_the_network(&mut network, &address);
    told("the network root runs");
    let last = outlives_its_server(&mut network, &mut server);
    told("the server was away for 4 s");
    network.switch_off().unwrap();
    log_is_whole(&server, last);

    server.kill();
    let mut card = boot();
    is_on_the_card(&mut card);
    told("without the server the card's system runs");
    must(&mut card, "rubus undo --yes", SOON);
    told("undone there");
    card.switch_off().unwrap();

    server.come_back();
    asks_for_no_network(boot());
    told("the old system runs, and asks for no network");
    let lost = differences(&before, &manifest(&kit.sd()).unwrap(), MAY_DIFFER);
    assert!(lost.is_empty(), "on the card:\n{}", lost.join("\n"));
}

/// Without an attached disk there is no plan; what is on the export is given away by its address only.
fn what_is_missing_or_held_is_refused(board: &mut Session, address: &str) {
    for (script, status, says) in [
        ("rubus apply network-root --yes".to_owned(), 1, "it is not attached"),
        (format!("rubus attach {address} /dev/nbd0 && rubus apply network-root --yes"), 3, address),
        (
            "rubus apply network-root --yes --i-will-lose-everything-on=/dev/nbd0".to_owned(),
            3,
            address,
        ),
    ] {
        let done = board.run(&script, "root", SOON).unwrap();
        let said = format!("{}\n{}", done.text(), done.complaint_text());
        assert_eq!(done.status, status, "{script}: {said}");
        assert!(said.contains(says), "{script}: {said}");
    }
}
