//! The plan for a server of disk images on example machines.

use super::*;
use crate::testing::{after, disk, facts, obstacles, plan, shown, wishes};
use crate::{Facts, Node};
use rubus_change::plan::Plan;
use rubus_change::steps::{StartServer, WriteFile};
use rubus_change::unseen::Unseen;
use rubus_fixtures as fixture;

const NETWORK: [(&str, &str); 2] = [("listen", "192.168.1.5"), ("allow", "192.168.1.0/24")];
const DEVICE: &str = "/dev/disk/by-id/usb-SanDisk_Ultra_Fit_4C5300-0:0";

/// As `rubus serve --make-certificates` makes them.
const CERTIFICATES: [&str; 5] = [
    "/etc/rubus/tls/server-cert.pem",
    "/etc/rubus/tls/server-key.pem",
    "/etc/rubus/tls/ca-cert.pem",
    "/etc/rubus/tls/client-cert.pem",
    "/etc/rubus/tls/client-key.pem",
];

fn machine() -> Machine {
    fixture::pi3_with_usb_ssd()
}

fn node(kind: NodeKind, user: u32) -> Result<Option<Node>, Unseen> {
    Ok(Some(Node {
        kind,
        user,
        group: user,
        size_bytes: match kind {
            NodeKind::File => 32 << 30,
            _ => 0,
        },
    }))
}

/// A machine with systemd and rubus, and these nodes.
fn found(wished: &[(&str, &str)], nodes: &[(&str, Result<Option<Node>, Unseen>)]) -> Facts {
    let given = [
        ("/run/systemd/system", PathState::Directory(Vec::new())),
        ("/usr/local/bin/rubus", PathState::Something),
    ];
    let mut facts = facts(&RECIPE, &machine(), wished, &given);
    for path in (RECIPE.look_at)(&machine(), &wishes(wished)).nodes {
        facts.nodes.insert(path, Ok(None));
    }
    for (path, node) in nodes {
        facts.nodes.insert(path.into(), node.clone());
        if matches!(node, Ok(Some(node)) if node.kind == NodeKind::Directory) {
            let held = PathState::Directory(vec!["other".into()]);
            facts.seen.insert(path.into(), held);
        }
    }
    facts
}

fn drawn(wished: &[(&str, &str)], nodes: &[(&str, Result<Option<Node>, Unseen>)]) -> Plan {
    plan(&RECIPE, &machine(), &found(wished, nodes), wished)
}

fn written(plan: &Plan, ending: &str) -> String {
    let texts = plan.steps.iter().filter_map(|step| match &step.action {
        Action::WriteFile(WriteFile { path, becomes, .. }) => Some((path, &becomes.text)),
        _ => None,
    });
    let mut texts = texts.filter(|(path, _)| path.display().to_string().ends_with(ending));
    texts.next().expect("it is written").1.clone()
}

/// The image `/srv/disk.img` of that user, and these files of root's.
fn with_files<'a>(user: u32, files: &[&'a str]) -> Vec<(&'a str, Result<Option<Node>, Unseen>)> {
    let image = ("/srv/disk.img", node(NodeKind::File, user));
    let files = files.iter().map(|path| (*path, node(NodeKind::File, 0)));
    std::iter::once(image).chain(files).collect()
}

/// The question after the start, and the address by which the promise is looked at.
fn questions(plan: &Plan) -> (String, &str) {
    let started = plan.steps.last().map(|step| &step.action);
    let (Some(Action::StartServer(StartServer { question, .. })), Look::Served { address, .. }) =
        (started, &plan.promises[0].look)
    else {
        panic!("{started:?}");
    };
    (question.join(" "), address)
}

#[test]
fn an_image_that_is_made_for_a_network() {
    let wished =
        [&[("image", "/srv/boards/kitchen.img"), ("size", "32GiB")], &NETWORK[..]].concat();
    insta::assert_snapshot!(shown(&drawn(&wished, &[])));
}

#[test]
fn clones_of_an_image_in_a_home() {
    let wished = [
        ("image", "/home/pi/golden one.img"),
        ("name", "golden"),
        ("clones", "/home/pi/100% clones"),
        ("listen", "0.0.0.0,[::]:10810"),
        ("allow", "any"),
    ];
    let nodes = [
        ("/home/pi/golden one.img", node(NodeKind::File, 1000)),
        ("/home/pi/100% clones", node(NodeKind::Directory, 1000)),
    ];
    insta::assert_snapshot!(shown(&drawn(&wished, &nodes)));
}

