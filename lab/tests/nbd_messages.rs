//! Messages to a user who measures a network disk when something is wrong.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::program::{Answer, Home};
use crate::common::{can_run, report, take_turns};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::{NbdServer, free_port, programs};
use tempfile::TempDir;

const NBDKIT: Need = Need::Program("nbdkit", "nbdkit");

fn bench(home: &Home, address: &str, more: &[&str]) -> Answer {
    let mut arguments = vec!["bench", address, "--no-html", "--no-history", "--quiet"];
    arguments.extend_from_slice(more);
    home.run(&arguments)
}

/// The program says this on standard error and ends with that status.
fn says(answer: &Answer, status: i32, words: &[&str]) {
    assert_eq!(answer.status, Some(status), "{answer}");
    for words in words {
        assert!(answer.stderr.contains(words), "'{words}' is not in: {answer}");
    }
}

#[test]
fn what_cannot_be_reached_is_said_with_advice() {
    if !can_run("nbd_unreachable", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let port = free_port("127.0.0.1").expect("a port");
    let nobody = format!("nbd://127.0.0.1:{port}/disk");
    says(&bench(&home, &nobody, &[]), 2, &["nothing listens on", "is the server running"]);
    says(
        &bench(&home, "nbd://rubus.invalid/", &[]),
        2,
        &["cannot find the address of 'rubus.invalid'", "check the spelling"],
    );
    says(
        &bench(&home, "nbd+unix:///?socket=/nowhere/at-all", &[]),
        2,
        &["there is no socket /nowhere/at-all"],
    );
    says(&bench(&home, "nbd://::1/", &[]), 2, &["needs brackets"]);
    says(&bench(&home, "nbd+unix:///disk", &[]), 2, &["which socket?"]);
    says(&bench(&home, "nbd://pi/disk?turbo=1", &[]), 2, &["'turbo'"]);
    // Something listens and speaks something else.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let speaker = std::thread::spawn(move || {
        use std::io::Write;
        let (mut stream, _) = listener.accept().expect("somebody connects");
        stream.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n").expect("it listens");
        std::thread::sleep(Duration::from_millis(500));
    });
    let other = format!("nbd://127.0.0.1:{port}/");
    says(&bench(&home, &other, &[]), 2, &["does not speak NBD", "host and port"]);
    speaker.join().expect("it spoke");
}

#[test]
fn an_export_that_is_not_there_is_told_with_those_that_are() {
    let needs =
        [Need::Program("qemu-nbd", "qemu-utils"), Need::Program("nbd-server", "nbd-server")];
    if !can_run("nbd_exports", &needs) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let qemu = NbdServer::qemu(1 << 20, &[]).expect("qemu-nbd serves");
    let wrong = qemu.address().replace("/disk", "/disc");
    says(&bench(&home, &wrong, &[]), 2, &["has no export 'disc'; it has 'disk'"]);
    let reference = NbdServer::reference(1 << 20).expect("nbd-server serves");
    let wrong = reference.address().replace("/disk", "/disc");
    says(&bench(&home, &wrong, &[]), 2, &["no export 'disc'", "'disk'"]);
}

