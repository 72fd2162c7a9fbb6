//! `rubus serve --make-certificates`: what a server with TLS and its clients need.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use rubus_host::own_names;
use rubus_nbd::certificates::{self, Made};

use crate::exit::Exit;

/// Makes certificates for this machine by all of its names and addresses, and by `more`.
pub fn make(directory: &Path, more: &[String]) -> anyhow::Result<Exit> {
    let machine = own_names::machine();
    let names = names(&machine, more);
    let made = certificates::make(&machine, &names)?;
    for file in &made {
        let path = directory.join(file.name);
        anyhow::ensure!(
            path.symlink_metadata().is_err(),
            "{} is there already, and certificates that are in use are not replaced; move it away, \
             or name another directory",
            path.display()
        );
    }
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    for file in &made {
        write(directory, file)?;
    }
    let place = directory.display();
    println!("Made in {place}, for a server that is reached by any of these names:");
    println!("  {}", names.join(" "));
    println!("Only root, or whoever made them, can read the keys. To serve with them:");
    println!("  rubus serve IMAGE --tls require --certificates {place}");
    println!(
        "A client needs {}; copy it to a directory there, and:",
        certificates::AUTHORITY
    );
    println!("  rubus bench 'nbds://{machine}/?tls-certificates=DIRECTORY'");
    println!(
        "With --verify-clients it needs {} and {}, too. Keep {} to yourself.",
        certificates::CLIENT,
        certificates::CLIENT_KEY,
        certificates::AUTHORITY_KEY
    );
    Ok(Exit::Fine)
}

/// In an order that stays, without doubles; the machine's name also as neighbours look for it.
fn names(machine: &str, more: &[String]) -> Vec<String> {
    let short = machine.split('.').next().unwrap_or(machine);
    let own = [
        machine.to_string(),
        format!("{short}.local"),
        "localhost".into(),
    ];
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
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&path)
        .and_then(|mut file| {
            file.write_all(made.text.as_bytes())?;
            file.sync_all()
        });
    match written {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            anyhow::bail!("{} was made just now by somebody else", path.display())
        }
        written => written.with_context(|| format!("cannot write {}", path.display())),
    }
}
