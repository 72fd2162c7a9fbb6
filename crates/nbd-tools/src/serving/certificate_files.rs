//! Files with certificates: what a server with TLS and its clients need.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::Context;
use rubus_host::files::{document, own_files};
use rubus_host::net::own_names;
use rubus_nbd::certificates::{self, Made};

/// Makes certificates for this machine by all of its names and addresses, and by `more`, if there are none or nothing
/// else is asked for; and for each of these clients. `tell` gets what was made, line by line.
///
/// # Errors
/// When there are certificates already, or they cannot be written.
pub fn make(
    directory: &Path,
    more: &[String],
    clients: &[String],
    tell: &mut dyn FnMut(&str),
) -> anyhow::Result<()> {
    let has_authority = directory.join(certificates::AUTHORITY).exists();
    if clients.is_empty() || !has_authority {
        make_all(directory, more, tell)?;
    } else {
        anyhow::ensure!(
            more.is_empty(),
            "--known-as is for the certificate of the server, which is there already; leave it out"
        );
    }
    make_clients(directory, clients, tell)
}

/// Makes the certificates of clients, each in a directory of its own that can be copied to it as it is.
fn make_clients(
    directory: &Path,
    clients: &[String],
    tell: &mut dyn FnMut(&str),
) -> anyhow::Result<()> {
    if clients.is_empty() {
        return Ok(());
    }
    let read = |name: &str| {
        let path = directory.join(name);
        document::text(&path, document::MAX_LIST_BYTES)
            .with_context(|| format!("cannot read {}", path.display()))
    };
    let authority = read(certificates::AUTHORITY)?;
    let key = read(certificates::AUTHORITY_KEY)?;
    let mut made = Vec::new();
    for client in clients {
        let files = certificates::make_client(&authority, &key, client)?;
        let place = directory.join("clients").join(client);
        must_be_new(&place, &files)?;
        made.push((place, files));
    }
    for (place, files) in &made {
        write_all(place, files)?;
        tell(&format!("Made in {}. Copy that directory to the client.", place.display()));
    }
    Ok(())
}

fn make_all(directory: &Path, more: &[String], tell: &mut dyn FnMut(&str)) -> anyhow::Result<()> {
    let machine = own_names::machine();
    let names = names(&machine, more);
    let made = certificates::make(&machine, &names)?;
    must_be_new(directory, &made)?;
    write_all(directory, &made)?;
    let place = directory.display();
    tell(&format!("Made in {place}, for a server that is reached by any of these names:"));
    tell(&format!("  {}", names.join(" ")));
    tell("Only root, or the user who made them, can read the keys. To serve with them:");
    tell(&format!("  rubus serve IMAGE --tls require --certificates {place}"));
    tell(&format!(
        "A client needs {}; copy it to a directory there, and:",
        certificates::AUTHORITY
    ));
    tell(&format!("  rubus bench 'nbds://{machine}/?tls-certificates=DIRECTORY'"));
    tell(&format!(
        "With --verify-clients it needs {} and {}, too, or with clones a certificate of its own (--client NAME). Keep {} to yourself.",
        certificates::CLIENT,
        certificates::CLIENT_KEY,
        certificates::AUTHORITY_KEY
    ));
    Ok(())
}

/// Certificates that are in use are not replaced.
fn must_be_new(directory: &Path, made: &[Made]) -> anyhow::Result<()> {
    for file in made {
        let path = directory.join(file.name);
        anyhow::ensure!(
            path.symlink_metadata().is_err(),
            "{} is there already, and certificates that are in use are not replaced; move it away, \
             or name another directory",
            path.display()
        );
    }
    Ok(())
}

fn write_all(directory: &Path, made: &[Made]) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    made.iter().try_for_each(|file| write(directory, file))
}

/// In an order that stays, without doubles; the machine's name also as neighbours look for it.
fn names(machine: &str, more: &[String]) -> Vec<String> {
    let short = machine.split('.').next().unwrap_or(machine);
    let own = [machine.to_string(), format!("{short}.local"), "localhost".into()];
    // A machine may have a name that is none; then it is reached by its addresses.
    let own = own.into_iter().filter(|name| certificates::is_name(name));
    let addresses = own_names::addresses().into_iter();
    let addresses = addresses.map(|address| address.to_string());
    let mut seen = BTreeSet::new();
    own.chain(more.iter().cloned())
        .chain(addresses)
        .filter(|name| seen.insert(name.clone()))
        .collect()
}

fn write(directory: &Path, made: &Made) -> anyhow::Result<()> {
    let path = directory.join(made.name);
    let mode = if made.is_secret { 0o600 } else { 0o644 };
    let written = own_files::create_new(&path, mode).and_then(|mut file| {
        file.write_all(made.text.as_bytes())?;
        file.sync_all()
    });
    match written {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            anyhow::bail!("another program created {} just now", path.display())
        }
        written => written.with_context(|| format!("cannot write {}", path.display())),
    }
}
