//! What `rubus serve` is to serve: images, directories of them, block devices, a file that lists them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use rubus_host::block::blockdev::{NodeKind, Pinned};
use rubus_host::block::image::{Image, ImageError};
use rubus_host::files::new_file::NewFile;
use rubus_host::files::{document, own_files};
use rubus_nbd::callers::{ListenAddress, Network};
use rubus_nbd::server::disk::Disk;
use rubus_nbd::server::export_table::{Offered, OneDisk};
use rubus_nbd::server::file_disk::FileDisk;
use rubus_nbd::server::overlay::MAX_CLIENT_NAME_BYTES;
use rubus_nbd::wire::MAX_STRING_BYTES;
use rubus_vocabulary::refused::Refused;
use rubus_vocabulary::units::{bytes_iec, parse_size};
use serde::Deserialize;

use super::image_identity::{self, Known};
use crate::guard::Guard;
use crate::images;

/// What the user named, and what holds for all of it that does not say otherwise.
#[derive(Clone, Debug, Default)]
pub struct ServeRequest {
    /// Images, directories of them, devices, lists of exports.
    pub paths: Vec<PathBuf>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub size: Option<u64>,
    pub preallocate: bool,
    pub read_only: bool,
    pub sync: bool,
    pub listen: Vec<ListenAddress>,
    pub unix: Vec<PathBuf>,
    pub allow: Vec<Network>,
}

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
    pub listen: Vec<ListenAddress>,
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

/// What the request and the files that they name want.
///
/// # Errors
/// In words: a file that cannot be understood, a directory without images, a name twice.
pub fn wishes(request: &ServeRequest) -> anyhow::Result<Wishes> {
    let mut wishes = Wishes {
        listen: request.listen.clone(),
        unix: request.unix.clone(),
        allow: request.allow.clone(),
        ..Wishes::default()
    };
    for path in &request.paths {
        if path.extension().is_some_and(|ending| ending == "toml") {
            list(path, request, &mut wishes)?;
        } else if path.is_dir() {
            directory(path, request, &mut wishes)?;
        } else {
            wishes.exports.push(of_request(path, request));
        }
    }
    let one = wishes.exports.len() == 1;
    anyhow::ensure!(
        one || (request.name.is_none() && request.description.is_none()),
        "--name and --description are for one export, and there are {}; put them into a TOML file",
        wishes.exports.len()
    );
    let mut names: Vec<_> = wishes.exports.iter().map(name_of).collect();
    for name in &names {
        fits("the name of an export", name)?;
    }
    let descriptions = wishes.exports.iter().filter_map(|wanted| wanted.description.as_ref());
    for description in descriptions {
        fits("a description", description)?;
    }
    names.sort();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        anyhow::bail!(
            "two exports would have the name '{}'; rename a file, or give names in a TOML file",
            twice[0]
        );
    }
    Ok(wishes)
}

fn of_request(path: &Path, request: &ServeRequest) -> ExportRequest {
    ExportRequest {
        path: path.to_path_buf(),
        name: request.name.clone(),
        description: request.description.clone(),
        size: request.size,
        preallocate: request.preallocate,
        read_only: request.read_only,
        sync: request.sync,
        found_in: None,
    }
}

fn list(path: &Path, request: &ServeRequest, wishes: &mut Wishes) -> anyhow::Result<()> {
    let place = path.display();
    anyhow::ensure!(
        request.name.is_none() && request.size.is_none() && request.description.is_none(),
        "--name, --size and --description stand in {place}, not beside it"
    );
    let text = document::text(path, document::MAX_LIST_BYTES)
        .with_context(|| format!("cannot read {place}"))?;
    let listed: Listed =
        toml::from_str(&text).with_context(|| format!("{place} is no list of exports"))?;
    let here = path.parent().unwrap_or(Path::new("."));
    for text in &listed.listen {
        let listen = text.parse().with_context(|| format!("{place}: '{text}'"))?;
        wishes.listen.push(listen);
    }
    for text in &listed.allow {
        let network = text.parse().with_context(|| format!("in {place}"))?;
        wishes.allow.push(network);
    }
    wishes.unix.extend(listed.unix.iter().map(|path| here.join(path)));
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
            read_only: export.read_only || request.read_only,
            sync: export.sync || request.sync,
            found_in: None,
        });
    }
    Ok(())
}

