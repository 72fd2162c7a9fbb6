//! Secrets of every kind in every field of a record: none is left, in any spelling.
//!
//! The record is made from its table, so that each field that there is holds the secret.

use serde_json::{Map, Value, json};

use super::table::{Rule, Table, TextRule};
use super::*;

/// A record in which each field that has a rule is there, and each text is this one.
fn full(table: &Table, name: &str, text: &str, depth: usize) -> Value {
    let mut object = Map::new();
    for field in table.fields(name) {
        let rule = table.rule(name, field).expect("it has one");
        if field == "=" && table.fields(name).len() == 1 {
            return of_rule(table, rule, text, depth);
        }
        if field != "=" {
            object.insert(field.into(), of_rule(table, rule, text, depth));
        }
    }
    // Fields without a rule, in every object.
    object.insert("unheard_of".into(), json!([{ "name": text }, text]));
    Value::Object(object)
}

fn of_rule(table: &Table, rule: &Rule, text: &str, depth: usize) -> Value {
    match rule {
        Rule::Number => json!(text),
        Rule::Words(_) | Rule::Drop => json!(text),
        Rule::Object(_) if depth == 0 => Value::Null,
        Rule::Object(name) => json!([full(table, name, text, depth - 1)]),
        Rule::Fact(inner) => {
            let value = of_rule(table, inner, text, depth);
            json!({ "value": value, "source": text, "unknown": text })
        }
        Rule::Text(TextRule::JobOptions) => {
            json!({ "filename": text, "bs": text, "hostname": text, "description": text, "rate": text })
        }
        Rule::Text(_) => json!([text, format!("a {text}"), format!("{text},rw")]),
    }
}

/// What a secret looks like, by its kind: the text in which it stands, and the secret.
const SECRETS: &[(&str, &str)] = &[
    ("qzalicebox", "qzalicebox"),
    ("qzalicebox.local", "qzalicebox"),
    ("qzalice@qzattic", "qzalice"),
    ("qzalice@qzattic:/srv/x", "qzattic"),
    ("ssh://qzalice@qzattic:22/", "qzattic"),
    ("ssh: connect to host qzattic port 22: No route to host", "qzattic"),
    ("nbd://qzattic:10809/qzexport", "qzexport"),
    ("NBDS://QZATTIC/disk", "qzattic"),
    ("nbd+unix:///disk?socket=%2Fhome%2Fqzalice%2Fs", "qzalice"),
    ("https://qzuser:qzpassword@qzdav.example/x", "qzpassword"),
    ("/home/qzalice/bench", "qzalice"),
    ("/home//qzalice/bench", "qzalice"),
    ("%2Fhome%2Fqzalice", "qzalice"),
    ("~qzalice/x", "qzalice"),
    ("/media/qzalice/My qzlabel", "qzlabel"),
    ("/run/media/qzalice/x", "qzalice"),
    ("/export/home/qzalice/x", "qzalice"),
    ("/mnt/users/qzalice", "qzalice"),
    ("/Users/qzalice/x", "qzalice"),
    ("/dev/disk/by-id/wwn-0x5002538e40aabbcc", "5002538e40aabbcc"),
    ("/dev/disk/by-id/usb-SanDisk_4C530001230405-0:0", "4C530001230405"),
    ("/dev/disk/by-label/qzlabel", "qzlabel"),
    ("/dev/mapper/qzatticvg--vg-root", "qzatticvg"),
    ("/dev/mapper/luks-33334444-3333-4444-5555-66667777cccc", "66667777cccc"),
    ("/dev/qzatticvg/root", "qzatticvg"),
    ("qztank/qzalice", "qzalice"),
    ("//qznas/qzshare", "qzshare"),
    ("qznas:/export/qzalice", "qznas"),
    ("[fd00:aaaa::1]:/x", "fd00:aaaa::1"),
    ("qzgluster:gv0", "qzgluster"),
    ("qzcephuser@fsid.cephfs=/", "qzcephuser"),
    ("10.11.12.13", "10.11.12.13"),
    ("10.11.12.13:2049", "10.11.12.13"),
    ("010.011.012.013", "010.011.012.013"),
    ("fd12:3456:789a::7", "fd12:3456:789a::7"),
    ("fe80::ba27:ebff:fe3a:2b1c%eth0", "ba27:ebff:fe3a:2b1c"),
    ("b8:27:eb:3a:2b:1c", "b827eb3a2b1c"),
    ("B8-27-EB-3A-2B-1C", "b827eb3a2b1c"),
    ("b827eb3a2b1c", "b827eb3a2b1c"),
    ("enxb827eb112233", "b827eb112233"),
    ("wlx001122aabbcc", "001122aabbcc"),
    ("wg-qzalice", "qzalice"),
    ("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9", "0a1b2c3d4e5f60718293a4b5c6d7e8f9"),
    ("PARTUUID=4f2a9c1d-02", "4f2a9c1d"),
    ("UUID=5DF9-E225", "5DF9E225"),
    ("LABEL=qzlabel", "qzlabel"),
    ("ZFS=qzpool/ROOT", "qzpool"),
    ("10000000a1b2c3d4", "10000000a1b2c3d4"),
    ("0x8a2f9c01", "8a2f9c01"),
    ("S4EVNX0R123456", "S4EVNX0R123456"),
    ("naa.5002538e40abcdef", "5002538e40abcdef"),
    ("eui.0025385b71b0a1c2", "0025385b71b0a1c2"),
    ("nqn.2014-08.org.nvmexpress:uuid:qzhost", "qzhost"),
    ("iqn.2004-01.com.example:qztarget", "qztarget"),
    ("123456789012", "123456789012"),
    ("password=qzhunter2", "qzhunter2"),
    ("PASSWORD=qzhunter2", "qzhunter2"),
    ("pass=qz,,hunter2", "hunter2"),
    ("password=\"qz hunter2\"", "hunter2"),
    ("username=qzalice,domain=QZWORK", "QZWORK"),
    ("user=qzalice%qzhunter2", "qzhunter2"),
    ("credentials=/home/qzalice/.smb", "qzalice"),
    ("passwd_file=/x,secret_access_key=qzs3secret", "qzs3secret"),
    ("addr=10.9.8.7", "10.9.8.7"),
    ("clientaddr=fe80::1:2%wlan0", "fe80::1:2"),
    ("ip=10.11.12.13::10.11.12.1:255.255.255.0:qzhost:eth0:off", "qzhost"),
    ("wifi.password=qzhunter2", "qzhunter2"),
    ("wpa.psk=qzhunter2", "qzhunter2"),
    ("ssid=qzhomewifi", "qzhomewifi"),
    ("smsc95xx.macaddr=B8:27:EB:3A:2B:1C", "b827eb3a2b1c"),
    ("root=iscsi:qzuser:qzpass@qzsrv::::iqn.x", "qzpass"),
    ("root=nbd:qznbdsrv:disk", "qznbdsrv"),
    ("nfsroot=10.11.12.14:/srv/qzdir,v3", "qzdir"),
    ("cifsroot=//qzsrv/s,username=u,password=qzpw", "qzpw"),
    ("x=\"a root=qzquoted b\"", "qzquoted"),
    ("cryptdevice=UUID=2222-3333:qzcrypt", "qzcrypt"),
    ("systemd.hostname=qzhost", "qzhost"),
    ("systemd.set_credential=x:qzcred", "qzcred"),
    ("rootflags=addr=qzsrv,password=qzpw", "qzpw"),
    ("alice.b@qzexample.org", "qzexample"),
    ("CN=qzhostname, O=qzorg", "qzhostname"),
    ("ghp_qzTOKEN0123456789abcdef", "qztoken0123456789abcdef"),
    ("eyJhbGciOiJIUzI1NiJ9.qzjwt.sig", "qzjwt"),
    ("CONF_SWAPFILE=/home/qzalice/swap", "qzalice"),
    ("6.1.0-qzalice", "qzalice"),
    ("OpenSSH_9.2p1 qzbuild", "qzbuild"),
    ("TLS 1.3, CN=qzhost", "qzhost"),
];