#[test]
fn writing_needs_the_address_and_an_export_that_takes_it() {
    if !can_run("nbd_consent", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let server = NbdServer::nbdkit(&["-r", "memory", "64M"]).expect("nbdkit serves");
    let consent = |address: &str| format!("--i-will-lose-everything-on={address}");
    let address = server.address();
    says(
        &bench(&home, address, &[&consent("nbd://other/")]),
        3,
        &["refused", "you allowed the loss of 'nbd://other/'", address],
    );
    says(&bench(&home, address, &[&consent(address)]), 2, &["for reading only"]);
    says(&bench(&home, address, &["--suite=commit"]), 2, &["nothing to measure"]);
}

#[test]
fn a_server_that_wants_tls_is_recognised() {
    if !can_run("nbd_tls_required", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let keys = TempDir::with_prefix("rubus-lab-").expect("a directory");
    std::fs::write(keys.path().join("psk"), "rubus:00112233445566778899aabbccddeeff\n")
        .expect("a key file");
    let psk = format!("--tls-psk={}", keys.path().join("psk").display());
    let server = NbdServer::nbdkit(&["--tls=require", &psk, "memory", "1M"]).expect("it serves");
    says(&bench(&home, server.address(), &[]), 2, &["wants TLS", "nbds+unix://"]);
    let plain = NbdServer::nbdkit(&["memory", "1M"]).expect("it serves");
    let secure = plain.address().replace("nbd+unix", "nbds+unix");
    says(&bench(&home, &secure, &[]), 2, &["TLS"]);
}

/// A certificate authority, a server's certificate for localhost and a client's, made by openssl.
fn certificates(directory: &Path) {
    let openssl = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = programs::command("openssl")
            .args(&arguments)
            .current_dir(directory)
            .output()
            .expect("openssl starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "openssl {arguments:?}: {said}");
    };
    let write = |name: &str, text: &str| {
        std::fs::write(directory.join(name), text).expect("a file in our own directory");
    };
    write("server.ext", "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
    write("client.ext", "extendedKeyUsage=clientAuth\n");
    let key = "-newkey rsa:2048 -nodes";
    openssl(&format!("req -x509 {key} -days 2 -subj /CN=lab -keyout ca-key.pem -out ca-cert.pem"));
    for who in ["server", "client"] {
        openssl(&format!("req {key} -subj /CN={who} -keyout {who}-key.pem -out {who}.csr"));
        openssl(&format!(
            "x509 -req -in {who}.csr -CA ca-cert.pem -CAkey ca-key.pem -CAcreateserial -days 2 \
             -extfile {who}.ext -out {who}-cert.pem"
        ));
    }
}

#[test]
fn an_encrypted_export_is_measured_and_a_stranger_is_not_trusted() {
    if !can_run("nbd_tls", &[NBDKIT, Need::Program("openssl", "openssl")]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let keys = TempDir::with_prefix("rubus-lab-").expect("a directory");
    certificates(keys.path());
    let only_authority = TempDir::with_prefix("rubus-lab-").expect("a directory");
    std::fs::copy(keys.path().join("ca-cert.pem"), only_authority.path().join("ca-cert.pem"))
        .expect("a copy");
    let serve = |more: &[&str]| {
        let certificates = format!("--tls-certificates={}", keys.path().display());
        let arguments = [&["--tls=require", certificates.as_str()], more, &["memory", "64M"]];
        NbdServer::nbdkit_tcp("127.0.0.1", &arguments.concat()).expect("nbdkit serves")
    };
    let server = serve(&[]);
    let secure = |server: &NbdServer, query: &str| {
        let address = server.address().replace("nbd://", "nbds://");
        format!("{address}?{query}")
    };
    let trusting = |directory: &TempDir| format!("tls-certificates={}", directory.path().display());
    let query = format!("{}&tls-hostname=elsewhere", trusting(&only_authority));
    let name = bench(&home, &secure(&server, &query), &[]);
    says(&name, 2, &["is not for 'elsewhere'", "tls-hostname="]);
    if Path::new("/etc/ssl/certs/ca-certificates.crt").exists() {
        let stranger = bench(&home, &secure(&server, ""), &[]);
        says(&stranger, 2, &["authority that is not trusted", "tls-certificates="]);
    }
    let wants = serve(&["--tls-verify-peer"]);
    let nobody = bench(&home, &secure(&wants, &trusting(&only_authority)), &[]);
    says(&nobody, 2, &["certificate of this client"]);
    let run = bench(&home, &secure(&wants, &trusting(&keys)), &["--json=-", "--precision=25"]);
    assert_eq!(run.status, Some(0), "{run}");
    let tls = &run.json()["target"]["network"]["tls"];
    assert!(tls.as_str().is_some_and(|tls| tls.starts_with("TLS 1.3")), "{tls}");
}

#[test]
fn a_bad_block_ends_the_job_in_words() {
    if !can_run("nbd_bad_block", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    let failing = ["--filter=error", "memory", "64M", "error-pread=EIO"];
    let rate = "error-pread-rate=1%";
    let server = NbdServer::nbdkit(&[&failing[..], &[rate]].concat()).expect("nbdkit serves");
    let answer = bench(&home, server.address(), &[]);
    // One of the reads at the start may have been the bad one.
    assert!(matches!(answer.status, Some(1 | 2)), "{answer}");
    assert!(answer.stderr.contains("input/output error"), "{answer}");
    assert!(answer.stderr.contains("log of the server"), "{answer}");
}

#[test]
fn a_server_that_dies_ends_the_run_and_ctrl_c_does_too() {
    if !can_run("nbd_server_dies", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    let home = Home::new();
    for is_killed in [true, false] {
        let mut server = NbdServer::nbdkit(&["--filter=delay", "memory", "64M", "delay-read=1ms"])
            .expect("it serves");
        let mut program = home
            .command()
            .args(["bench", server.address(), "--no-html", "--no-history", "--quiet"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        std::thread::sleep(Duration::from_secs(2));
        assert!(program.try_wait().expect("its state").is_none(), "it runs");
        if is_killed {
            server.kill();
        } else {
            let pid = rustix::process::Pid::from_child(&program);
            rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is there");
        }
        let answer = Answer::of(program.wait_with_output().expect("it ends"));
        let words = if is_killed {
            ["the server closed the connection", "is the server still running?"]
        } else {
            ["stopped during", "1 MiB sequential reads"]
        };
        says(&answer, 1, &words);
    }
}

#[test]
fn an_ipv6_literal_and_several_connections_are_measured() {
    if !can_run("nbd_ipv6", &[NBDKIT]) {
        return;
    }
    let _turn = take_turns();
    if free_port("::1").is_err() {
        report("this machine has no IPv6; the test of a literal is left out");
        return;
    }
    let home = Home::new();
    let server = NbdServer::nbdkit_tcp("::1", &["memory", "64M"]).expect("nbdkit serves");
    let more = ["--connections=2", "--json=-", "--precision=25"];
    let answer = bench(&home, server.address(), &more);
    assert_eq!(answer.status, Some(0), "{answer}");
    let run = answer.json();
    let network = &run["target"]["network"];
    assert_eq!(network["connections"], 2);
    assert!(network["peer"].as_str().is_some_and(|peer| peer.starts_with("[::1]:")));
    assert_eq!(network["can_multi_conn"], true);
    assert_eq!(run["results"][0]["engine"], "nbd");
}
