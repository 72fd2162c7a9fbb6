//! What `rubus serve` is to serve: images, directories of them, block devices, a file that lists them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use rubus_change::guard::{self, Consent, Refusal};
use rubus_host::Live;
use rubus_host::blockdev::{NodeKind, Pinned};
use rubus_host::image::{Image, ImageError};
use rubus_host::new_file::NewFile;
use rubus_nbd::callers::{Network, listen_address};
use rubus_nbd::images;
use rubus_nbd::server::disk::Disk;
use rubus_nbd::server::export_table::{Offered, OneDisk};
use rubus_nbd::server::file_disk::FileDisk;
use rubus_vocabulary::units::{bytes_iec, parse_size};
use serde::Deserialize;

use crate::args::Serve;
use crate::exit::Refused;

use super::identity::{self, Known};

/// One export, as it is wanted.
#[derive(Clone, Debug, Default)]
pub struct ExportRequest {
    pub path: PathBuf,
    pub name: Option<String>,
    pub description: Option<String>,
    pub size: Option<u64>,
    pub preallocate: bool,
    pub read_only: bool,
    pub sync: bool,
    /// It was found in this directory, which others may write: no link out of it is followed.
    pub found_in: Option<PathBuf>,
}

/// Everything that is wanted.
#[derive(Debug, Default)]
pub struct Wishes {
    pub exports: Vec<ExportRequest>,
    pub listen: Vec<SocketAddr>,
    pub unix: Vec<PathBuf>,
    pub allow: Vec<Network>,
}

/// One export that is open.
pub struct Ready {
    pub offered: Offered,
    pub disk: Arc<FileDisk>,
    pub path: PathBuf,
    /// For people: what was made or found.
    pub told: String,
    pub read_only: bool,
    /// The numbers of its filesystem and its inode.
    inode: Option<(u64, u64)>,
}

/// A file with exports.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Listed {
    #[serde(default)]
    listen: Vec<String>,
    #[serde(default)]
    unix: Vec<PathBuf>,
    #[serde(default)]
    allow: Vec<String>,
    export: BTreeMap<String, ListedExport>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ListedExport {
    path: PathBuf,
    description: Option<String>,
    size: Option<String>,
    #[serde(default)]
    preallocate: bool,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    sync: bool,
}

/// What the arguments and the files that they name want.
///
/// # Errors
/// In words: a file that cannot be understood, a directory without images, a name twice.
pub fn wishes(arguments: &Serve) -> anyhow::Result<Wishes> {
    let mut wishes = Wishes {
        listen: arguments.listen.clone(),
        unix: arguments.unix.clone(),
        allow: arguments.allow.clone(),
        ..Wishes::default()
    };
    for path in &arguments.paths {
        if path.extension().is_some_and(|ending| ending == "toml") {
            list(path, arguments, &mut wishes)?;
        } else if path.is_dir() {
            directory(path, arguments, &mut wishes)?;
        } else {
            wishes.exports.push(of_arguments(path, arguments));
        }
    }
    let one = wishes.exports.len() == 1;
    anyhow::ensure!(
        one || (arguments.name.is_none() && arguments.description.is_none()),
        "--name and --description are for one export, and there are {}; put them into a TOML file",
        wishes.exports.len()
    );
    let mut names: Vec<_> = wishes.exports.iter().map(name_of).collect();
    names.sort();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        anyhow::bail!(
            "two exports would have the name '{}'; rename a file, or give names in a TOML file",
            twice[0]
        );
    }
    Ok(wishes)
}

fn of_arguments(path: &Path, arguments: &Serve) -> ExportRequest {
    ExportRequest {
        path: path.to_path_buf(),
        name: arguments.name.clone(),
        description: arguments.description.clone(),
        size: arguments.size,
        preallocate: arguments.preallocate,
        read_only: arguments.read_only,
        sync: arguments.sync,
        found_in: None,
    }
}