fn directory(path: &Path, request: &ServeRequest, wishes: &mut Wishes) -> anyhow::Result<()> {
    let place = path.display();
    anyhow::ensure!(request.size.is_none(), "{place} is a directory, and --size is for one image");
    let mut found = Vec::new();
    for path in own_files::list(path).with_context(|| format!("cannot read {place}"))? {
        if images::is_called_so(&path) && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    anyhow::ensure!(
        !found.is_empty(),
        "{place} has no images; their names end with .img, .raw or .iso"
    );
    wishes.exports.extend(found.iter().map(|image| ExportRequest {
        found_in: Some(path.to_path_buf()),
        // What is burnt on a disc is not written.
        read_only: request.read_only || image.extension().is_some_and(|ending| ending == "iso"),
        ..of_request(image, request)
    }));
    Ok(())
}

/// Whether the protocol has room for the names of an export's clones.
///
/// # Errors
/// If the name is too long.
pub fn clones_fit(name: &str) -> anyhow::Result<()> {
    let most = MAX_STRING_BYTES - "/".len() - MAX_CLIENT_NAME_BYTES;
    anyhow::ensure!(
        name.len() <= most,
        "the name of an export of clones has {} bytes, and NBD allows {most}, since clients ask for NAME/CLIENT; \
         give a shorter one",
        name.len()
    );
    Ok(())
}

/// Whether the protocol has room for a text.
fn fits(what: &str, text: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        text.len() <= MAX_STRING_BYTES,
        "{what} has {} bytes, and NBD allows {MAX_STRING_BYTES}; give a shorter one",
        text.len()
    );
    anyhow::ensure!(
        !text.contains('\0'),
        "{what} contains a NUL character, which NBD does not allow; give another one"
    );
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
/// In words, as of one of them; when nothing is left.
pub fn open_all(
    wanted: &[ExportRequest],
    losses: &[String],
    guard: &dyn Guard,
) -> anyhow::Result<(Vec<Ready>, Vec<String>)> {
    let (mut ready, mut left_out): (Vec<Ready>, Vec<String>) = Default::default();
    for wanted in wanted {
        match open(wanted, losses, guard, &ready) {
            Ok(open) => ready.push(open),
            Err(error) => match error.downcast::<LeftOut>() {
                Ok(why) => left_out.push(why.0),
                Err(error) => return Err(error),
            },
        }
    }
    anyhow::ensure!(!ready.is_empty(), "there is nothing to serve:\n  {}", left_out.join("\n  "));
    Ok((ready, left_out))
}

/// Opens an export, and makes its image if that is wanted; `before` are those that are open already.
///
/// # Errors
/// In words; [`Refused`] when data could be lost.
fn open(
    wanted: &ExportRequest,
    losses: &[String],
    guard: &dyn Guard,
    before: &[Ready],
) -> anyhow::Result<Ready> {
    let place = wanted.path.display().to_string();
    let cannot = || format!("cannot serve {place}");
    let mut told = String::new();
    if wanted.found_in.is_none() {
        has_one_writer(wanted, before)?;
    }
    let kind = match wanted.found_in {
        None => Pinned::new(&wanted.path).map(|node| node.kind()).ok(),
        Some(_) => None,
    };
    let image = match kind {
        _ if wanted.found_in.is_some() => found(wanted, guard, before)?,
        Some(NodeKind::Block(_)) => device(wanted, losses, guard)?,
        None if !wanted.path.exists() => {
            let Some(size) = wanted.size else {
                anyhow::bail!(
                    "there is no {place}; to make it, say how large it is to be: --size 32GiB"
                );
            };
            told = make(wanted, size).with_context(cannot)?;
            file(wanted, guard)?
        }
        _ => file(wanted, guard)?,
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
    let known = image_identity::of(&image, &wanted.path, wanted.sync);
    Ok(ready(wanted, Arc::new(image), known, told))
}

fn ready(wanted: &ExportRequest, image: Arc<Image>, known: Known, told: String) -> Ready {
    let read_only = !image.is_writable();
    let inode = image.inode().ok();
    let Known { identity, ledger } = known;
    let disk = Arc::new(FileDisk::new(image).noting_in(ledger));
    let name = name_of(wanted);
    let source = OneDisk { disk: Arc::clone(&disk) as Arc<dyn Disk>, identity, sync: wanted.sync };
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
fn found(wanted: &ExportRequest, guard: &dyn Guard, before: &[Ready]) -> anyhow::Result<Image> {
    let place = wanted.path.display();
    let image = file(wanted, guard).map_err(|error| match same_file(wanted, before) {
        Some(other) => LeftOut(format!(
            "{place} is left out: it is the same file as that of export '{}', and would have two writers",
            other.offered.name
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
fn same_file<'a>(wanted: &ExportRequest, before: &'a [Ready]) -> Option<&'a Ready> {
    let inode = Some(own_files::inode(&wanted.path).ok()?);
    before.iter().find(|ready| ready.inode == inode)
}

/// Refuses what is served already, unless both are only read.
fn has_one_writer(wanted: &ExportRequest, before: &[Ready]) -> anyhow::Result<()> {
    let Some(other) = same_file(wanted, before) else {
        return Ok(());
    };
    if wanted.read_only && other.read_only {
        return Ok(());
    }
    Err(Refused(format!(
        "cannot serve {} twice: export '{}' has the same image, and two writers would destroy what is on it\n  \
         name it once, or serve it with --read-only",
        wanted.path.display(),
        other.offered.name
    ))
    .into())
}

fn file(wanted: &ExportRequest, guard: &dyn Guard) -> anyhow::Result<Image> {
    let place = wanted.path.display();
    if !wanted.read_only {
        guard.file_unused(&wanted.path).map_err(|refusal| {
            Refused(format!("{refusal}\n  if clients are only to read it, give --read-only"))
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
            if wanted.read_only { " for writing" } else { ", and two writers would destroy what is on it" }
        ))
        .into(),
        ImageError::Missing => anyhow::anyhow!("there is no {place}"),
        ImageError::NotAFile => anyhow::anyhow!(
            "{place} is no image: it must be a regular file, a directory or a block device"
        ),
        ImageError::Other(error) if !wanted.read_only && may_be_read(&error) => {
            anyhow::anyhow!(
                "cannot open {place} for writing: {error}; give --read-only if it is not to be written"
            )
        }
        ImageError::Other(error) => {
            anyhow::Error::from(error).context(format!("cannot open {place}"))
        }
    })
}

/// Whether it is writing alone that is not allowed, as far as an error can tell.
fn may_be_read(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    [PermissionDenied, ReadOnlyFilesystem].contains(&error.kind())
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
    Ok(if wanted.preallocate {
        format!("made, {}, all of it taken", bytes_iec(size))
    } else {
        format!(
            "made, {}, sparse: it takes room as it is written (--preallocate takes it at once)",
            bytes_iec(size)
        )
    })
}

/// Opens a block device, past the guard if it is to be written.
fn device(wanted: &ExportRequest, losses: &[String], guard: &dyn Guard) -> anyhow::Result<Image> {
    anyhow::ensure!(
        wanted.size.is_none(),
        "{} is a device and has its size; leave --size out",
        wanted.path.display()
    );
    if wanted.read_only {
        let reader = guard.read_only(&wanted.path).map_err(Refused)?;
        return Ok(Image::of_reader(reader));
    }
    let claimed = guard.claim(&wanted.path, losses).map_err(|not| {
        let refusal = not.refusal;
        Refused(match not.expected {
            None => refusal,
            Some(expected) => format!(
                "{refusal}\n  clients could overwrite all of it: if they may, give \
                 --i-will-lose-everything-on={expected}; if they are only to read it, give --read-only"
            ),
        })
    })?;
    Ok(Image::of_claimed(claimed))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Files of its own.
mod tests {
    use std::os::unix::fs::symlink;

    use crate::guard::testing::OnlyFiles;

    use super::*;

    /// What is served of a directory, and what is left out.
    fn of(directory: &Path, read_only: bool) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let request =
            ServeRequest { paths: vec![directory.into()], read_only, ..ServeRequest::default() };
        let (ready, left_out) = open_all(&wishes(&request)?.exports, &[], &OnlyFiles)?;
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

        let (names, left_out) = of(&directory, false).unwrap();
        assert_eq!(names, ["a"]);
        let found = left_out.join("\n");
        assert_eq!(left_out.len(), 4, "{found}");
        assert!(found.contains("empty.img is left out: it has 0 bytes"));
        assert!(found.contains("b.img is left out: it is the same file as that of export 'a'"));
        for link in ["shadow.img", "up.img"] {
            assert!(found.contains(&format!("{link} is left out: it is a symbolic link out")));
        }
        // Readers do not disturb each other.
        let (names, left_out) = of(&directory, true).unwrap();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(left_out.len(), 3);

        for name in ["a.img", "b.img"] {
            std::fs::remove_file(directory.join(name)).unwrap();
        }
        let error = of(&directory, false).unwrap_err().to_string();
        assert!(error.contains("nothing to serve") && error.contains("empty.img"));
    }

    #[test]
    fn names_and_descriptions_fit_the_protocol() {
        let request = |name: &str, description: &str| {
            wishes(&ServeRequest {
                paths: vec!["/disk.img".into()],
                name: Some(name.into()),
                description: Some(description.into()),
                ..ServeRequest::default()
            })
        };
        let longest = "n".repeat(MAX_STRING_BYTES);
        let too_long = "n".repeat(MAX_STRING_BYTES + 1);
        assert!(request(&longest, &longest).is_ok());
        for (name, description) in
            [(&*too_long, "d"), ("n", &too_long), ("a\0b", "d"), ("n", "a\0b")]
        {
            let error = request(name, description).err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.contains("NBD")), "{name:?} {description:?}");
        }
    }

    #[test]
    fn one_image_has_one_writer_or_only_readers() {
        let place = tempfile::tempdir().unwrap();
        let (image, link) = (place.path().join("a.img"), place.path().join("b.img"));
        std::fs::write(&image, [7; 512]).unwrap();
        std::fs::hard_link(&image, &link).unwrap();
        let both = |read_only: [bool; 2]| {
            let one = |(path, read_only): (&PathBuf, bool)| ExportRequest {
                path: path.clone(),
                read_only,
                ..ExportRequest::default()
            };
            let wanted: Vec<_> = [&image, &link].into_iter().zip(read_only).map(one).collect();
            open_all(&wanted, &[], &OnlyFiles).map(|(ready, _)| ready.len())
        };
        for read_only in [[false, false], [true, false], [false, true]] {
            let error = both(read_only).unwrap_err();
            assert!(error.downcast_ref::<Refused>().is_some());
            assert!(error.to_string().contains("export 'a' has the same image"), "{error}");
        }
        assert_eq!(both([true, true]).unwrap(), 2);
    }

    #[test]
    fn clones_have_names_that_fit_the_protocol() {
        let longest = "n".repeat(MAX_STRING_BYTES - 1 - MAX_CLIENT_NAME_BYTES);
        assert!(clones_fit(&longest).is_ok());
        assert!(clones_fit(&(longest + "n")).is_err());
    }

    #[test]
    fn a_path_that_is_named_itself_may_be_a_link() {
        let place = tempfile::tempdir().unwrap();
        let (image, link) = (place.path().join("disk"), place.path().join("link.img"));
        std::fs::write(&image, [7; 512]).unwrap();
        symlink(&image, &link).unwrap();
        assert_eq!(of(&link, false).unwrap().0, ["link"]);
    }
}