#[test]
fn a_device_is_given_away_or_only_read() {
    let wished = [("image", DEVICE), ("name", "stick")];
    let nodes = [(DEVICE, node(NodeKind::BlockDevice, 0))];
    let mut facts = found(&wished, &nodes);
    let identity = disk(DEVICE, "4C530001");
    facts.disks.insert(DEVICE.into(), Ok(identity.clone()));
    let given = plan(&RECIPE, &machine(), &facts, &wished);
    assert_eq!(obstacles(&given), [""; 0]);
    assert_eq!(given.disks_lost(), [&identity]);
    let service = written(&given, ".service");
    for line in [
        format!("DeviceAllow=\"{DEVICE}\" rw"),
        format!(
            "ExecStart=/usr/local/bin/rubus serve {DEVICE} --name=stick --i-will-lose-everything-on 4C530001"
        ),
    ] {
        assert!(service.contains(&format!("\n{line}\n")), "{service}");
    }
    assert!(!service.contains("PrivateDevices"), "{service}");
    // In use, or of a kind that the guard does not know: no.
    facts.disks.insert(DEVICE.into(), Err(Unseen::Other("it is mounted".into())));
    let refused = obstacles(&plan(&RECIPE, &machine(), &facts, &wished));
    assert!(refused[0].contains("it is mounted"), "{refused:?}");
    // Who only reads loses nothing.
    let wished = [("image", DEVICE), ("name", "stick"), ("read-only", "yes")];
    let read = drawn(&wished, &nodes);
    assert_eq!(obstacles(&read), [""; 0]);
    assert!(read.disks_lost().is_empty());
    let service = written(&read, ".service");
    assert!(service.contains(" --read-only\n") && service.contains(" r\n"), "{service}");
}

#[test]
fn the_server_has_the_rights_of_the_images_owner_and_no_others() {
    let service = |user, wished: &[(&str, &str)]| {
        let image = wished[0].1;
        let kind = if image.ends_with(".img") { NodeKind::File } else { NodeKind::Directory };
        let plan = drawn(wished, &[(image, node(kind, user))]);
        assert_eq!(obstacles(&plan), [""; 0]);
        written(&plan, ".service")
    };
    let root = service(0, &[("image", "/srv/disk.img")]);
    assert!(!root.contains("User=") && root.contains("\nReadWritePaths=/srv/disk.img\n"), "{root}");
    let read = service(0, &[("image", "/srv/disk.img"), ("read-only", "yes")]);
    assert!(!read.contains("Paths="), "{read}");
    let home = service(1000, &[("image", "/home/pi/disk.img")]);
    assert!(home.contains("\nUser=1000\nGroup=1000\n"), "{home}");
    assert!(home.contains("\nProtectHome=tmpfs\nBindPaths=/home/pi/disk.img\n"), "{home}");
    let all = service(0, &[("image", "/srv/images")]);
    assert!(all.contains(" serve /srv/images\n"), "{all}");
}

#[test]
fn what_is_already_there_is_not_done_again() {
    let encrypted = [("image", "/srv/disk.img"), ("certificates", "/etc/rubus/tls")];
    let wished = [&encrypted, &NETWORK[..]].concat();
    let nodes = with_files(0, &CERTIFICATES);
    let first_facts = found(&wished, &nodes);
    let first = plan(&RECIPE, &machine(), &first_facts, &wished);
    let mut facts = after(&first_facts, &first);
    facts.seen.insert(own_socket("disk"), PathState::Something);
    let again = plan(&RECIPE, &machine(), &facts, &wished);
    assert_eq!(obstacles(&again), [""; 0]);
    assert!(again.is_empty(), "{:?}", again.steps);
    // Stopped by hand, it is started.
    facts.seen.insert(own_socket("disk"), PathState::Absent);
    let again = plan(&RECIPE, &machine(), &facts, &wished);
    assert_eq!(again.steps.len(), 1, "{:?}", again.steps);
    // With other wishes of the same name it would be another's.
    let other = [("image", "/srv/disk.img")];
    let refused = obstacles(&plan(&RECIPE, &machine(), &facts, &other));
    assert!(refused[0].starts_with("the units' names are free"), "{refused:?}");
}

#[test]
fn an_encrypted_image_for_clients_with_a_certificate() {
    let wished = [
        &[
            ("image", "/srv/disk.img"),
            ("certificates", "/srv/./100% mine: tls/"),
            ("verify-clients", "yes"),
        ],
        &NETWORK[..],
    ]
    .concat();
    let files = CERTIFICATES.map(|path| path.replace("/etc/rubus/tls", "/srv/100% mine: tls"));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    insta::assert_snapshot!(shown(&drawn(&wished, &with_files(1000, &files))));
}