fn list(path: &Path, arguments: &Serve, wishes: &mut Wishes) -> anyhow::Result<()> {
    let place = path.display();
    anyhow::ensure!(
        arguments.name.is_none() && arguments.size.is_none() && arguments.description.is_none(),
        "--name, --size and --description stand in {place}, not beside it"
    );
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {place}"))?;
    let listed: Listed =
        toml::from_str(&text).with_context(|| format!("{place} is no list of exports"))?;
    let here = path.parent().unwrap_or(Path::new("."));
    for text in &listed.listen {
        let listen =
            listen_address(text).map_err(|why| anyhow::anyhow!("{place}: '{text}': {why}"))?;
        wishes.listen.push(listen);
    }
    for text in &listed.allow {
        let network = text.parse().with_context(|| format!("in {place}"))?;
        wishes.allow.push(network);
    }
    wishes
        .unix
        .extend(listed.unix.iter().map(|path| here.join(path)));
    for (name, export) in listed.export {
        let size = export.size.as_deref().map(parse_size).transpose();
        let size = size.map_err(|why| anyhow::anyhow!("{place}: export '{name}': {why}"))?;
        wishes.exports.push(ExportRequest {
            // Beside the list, wherever rubus was started.
            path: here.join(export.path),
            name: Some(name),
            description: export.description,
            size,
            preallocate: export.preallocate,
            read_only: export.read_only || arguments.read_only,
            sync: export.sync || arguments.sync,
            found_in: None,
        });
    }
    Ok(())
}

fn directory(path: &Path, arguments: &Serve, wishes: &mut Wishes) -> anyhow::Result<()> {
    let place = path.display();
    anyhow::ensure!(
        arguments.size.is_none(),
        "{place} is a directory, and --size is for one image"
    );
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).with_context(|| format!("cannot read {place}"))? {
        let path = entry
            .with_context(|| format!("cannot read {place}"))?
            .path();
        if images::is_called_so(&path) && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    anyhow::ensure!(
        !found.is_empty(),
        "{place} has no images; their names end with .img, .raw or .iso"
    );
    wishes
        .exports
        .extend(found.iter().map(|image| ExportRequest {
            found_in: Some(path.to_path_buf()),
            // What is burnt on a disc is not written.
            read_only: arguments.read_only
                || image.extension().is_some_and(|ending| ending == "iso"),
            ..of_arguments(image, arguments)
        }));
    Ok(())
}

/// The name of an export: the one that is wanted, or the file's without its ending.
pub fn name_of(wanted: &ExportRequest) -> String {
    if let Some(name) = &wanted.name {
        return name.clone();
    }
    images::name_of(&wanted.path).to_string_lossy().into_owned()
}

/// A file that a directory has and that is no export; why, for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct LeftOut(String);

/// Opens all exports, and makes their images if that is wanted. Gives also which files of directories are
/// left out: one of many is no reason not to serve the others.
///
/// # Errors
/// As [`open`]; when nothing is left.
pub fn open_all(
    wanted: &[ExportRequest],
    losses: &[String],
) -> anyhow::Result<(Vec<Ready>, Vec<String>)> {
    let (mut ready, mut left_out): (Vec<Ready>, Vec<String>) = Default::default();
    for wanted in wanted {
        match open(wanted, losses, &ready) {
            Ok(open) => ready.push(open),
            Err(error) => match error.downcast::<LeftOut>() {
                Ok(why) => left_out.push(why.0),
                Err(error) => return Err(error),
            },
        }
    }
    anyhow::ensure!(
        !ready.is_empty(),
        "there is nothing to serve:\n  {}",
        left_out.join("\n  ")
    );
    Ok((ready, left_out))
}

/// Opens an export, and makes its image if that is wanted; `before` are those that are open already.
///
/// # Errors
/// In words; [`Refused`] when data could be lost.
fn open(wanted: &ExportRequest, losses: &[String], before: &[Ready]) -> anyhow::Result<Ready> {
    let place = wanted.path.display().to_string();
    let cannot = || format!("cannot serve {place}");
    let mut told = String::new();
    let kind = match wanted.found_in {
        None => Pinned::new(&wanted.path).map(|node| node.kind()).ok(),
        Some(_) => None,
    };
    let image = match kind {
        _ if wanted.found_in.is_some() => found(wanted, before)?,
        Some(NodeKind::Block(_)) => device(wanted, losses)?,
        None if !wanted.path.exists() => {
            let Some(size) = wanted.size else {
                anyhow::bail!(
                    "there is no {place}; to make it, say how large it is to be: --size 32GiB"
                );
            };
            told = make(wanted, size).with_context(cannot)?;
            file(wanted)?
        }
        _ => file(wanted)?,
    };
    if let Some(size) = wanted.size.filter(|_| told.is_empty()) {
        anyhow::ensure!(
            size == image.size_bytes(),
            "{place} exists and has {} bytes, not {size}; leave --size out to serve it as it is",
            image.size_bytes()
        );
    }
    anyhow::ensure!(
        image.size_bytes() > 0,
        "{place} is empty; remove it and give --size, or choose another"
    );
    if told.is_empty() {
        told = bytes_iec(image.size_bytes());
    }
    let known = identity::of(&image, &wanted.path, wanted.sync);
    Ok(ready(wanted, Arc::new(image), known, told))
}

