//! The kernel's own ciphers on Debian's kernel: each has a figure, the driver that `/proc/crypto` lists, and about the rate
//! that `cryptsetup benchmark` has; a kernel that does not offer them is said to be one.

use std::time::Duration;

use rubus_lab::board::Board;
use rubus_lab::cache::Cache;
use rubus_lab::product::{can_boot, rubus_or_skip};
use rubus_lab::session::{Options, Session};
use serde_json::Value;

const TEST: &str = "vm_pc_ciphers";
const SOON: Duration = Duration::from_secs(120);
const LONG: Duration = Duration::from_secs(600);
/// Both programs do the same on an emulated processor whose speed varies; one that measured something else would be
/// farther off.
const APART: f64 = 4.0;

#[test]
fn the_kernels_ciphers_are_measured_with_their_drivers_and_near_cryptsetup() {
    if !can_boot(TEST, Board::Pc) {
        return;
    }
    let Some(rubus) = rubus_or_skip(TEST, Board::Pc) else {
        return;
    };
    let options = Options { push: vec![rubus], ..Options::default() };
    let mut board = Session::boot(&Cache::of_this_machine(), Board::Pc, &options).unwrap();

    let (shown, run) = measured(&mut board, 0.2);
    assert!(shown.contains("Ciphers and checksums of the kernel"), "{shown}");
    let of_kernel = kernel_rows(&run);
    assert_eq!(of_kernel.len(), 17, "{shown}");
    for row in &of_kernel {
        let rate = row["rates"]["one_core"]["per_second"]["value"].as_f64();
        assert!(rate.is_some_and(|rate| rate > 0.0), "{row}");
        let (_, name) = NAMES
            .iter()
            .find(|(algorithm, _)| row["algorithm"] == *algorithm)
            .unwrap_or_else(|| panic!("{row}"));
        let driver = row["implementation"]["name"].as_str().unwrap();
        let listed = board.must(&listed(name), "pi", SOON).unwrap();
        assert_eq!(listed.trim(), driver, "{row}");
    }
    let left_out = run["processor"]["left_out"].to_string();
    assert!(!left_out.contains("kernel"), "{left_out}");

    for (algorithm, cipher, bits) in
        [("aes_xts512", "aes-xts", 512), ("adiantum", "xchacha12,aes-adiantum", 256)]
    {
        let command = format!("/usr/sbin/cryptsetup benchmark --cipher {cipher} --key-size {bits}");
        let said = board.must(&command, "root", LONG).unwrap();
        eprintln!("{said}");
        for (work, theirs) in ["encrypt", "decrypt"].into_iter().zip(mib_per_second(&said)) {
            let row = of_kernel
                .iter()
                .find(|row| row["algorithm"] == algorithm && row["work"] == work)
                .unwrap();
            assert_eq!(row["block_bytes"], 65536, "{row}");
            let ours = row["rates"]["one_core"]["per_second"]["value"].as_f64();
            let times = ours.unwrap() / (theirs * 1048576.0);
            assert!(
                (1.0 / APART..APART).contains(&times),
                "{times} times cryptsetup's: {row}\n{said}"
            );
            eprintln!("{algorithm} {work}: {times:.2} times cryptsetup's");
        }
    }

    // Without hashes: those alone are missing.
    let script = "echo 'install algif_hash /bin/false' > /etc/modprobe.d/no-sockets.conf && rmmod algif_hash";
    board.must(script, "root", SOON).unwrap();
    let (_, run) = measured(&mut board, 0.05);
    assert_eq!(kernel_rows(&run).len(), 14);
    let left_out = run["processor"]["left_out"].to_string();
    assert!(left_out.contains("its module algif_hash would"), "{left_out}");

    // Without any such socket.
    let script = "echo 'install af_alg /bin/false' >> /etc/modprobe.d/no-sockets.conf \
                  && rmmod algif_skcipher algif_aead af_alg";
    board.must(script, "root", SOON).unwrap();
    let (shown, run) = measured(&mut board, 0.05);
    assert!(kernel_rows(&run).is_empty(), "{shown}");
    let left_out = run["processor"]["left_out"].as_array().unwrap();
    let said: Vec<&str> = left_out
        .iter()
        .filter_map(|left| left["what"].as_str())
        .filter(|what| what.contains("algif"))
        .collect();
    assert_eq!(said.len(), 1, "{left_out:?}");
    assert!(said[0].contains("its module algif_skcipher would"), "{said:?}");
    board.switch_off().unwrap();
}

/// What the kernel calls them.
const NAMES: [(&str, &str); 8] = [
    ("aes_xts256", "xts(aes)"),
    ("aes_xts512", "xts(aes)"),
    ("adiantum", "adiantum(xchacha12,aes)"),
    ("aes256_gcm", "gcm(aes)"),
    ("cha_cha20_poly1305", "rfc7539(chacha20,poly1305)"),
    ("sha256", "sha256"),
    ("xxh64", "xxhash64"),
    ("crc32c", "crc32c"),
];

/// A script that says which driver of that name has the highest priority.
fn listed(name: &str) -> String {
    format!(
        "awk -F ' *: *' '/^name/ {{ n = $2 }} /^driver/ {{ d = $2 }} \
         /^priority/ && n == \"{name}\" && $2 > most {{ most = $2; best = d }} END {{ print best }}' /proc/crypto"
    )
}

fn kernel_rows(run: &Value) -> Vec<Value> {
    let rows = run["processor"]["ciphers"]["rows"].as_array().unwrap();
    let of_kernel = rows.iter().filter(|row| row["place"] == "kernel");
    of_kernel.cloned().collect()
}

/// What is shown of the ciphers, and the run, as an ordinary user.
fn measured(board: &mut Session, seconds: f64) -> (String, Value) {
    let script = format!(
        "rubus bench cpu ciphers --seconds {seconds} --no-history --json /tmp/run.json && cat /tmp/run.json"
    );
    let said = board.must(&script, "pi", LONG).unwrap();
    let (shown, json) = said.split_once("\n{").expect("a text and a result");
    eprintln!("{shown}");
    let run = serde_json::from_str(&format!("{{{json}")).expect("JSON");
    (shown.to_string(), run)
}

/// Both rates in cryptsetup's last line: `aes-xts        512b        80.1 MiB/s        79.5 MiB/s`.
fn mib_per_second(said: &str) -> [f64; 2] {
    let last = said.lines().last().unwrap_or_default();
    let words: Vec<&str> = last.split_whitespace().collect();
    let [.., encrypt, "MiB/s", decrypt, "MiB/s"] = words[..] else {
        panic!("no rates in {said}");
    };
    [encrypt, decrypt].map(|rate| rate.parse().unwrap())
}
