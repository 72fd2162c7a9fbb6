//! Encryption of what is served: the certificates, which systemd hands to the service, and how the server is asked then.

use std::path::{Path, PathBuf};

use super::export;
use crate::{Answer, NodeKind, PlanBuilder, PlanInput, Wishes, mounting, units};
use rubus_change::plan::commands::Command;
use rubus_nbd::names::{AUTHORITY, CLIENT, CLIENT_KEY, SERVER, SERVER_KEY};
use rubus_vocabulary::escapes::escaped;

/// Where certificates may be.
const USUAL: &str = "/etc/rubus/tls";

/// How connections are encrypted.
pub(super) struct Tls {
    /// Where the certificates are.
    pub(super) directory: String,
    /// Else each client has the choice.
    pub(super) is_required: bool,
    /// Who shows no certificate is not served.
    pub(super) verifies_clients: bool,
}

/// Why a file has to be there.
type Needed = (&'static str, &'static str);

/// A directory of certificates, or a sentence that says what one is.
pub(super) fn place(value: &str) -> Result<(), String> {
    mounting::place(value).map_err(|_| "write an absolute path, such as /etc/rubus/tls".into())
}

/// Whether connections are encrypted, or a sentence that says what can be wished.
pub(super) fn mode(value: &str) -> Result<(), String> {
    match value {
        "require" | "allow" | "off" => Ok(()),
        _ => Err("write require, allow or off".into()),
    }
}

/// The files that a server and its clients may need. The keys themselves are not read.
pub(super) fn look_at(wishes: &Wishes) -> Vec<PathBuf> {
    let directory = wishes.get("certificates").map(Path::new);
    let files = |directory: &Path| {
        let names = [AUTHORITY, SERVER, SERVER_KEY, CLIENT, CLIENT_KEY];
        names.map(|name| directory.join(name))
    };
    directory.into_iter().flat_map(files).collect()
}

/// The requested TLS settings; nothing where all is in the clear, or where TLS is impossible.
pub(super) fn look(situation: &PlanInput<'_>, draft: &mut PlanBuilder) -> Option<Tls> {
    let directory = situation.option("certificates");
    let usual = if directory.is_some() { "require" } else { "off" };
    let mode = situation.option("tls").unwrap_or(usual);
    let verifies_clients = situation.option("verify-clients") == Some("yes");
    if directory.is_none() && mode == "off" && !verifies_clients {
        return None;
    }
    check_wishes(mode, directory, verifies_clients, draft);
    let directory = directory.filter(|_| mode != "off")?;
    // systemd takes no path with a dot alone between slashes.
    let directory: PathBuf = Path::new(directory).components().collect();
    let tls = Tls {
        directory: directory.display().to_string(),
        is_required: mode == "require",
        verifies_clients,
    };
    tls.check(situation, draft);
    Some(tls)
}

fn check_wishes(
    mode: &str,
    directory: Option<&str>,
    verifies_clients: bool,
    draft: &mut PlanBuilder,
) {
    let make = format!("make them with `{}`, and say certificates={USUAL}", making(USUAL));
    let without = "leave certificates= out, or say tls=require";
    let (fault, remedy) = match (mode, directory) {
        ("off", None) => ("verify-clients=yes, and no certificates", &*make),
        (_, None) => ("no certificates are named", &*make),
        ("off", _) => ("tls=off, and certificates are named", without),
        ("allow", _) if verifies_clients => (
            "a client that does without TLS shows no certificate",
            "say tls=require, or leave verify-clients= out",
        ),
        _ => ("", ""),
    };
    let found = match (fault, verifies_clients) {
        ("", true) => format!("tls={mode}, and clients show a certificate"),
        ("", false) => format!("tls={mode}"),
        (fault, _) => fault.into(),
    };
    let what = "the TLS options go together";
    draft.check(what, fault.is_empty(), found, remedy);
}

/// The command that makes certificates.
fn making(directory: &str) -> Command {
    let arguments = ["rubus", "serve", "--make-certificates", directory];
    Command { program: "sudo", arguments: arguments.map(String::from).to_vec() }
}