fn ready(wanted: &ExportRequest, image: Arc<Image>, known: Known, told: String) -> Ready {
    let read_only = !image.is_writable();
    let inode = image.inode().ok();
    let Known { identity, ledger } = known;
    let disk = Arc::new(FileDisk::new(image).noting_in(ledger));
    let name = name_of(wanted);
    let source = OneDisk {
        disk: Arc::clone(&disk) as Arc<dyn Disk>,
        identity,
        sync: wanted.sync,
    };
    Ready {
        offered: Offered {
            words: wanted.description.clone().unwrap_or_default(),
            name,
            source: Box::new(source),
        },
        disk,
        path: wanted.path.clone(),
        told,
        read_only,
        inode,
    }
}

/// Opens an image of a directory.
fn found(wanted: &ExportRequest, before: &[Ready]) -> anyhow::Result<Image> {
    let place = wanted.path.display();
    let image = file(wanted).map_err(|error| match same_file(wanted, before) {
        Some(other) => LeftOut(format!(
            "{place} is left out: it is the same file as that of export '{other}', and would have two writers"
        ))
        .into(),
        None => error,
    })?;
    if image.size_bytes() == 0 {
        return Err(LeftOut(format!("{place} is left out: it has 0 bytes")).into());
    }
    Ok(image)
}

/// The export that is open already and has the file of this one under another name.
fn same_file<'a>(wanted: &ExportRequest, before: &'a [Ready]) -> Option<&'a str> {
    let metadata = std::fs::metadata(&wanted.path).ok()?;
    let inode = Some((metadata.dev(), metadata.ino()));
    let other = before.iter().find(|ready| ready.inode == inode)?;
    Some(&other.offered.name)
}

fn file(wanted: &ExportRequest) -> anyhow::Result<Image> {
    let place = wanted.path.display();
    if !wanted.read_only {
        guard::file_unused(&Live::new(), &wanted.path).map_err(|refusal| {
            Refused(format!(
                "{refusal}\n  if clients are only to read it, give --read-only"
            ))
        })?;
    }
    let opened = match (&wanted.found_in, wanted.path.file_name()) {
        (Some(directory), Some(name)) => Image::open_in(directory, name, !wanted.read_only),
        _ => Image::open(&wanted.path, !wanted.read_only),
    };
    opened.map_err(|error| match error {
        ImageError::LeadsOut => LeftOut(format!(
            "{place} is left out: it is a symbolic link out of the directory; \
             to serve what it leads to, name that itself"
        ))
        .into(),
        ImageError::Locked => Refused(format!(
            "{place} was not touched: another program has it open and locked{}\n  \
             stop that program, or serve a copy",
            match wanted.read_only {
                true => " for writing",
                false => ", and two writers would destroy what is on it",
            }
        ))
        .into(),
        ImageError::Missing => anyhow::anyhow!("there is no {place}"),
        ImageError::NotAFile => anyhow::anyhow!(
            "{place} is no image: it must be a regular file, a directory or a block device"
        ),
        ImageError::Other(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            anyhow::anyhow!("{place}: {error}; give --read-only if it is not to be written")
        }
        ImageError::Other(error) => {
            anyhow::Error::from(error).context(format!("cannot open {place}"))
        }
    })
}

