//! The experiment for which a disk was once served to a Pi: is the card slower than the cable? An emulated Pi 3 with a
//! card that lets little through, `rubus serve` on this machine, `rubus attach` on the board, the same four jobs on
//! both disks, and the processor time at both ends.
//!
//! The board's network is the emulator's USB one, of 12 Mbit/s on paper and about a tenth of that in practice, so that the
//! card is made slower still; what is compared is as it was: card, cable and four kinds of access.

use std::process::Command;
use std::time::Duration;

use rubus_lab::board::{Board, Throttle};
use rubus_lab::cache::Cache;
use rubus_lab::devices::{Listening, Serving, free_port};
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{HOST_ADDRESS, Options, Session};
use serde_json::Value;

const TEST: &str = "vm_pi3_nbd";
const SOON: Duration = Duration::from_secs(300);

/// What the card lets through while it is measured, in both directions together.
const CARD: Throttle = Throttle { bytes_per_second: 20_000, operations_per_second: 0 };

/// The four jobs of tiobench, from fio's examples, as short as an emulated board wants them. Before them all of the file
/// is written: what was never written would be read from nowhere.
const JOBS: &str = "[global]
filename=experiment
direct=1
bs=4k
size=256k
stonewall

[all-of-it]
rw=write
bs=64k

[sequential-write]
rw=write
runtime=8
time_based

[random-write]
rw=randwrite
runtime=8
time_based

[sequential-read]
rw=read
runtime=8
time_based

[random-read]
rw=randread
runtime=8
time_based
";

struct Served {
    _serving: Serving,
    port: u16,
    status_port: u16,
    _directory: tempfile::TempDir,
}

impl Served {
    fn new() -> Served {
        let directory = tempfile::tempdir().unwrap();
        let [port, status_port] = [(); 2].map(|()| free_port("127.0.0.1").unwrap());
        let mut command = Command::new(crate::common::program::binary());
        command
            .arg("serve")
            .arg(directory.path().join("root.img"))
            .args(["--size", "64MiB", "--quiet"])
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .args(["--status", &format!("127.0.0.1:{status_port}")]);
        let listening = Listening::Port("127.0.0.1".into(), port);
        Served {
            _serving: Serving::start(command, listening).unwrap(),
            port,
            status_port,
            _directory: directory,
        }
    }
}

#[test]
fn the_network_disk_is_faster_than_a_card_that_is_slower_than_the_cable() {
    if !can_boot(TEST, Board::Pi3) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pi3) else {
        return;
    };
    let served = Served::new();
    let options = Options { push: vec![rubus], network: true, ..Options::default() };
    let mut board = Session::boot(&Cache::of_this_machine(), Board::Pi3, &options).unwrap();
    let must = |board: &mut Session, script: &str| board.must(script, "root", SOON).unwrap();
    must(
        &mut board,
        &format!(
            "modprobe cdc_ether; until ls /sys/class/net | grep -q ^en; do sleep 0.2; done
             card=$(ls /sys/class/net | grep ^en); ip link set $card up
             ip addr add 10.0.2.15/24 dev $card; ip route add default via {HOST_ADDRESS}
             mkdir -p /mnt/network /root/card; printf '%s' '{JOBS}' >/run/jobs.fio
             rubus attach nbd://{HOST_ADDRESS}:{}/root
             mkfs.ext4 -q -O ^has_journal -E lazy_itable_init=1 /dev/nbd0 && mount /dev/nbd0 /mnt/network",
            served.port
        ),
    );
    let bench = |board: &mut Session, place: &str, more: &str| -> Value {
        let script = format!(
            "rubus --quiet bench --fio-job /run/jobs.fio {place} --json /run/result.json --no-history {more} >/run/text
             cat /run/result.json"
        );
        let json = must(board, &script);
        println!("{}", must(board, "cat /run/text"));
        serde_json::from_str(&json).unwrap()
    };
    board.throttle_sd(Some(CARD)).unwrap();
    let card = bench(&mut board, "/root/card", "");
    board.throttle_sd(None).unwrap();
    let status = format!("--server-status {HOST_ADDRESS}:{}", served.status_port);
    let network = bench(&mut board, "/mnt/network", &status);
    must(&mut board, "umount /mnt/network && fsck.ext4 -fn /dev/nbd0 && rubus detach");
    board.switch_off().unwrap();

    println!("{}", table(&card, &network));
    for (card, network) in results(&card).zip(results(&network)) {
        assert_eq!(card["job"], network["job"]);
        // The throttle lets a tenth of a second's worth through at once.
        assert!(rate(card) <= 22_000.0, "{card}");
        assert!(rate(network) > rate(card), "{network}");
        assert_eq!(card["both_ends"], Value::Null, "a card has no server");
        let ends = &network["both_ends"];
        // The kernel speaks to the server, in no process of its own.
        assert_eq!(ends["client_is"], "machine", "{network}");
        for end in ["client", "server"] {
            for price in ["cpu_s_per_gib", "cpu_s_per_million"] {
                assert!(ends[end][price].as_f64().unwrap() > 0.0, "{network}");
            }
        }
        let above = |doubt: &Value| doubt["kind"] == "above_link";
        assert!(!network["doubts"].as_array().unwrap().iter().any(above));
    }
}

/// Those of the four jobs.
fn results(run: &Value) -> impl Iterator<Item = &Value> {
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 5, "{run}");
    results[1..].iter()
}

fn rate(result: &Value) -> f64 {
    result["bytes_per_second"]["value"].as_f64().unwrap()
}

/// The four jobs on both disks, as a table for people.
fn table(card: &Value, network: &Value) -> String {
    let mut text = String::from(
        "| 4 KiB | card | network disk | | CPU of the board, card | network disk | of the server, per MiB |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (card, network) in results(card).zip(results(network)) {
        let busy = |result: &Value| {
            let shares = ["user", "system", "irq", "softirq"];
            let shares = shares.map(|name| result["cpu"][name].as_f64().unwrap());
            format!("{:.0} %", shares.iter().sum::<f64>() * 100.0)
        };
        let server = network["both_ends"]["server"]["cpu_s_per_gib"].as_f64();
        text += &format!(
            "| {} | {:.0} kB/s | {:.0} kB/s | × {:.1} | {} | {} | {:.2} ms |\n",
            card["job"].as_str().unwrap(),
            rate(card) / 1e3,
            rate(network) / 1e3,
            rate(network) / rate(card),
            busy(card),
            busy(network),
            server.unwrap() * 1e3 / 1024.0
        );
    }
    text
}