#[test]
fn each_way_of_tls_is_told_to_server_client_and_reader() {
    let asked = "?tls-hostname=localhost&tls-certificates=/etc/rubus/tls";
    let plain = "info nbd://192.168.1.5/disk".to_string();
    let encrypted = format!("info nbds://192.168.1.5/disk{asked}");
    let mut text = String::new();
    for (mode, verifies, files, argument, question) in [
        (None, "no", 3, "--tls=require", &encrypted),
        (Some("require"), "yes", 5, "--verify-clients", &encrypted),
        (Some("allow"), "no", 2, "--tls=allow", &plain),
    ] {
        let mut wished = [&[("image", "/srv/disk.img")], &NETWORK[..]].concat();
        wished.extend(mode.map(|mode| ("tls", mode)));
        wished.extend([("certificates", "/etc/rubus/tls"), ("verify-clients", verifies)]);
        let plan = drawn(&wished, &with_files(0, &CERTIFICATES[..files]));
        assert_eq!(obstacles(&plan), [""; 0]);
        let service = written(&plan, ".service");
        assert!(service.contains(argument), "{service}");
        // The authority's certificate is the server's business only where it looks at those of clients.
        let shows_authority = service.contains("LoadCredential=ca-cert.pem:");
        assert_eq!(shows_authority, verifies == "yes", "{service}");
        let (told, address) = questions(&plan);
        assert_eq!(told, *question);
        assert_eq!(address, question.replace("info ", "").replace("/disk", "/"));
        text += &format!("{argument}\n  {}\n  {}\n", plan.risks[0], plan.notes[0]);
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_own_socket_is_asked_with_tls_too() {
    let wished = [
        ("image", "/srv/disk.img"),
        ("listen", "0.0.0.0"),
        ("allow", "10.0.0.0/8"),
        ("certificates", "/etc/rubus/tls"),
    ];
    let plan = drawn(&wished, &with_files(0, &CERTIFICATES));
    assert_eq!(
        questions(&plan).0,
        "info nbds+unix:///disk?socket=/run/rubus-serve-disk.socket&tls-hostname=localhost&tls-certificates=/etc/rubus/tls"
    );
}

#[test]
fn what_tls_lacks_is_said() {
    let certificates = ("certificates", "/etc/rubus/tls");
    let [server, key, authority, client, client_key] = CERTIFICATES;
    let hidden = |path| (path, Err(Unseen::Denied("Permission denied".into())));
    let empty = Node { kind: NodeKind::File, user: 0, group: 0, size_bytes: 0 };
    let cases: [(&[(&str, &str)], Vec<_>); 13] = [
        (&[("tls", "require")], Vec::new()),
        (&[("verify-clients", "yes")], Vec::new()),
        (&[("tls", "off"), certificates], with_files(0, &CERTIFICATES)),
        (
            &[("tls", "allow"), certificates, ("verify-clients", "yes")],
            with_files(0, &CERTIFICATES),
        ),
        (&[("certificates", "/tmp/tls")], Vec::new()),
        (&[("certificates", "/srv/my tls")], Vec::new()),
        (&[certificates], Vec::new()),
        (&[certificates], with_files(0, &[server, authority])),
        (&[certificates], with_files(0, &[server, key])),
        (&[certificates], with_files(0, &[server, key, authority, client])),
        (&[certificates, ("verify-clients", "yes")], with_files(0, &[server, key, authority])),
        (&[certificates], vec![hidden(server), hidden(client_key)]),
        (
            &[certificates, ("tls", "allow")],
            vec![(server, Ok(Some(empty))), (key, node(NodeKind::Directory, 0))],
        ),
    ];
    let mut text = String::new();
    for (wished, mut nodes) in cases {
        let asked: Vec<String> =
            wished.iter().map(|(name, value)| format!("{name}={value}")).collect();
        text += &format!("{}\n", asked.join(" "));
        nodes.push(("/srv/disk.img", node(NodeKind::File, 0)));
        let wished = [&[("image", "/srv/disk.img")], wished].concat();
        let all = obstacles(&drawn(&wished, &nodes));
        assert!(!all.is_empty(), "{asked:?}");
        for obstacle in all {
            text += &format!("  {obstacle}\n");
        }
    }
    insta::assert_snapshot!(text);
    // Of a captured machine it is unknown, and possible.
    let wished = [("image", "/srv/disk.img"), certificates];
    let mut facts = found(&wished, &[]);
    facts.nodes.clear();
    assert_eq!(obstacles(&plan(&RECIPE, &machine(), &facts, &wished)), [""; 0]);
}

#[test]
fn who_must_show_a_certificate_is_not_let_in_without_a_password() {
    let wished = [
        ("image", "/srv/disk.img"),
        ("listen", "0.0.0.0"),
        ("certificates", "/etc/rubus/tls"),
        ("verify-clients", "yes"),
    ];
    let refused = obstacles(&drawn(&wished, &with_files(0, &CERTIFICATES)));
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(
        refused[0].ends_with("may connect, and has to show a client's certificate"),
        "{refused:?}"
    );
}

#[test]
fn every_obstacle_says_what_to_do() {
    let mut text = String::new();
    let file = |image: &'static str| vec![(image, node(NodeKind::File, 0))];
    let cases: [(&[(&str, &str)], Vec<_>); 9] = [
        (&[], Vec::new()),
        (&[("image", "/srv/disk.img")], Vec::new()),
        (&[("image", "/srv/disk.img"), ("listen", "0.0.0.0")], file("/srv/disk.img")),
        (&[("image", "/srv/disk.img"), ("size", "1GiB")], file("/srv/disk.img")),
        (&[("image", "/tmp/disk.img")], file("/tmp/disk.img")),
        (
            &[("image", "/dev/sda"), ("read-only", "yes")],
            vec![("/dev/sda", node(NodeKind::BlockDevice, 0))],
        ),
        (&[("image", "/srv/my disk.img")], file("/srv/my disk.img")),
        (
            &[("image", "/srv/a.img"), ("clones", "/srv/c"), ("read-only", "yes")],
            file("/srv/a.img"),
        ),
        (&[("image", "/srv/pipe")], vec![("/srv/pipe", node(NodeKind::Other, 0))]),
    ];
    for (wished, nodes) in cases {
        let asked: Vec<String> =
            wished.iter().map(|(name, value)| format!("{name}={value}")).collect();
        text += &format!("{}\n", asked.join(" "));
        let all = obstacles(&drawn(wished, &nodes));
        assert!(!all.is_empty(), "{asked:?}");
        for obstacle in all {
            text += &format!("  {obstacle}\n");
        }
    }
    // A machine with neither systemd nor an installed rubus.
    let wished = [("image", "/srv/disk.img")];
    let bare = facts(&RECIPE, &machine(), &wished, &[]);
    text += "a bare machine\n";
    for obstacle in obstacles(&plan(&RECIPE, &machine(), &bare, &wished)) {
        text += &format!("  {obstacle}\n");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_server_is_asked_where_it_lets_its_own_machine_in() {
    for (listen, allow, address) in [
        ("127.0.0.1", None, "nbd://127.0.0.1/disk"),
        ("192.168.1.5", Some("192.168.1.0/24"), "nbd://192.168.1.5/disk"),
        ("0.0.0.0:4000", Some("any"), "nbd://127.0.0.1:4000/disk"),
        ("[::]:4000", Some("any"), "nbd://[::1]:4000/disk"),
        ("0.0.0.0", Some("192.168.1.0/24"), "nbd+unix:///disk?socket=/run/rubus-serve-disk.socket"),
    ] {
        let mut wished = vec![("image", "/srv/disk.img"), ("listen", listen)];
        wished.extend(allow.map(|networks| ("allow", networks)));
        let plan = drawn(&wished, &with_files(0, &[]));
        assert_eq!(questions(&plan).0, format!("info {address}"));
    }
}

#[test]
fn names_and_places_that_cannot_be_are_refused() {
    for (image, name) in [
        ("/srv/disk.img", "disk"),
        ("/srv/images/", "images"),
        ("/srv/debian-12.iso", "debian-12"),
        ("/dev/disk/by-id/usb-1:0", "usb-1:0"),
    ] {
        assert_eq!(export::name_of(image), name);
    }
    for wrong in ["", "-a", ".", "a b", "a/b", "a@b", "a%b"] {
        assert!(export::name(wrong).is_err(), "{wrong}");
    }
    assert!(export::image("/srv/list.toml").unwrap_err().contains("TOML"));
    assert!(export::image("disk.img").is_err());
    assert!(tls::place("tls").unwrap_err().contains("/etc/rubus/tls"));
    assert!(tls::mode("yes").is_err());
    assert!(listening("192.168.1.5,pi").is_err());
    let error = allowed("192.168.1.5/24").unwrap_err();
    assert!(error.contains("192.168.1.0/24, or any"), "{error}");
}