impl Tls {
    fn check(&self, situation: &PlanInput<'_>, draft: &mut PlanBuilder) {
        let lasts = !export::is_passing(&self.directory);
        draft.check(
            "the certificates are in the same place after a restart",
            lasts,
            self.directory.clone(),
            &format!("move them to a place on a disk, such as {USUAL}"),
        );
        if !lasts {
            return;
        }
        // Since version 255 systemd writes the path down for the service's process between spaces, and cannot read it back.
        let has_spaces = self.directory.contains(char::is_whitespace);
        draft.check(
            "systemd can hand the certificates to the server",
            !has_spaces,
            if has_spaces {
                format!("{} has white space, which systemd 255 and later lose", self.directory)
            } else {
                self.directory.clone()
            },
            &format!("move them to a directory without, such as {USUAL}"),
        );
        let is_absent = |name: &str| {
            let node = situation.facts.nodes.get(&self.path(name));
            matches!(node, Some(Ok(None)))
        };
        let is_new = [AUTHORITY, SERVER, SERVER_KEY].into_iter().all(is_absent);
        let remedy = if is_new {
            format!("make them with `{}`", making(&self.directory))
        } else {
            format!(
                "put there what goes with the others, or make new ones in another directory: `{}`",
                making("DIRECTORY")
            )
        };
        let what = "the certificates that the server needs are there";
        self.check_files(what, &self.of_the_server(), &remedy, situation, draft);
        if is_new || !self.is_required {
            return;
        }
        let remedy = format!(
            "put it there from where the certificates were made: after the start, and in rubus verify, this machine is a client \
             with the files in {}",
            self.directory
        );
        let asks = self.of_who_asks(!is_absent(CLIENT));
        let what = "rubus can ask the server itself, with TLS";
        self.check_files(what, &asks, &remedy, situation, draft);
    }

    fn check_files(
        &self,
        what: &str,
        files: &[Needed],
        remedy: &str,
        situation: &PlanInput<'_>,
        draft: &mut PlanBuilder,
    ) {
        let mut missing = Vec::new();
        let (mut is_known, mut is_denied) = (true, false);
        for (name, why) in files {
            let path = self.path(name);
            let shown = path.display();
            match situation.facts.nodes.get(&path) {
                Some(Ok(Some(node))) if node.kind == NodeKind::File && node.size_bytes > 0 => {}
                Some(Ok(Some(_))) => missing.push(format!("{shown} is empty or no file ({why})")),
                Some(Ok(None)) => missing.push(format!("there is no {shown} ({why})")),
                Some(Err(why)) => {
                    is_denied |= why.is_denied();
                    missing.push(format!("{shown} cannot be seen: {why}"));
                }
                None => is_known = false,
            }
        }
        let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        let found = match (&missing[..], is_known) {
            ([], true) => format!("{} in {}", names.join(", "), self.directory),
            ([], false) => "not known: the capture does not say".into(),
            (missing, _) => missing.join("; "),
        };
        let remedy = if is_denied { "look as root, with sudo" } else { remedy };
        let answer = match (missing.is_empty(), is_known) {
            (true, false) => Answer::Unknown,
            (has_all, _) => Answer::from(has_all),
        };
        draft.check(what, answer, found, remedy);
    }

    fn of_the_server(&self) -> Vec<Needed> {
        let mut files = vec![
            (SERVER, "clients know the server by it"),
            (SERVER_KEY, "it proves that the certificate is the server's"),
        ];
        if self.verifies_clients {
            files.push((AUTHORITY, "the server knows clients by it"));
        }
        files
    }

    /// Who asks shows a client's certificate that is there, whether it is wanted or not.
    fn of_who_asks(&self, has_certificate: bool) -> Vec<Needed> {
        let mut files = vec![(AUTHORITY, "rubus knows the server by it")];
        if self.verifies_clients {
            files.push((CLIENT, "the server wants to see one"));
            files.push((CLIENT_KEY, "the server wants proof of it"));
        } else if has_certificate {
            files.push((CLIENT_KEY, "client-cert.pem beside it is of no use alone"));
        }
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.directory).join(name)
    }

    /// Lines of the service. systemd reads the files as root, and shows the server copies that its user may read.
    pub(super) fn credentials(&self) -> Vec<String> {
        let line = |(name, _): Needed| {
            // All that is behind the colon is the path; quotes would be a part of it.
            let path = self.path(name).display().to_string();
            format!("LoadCredential={name}:{}", units::text(&path))
        };
        self.of_the_server().into_iter().map(line).collect()
    }

    /// What the server is told. %d is where systemd puts the copies.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mode = if self.is_required { "require" } else { "allow" };
        let mut words = vec![format!("--tls={mode}"), "--certificates=%d".into()];
        if self.verifies_clients {
            words.push("--verify-clients".into());
        }
        words
    }

    /// What stands behind the question mark of an address by which this machine asks. The certificate may be older than the
    /// machine's addresses; localhost does not change.
    pub(super) fn parameters(&self) -> String {
        let directory = escaped(self.directory.as_bytes(), "/");
        format!("tls-hostname=localhost&tls-certificates={directory}")
    }
}