/// The spellings in which a reader would still find a secret: as it is, in capitals, without separators, backwards, as
/// hexadecimal digits, and in base64.
fn spellings(secret: &str) -> Vec<String> {
    let small = secret.to_lowercase();
    let bare: String = small.chars().filter(|c| c.is_alphanumeric()).collect();
    let backwards: String = small.chars().rev().collect();
    let hex: String = small.bytes().map(|b| format!("{b:02x}")).collect();
    vec![small, bare, backwards, hex]
}

#[test]
fn no_secret_of_any_kind_is_left_in_any_field() {
    assert!(SECRETS.len() >= 80);
    let mut leaks: Vec<String> = Vec::new();
    for record in [Record::Run, Record::Comparison] {
        let table = record.table();
        for (text, secret) in SECRETS {
            let mut value = full(table, table.root(), text, 7);
            let counts = share(&mut value, record);
            assert!(counts.dropped > 10, "{text}: hardly anything was planted");
            let left = value.to_string().to_lowercase();
            let bare: String = left.chars().filter(|c| c.is_alphanumeric()).collect();
            for spelling in spellings(secret) {
                let at = left.find(&spelling).or_else(|| bare.find(&spelling));
                let around = left.find(&spelling).map(|at| {
                    let from = left[..at].char_indices().rev().nth(60).map_or(0, |(from, _)| from);
                    left[from..].chars().take(140).collect::<String>()
                });
                if at.is_some() {
                    let around = around.unwrap_or_else(|| "apart".into());
                    leaks.push(format!("{record:?}: {secret} of {text}: …{around}…"));
                }
            }
        }
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

/// In one text alone, where nothing else says that it is private.
#[test]
fn no_secret_is_left_where_it_stands_alone() {
    let mut leaks: Vec<String> = Vec::new();
    // A product's name and a board's are free texts of their makers.
    let free = [TextRule::Model, TextRule::Compatible];
    for rule in TextRule::all().iter().filter(|rule| !free.contains(rule)) {
        for (text, secret) in SECRETS {
            let mut names = Pseudonyms::default();
            let public = BTreeSet::new();
            let context = rule::Context { names: &mut names, public: &public };
            let left = rule::text(*rule, text, context).unwrap_or_default().to_lowercase();
            let bare: String = left.chars().filter(|c| c.is_alphanumeric()).collect();
            for spelling in spellings(secret) {
                if left.contains(&spelling) || bare.contains(&spelling) {
                    leaks.push(format!("{rule:?}: {secret} of {text}: {left}"));
                }
            }
        }
    }
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}