/// Makes a new image, and says how.
fn make(wanted: &ExportRequest, size: u64) -> anyhow::Result<String> {
    anyhow::ensure!(size > 0, "--size must be more than 0");
    let Some(mut new) = NewFile::begin(&wanted.path)? else {
        anyhow::bail!("another program makes it just now");
    };
    new.resize(size)?;
    if wanted.preallocate {
        new.preallocate(size)?;
    }
    new.finish()?;
    Ok(match wanted.preallocate {
        true => format!("made, {}, all of it taken", bytes_iec(size)),
        false => format!(
            "made, {}, sparse: it takes room as it is written (--preallocate takes it at once)",
            bytes_iec(size)
        ),
    })
}

/// Opens a block device, past the guard if it is to be written.
fn device(wanted: &ExportRequest, losses: &[String]) -> anyhow::Result<Image> {
    let refused = |refusal: Refusal| anyhow::Error::from(Refused(refusal.to_string()));
    anyhow::ensure!(
        wanted.size.is_none(),
        "{} is a device and has its size; leave --size out",
        wanted.path.display()
    );
    if wanted.read_only {
        let reader = guard::read_only(&wanted.path).map_err(refused)?;
        return Ok(Image::of_reader(reader));
    }
    let live = Live::new();
    let mut answer = None;
    for serial in losses {
        let tried = guard::claim(&live, &wanted.path, Some(&Consent::new(serial)));
        let is_claimed = tried.is_ok();
        answer = Some(tried);
        if is_claimed {
            break;
        }
    }
    let answer = answer.unwrap_or_else(|| guard::claim(&live, &wanted.path, None));
    let claimed = answer.map_err(|refusal| match refusal.expected_confirmation() {
        None => refused(refusal),
        Some(expected) => Refused(format!(
            "{refusal}\n  clients could overwrite all of it: if they may, give \
             --i-will-lose-everything-on={}; if they are only to read it, give --read-only",
            expected.text
        ))
        .into(),
    })?;
    Ok(Image::of_claimed(claimed))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[derive(clap::Parser)]
    struct Alone {
        #[command(flatten)]
        serve: Serve,
    }

    /// What is served of a directory, and what is left out.
    fn of(directory: &Path, options: &[&str]) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let arguments = [&["serve", directory.to_str().unwrap()], options].concat();
        let serve = <Alone as clap::Parser>::parse_from(arguments).serve;
        let (ready, left_out) = open_all(&wishes(&serve)?.exports, &[])?;
        let names = ready.into_iter().map(|ready| ready.offered.name);
        Ok((names.collect(), left_out))
    }

    #[test]
    fn a_directory_is_served_without_what_is_empty_leads_out_or_has_a_second_name() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("images");
        std::fs::create_dir(&directory).unwrap();
        let secret = place.path().join("secret");
        std::fs::write(&secret, [7; 512]).unwrap();
        std::fs::write(directory.join("a.img"), [7; 512]).unwrap();
        std::fs::write(directory.join("empty.img"), []).unwrap();
        std::fs::hard_link(directory.join("a.img"), directory.join("b.img")).unwrap();
        symlink(&secret, directory.join("shadow.img")).unwrap();
        symlink("../secret", directory.join("up.img")).unwrap();

        let (names, left_out) = of(&directory, &[]).unwrap();
        assert_eq!(names, ["a"]);
        let found = left_out.join("\n");
        assert_eq!(left_out.len(), 4, "{found}");
        assert!(found.contains("empty.img is left out: it has 0 bytes"));
        assert!(found.contains("b.img is left out: it is the same file as that of export 'a'"));
        for link in ["shadow.img", "up.img"] {
            assert!(found.contains(&format!("{link} is left out: it is a symbolic link out")));
        }
        // Readers do not disturb each other.
        let (names, left_out) = of(&directory, &["--read-only"]).unwrap();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(left_out.len(), 3);

        for name in ["a.img", "b.img"] {
            std::fs::remove_file(directory.join(name)).unwrap();
        }
        let error = of(&directory, &[]).unwrap_err().to_string();
        assert!(error.contains("nothing to serve") && error.contains("empty.img"));
    }

    #[test]
    fn a_path_that_is_named_itself_may_be_a_link() {
        let place = tempfile::tempdir().unwrap();
        let (image, link) = (place.path().join("disk"), place.path().join("link.img"));
        std::fs::write(&image, [7; 512]).unwrap();
        symlink(&image, &link).unwrap();
        assert_eq!(of(&link, &[]).unwrap().0, ["link"]);
    }
}
