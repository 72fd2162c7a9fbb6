//! A file server that never answers: each verb that would touch its share ends in time and says so, and no process is left
//! waiting. The server is a FUSE mount whose program reads nothing, which holds up every call as a hard mount of NFS does.

use std::path::Path;

use crate::common::can_run;
use crate::common::program::{Answer, Home, binary};
use rubus_lab::devices::needs::Need;
use rubus_lab::devices::programs;

const TEST: &str = "hanging_share";

/// In mounts and with processes of its own: the share, the verb, then what still waits for the share. `$0` is the program, `$1` the directory.
const SCRIPT: &str = r#"
share=$1/nas
mkdir -p "$share"
ln -sfn "$share" "$1/link"
exec 3<>/dev/fuse
mount -i -t fuse.nas -o fd=3,rootmode=40000,user_id=0,group_id=0,allow_other nas:/media "$share" || exit 90
shift
timeout -s KILL 120 "$0" "$@"
status=$?
set -- /proc/[0-9]*
[ $# = 1 ] || { cat /proc/[0-9]*/cmdline | tr '\0' ' ' >&2; status=91; }
umount -f -l "$share"
exit $status
"#;

fn with_a_share(home: &Home, arguments: &[&str]) -> Answer {
    let mut command = programs::command("unshare");
    home.adopt(&mut command);
    command
        .args(["-m", "-p", "-f", "--mount-proc", "bash", "-c", SCRIPT])
        .arg(binary())
        .arg(home.path())
        .args(arguments);
    Answer::of(command.output().expect("unshare starts"))
}

#[test]
fn a_share_that_never_answers_ends_every_verb_with_words() {
    let needs =
        [Need::Root, Need::Program("unshare", "util-linux"), Need::Program("mount", "mount")];
    if !can_run(TEST, &needs) {
        return;
    }
    if !Path::new("/dev/fuse").exists() {
        rubus_fixtures::skipped(TEST, "no /dev/fuse: the kernel has no FUSE");
        return;
    }
    let home = Home::new();
    let path = |name: &str| home.path().join(name).display().to_string();
    for (verb, place) in [("bench", "nas"), ("checkup", "link"), ("enough", "nas")] {
        let place = path(place);
        let arguments = match verb {
            "enough" => vec!["enough", "home-assistant", &place],
            _ => vec![verb, &place],
        };
        let answer = with_a_share(&home, &arguments);
        assert_eq!(answer.status, Some(2), "{verb} {place}: {answer}");
        for words in ["did not answer within 10 s", "umount -f -l", &place] {
            assert!(answer.stderr.contains(words), "no '{words}': {answer}");
        }
    }
    let place = path("nas");
    let short = with_a_share(&home, &[&place]);
    assert_eq!(short.status, Some(2), "{short}");
    assert!(short.stderr.contains("did not answer within 10 s"), "{short}");
    // Beside it, everything works: the survey asks no server, and another directory is measured.
    let survey = with_a_share(&home, &["survey", "--verbose"]);
    assert_eq!(survey.status, Some(0), "{survey}");
    let advice = with_a_share(&home, &["advise"]);
    assert_eq!(advice.status, Some(0), "{advice}");
}
