//! The command line and the root that it names.

use super::super::cmdline_txt::CmdlineTxt;
use super::super::config_txt::BootPath;
use super::{Facts, check};
use crate::fstab::{Fstab, is_same_filesystem};
use crate::volume::{Name, NamedVolume};
use rubus_vocabulary::check::Check;

type Outcome = Result<String, (String, String)>;

pub(super) fn look(facts: &Facts<'_>, name: &str, starts: &[&BootPath], checks: &mut Vec<Check>) {
    let Some(text) = facts.partition.text(name) else {
        checks.push(check(
            format!("the command line {name} is in the boot partition"),
            Err((format!("there is no {name}"), "put it there, with root= and rootfstype=".into())),
        ));
        return;
    };
    let cmdline = CmdlineTxt::parse(text);
    checks.push(check(format!("{name} is one line that fits"), fits(&cmdline, starts)));
    checks.push(check(
        format!("{name} does not grow a partition at the next start"),
        grows_nothing(&cmdline),
    ));
    let root = root_volume(facts, &cmdline);
    let outcome = root.clone().map(|volume| {
        let name = cmdline.get("root").unwrap_or_default();
        format!("root={name} is {}", volume.path)
    });
    checks.push(check(format!("root= in {name} means exactly one volume"), outcome));
    let Ok(volume) = root else { return };
    checks.push(check(
        format!("rootfstype= in {name} is what the root holds"),
        filesystem(&cmdline, volume),
    ));
    checks.push(check(
        format!("{name} and fstab mean the same root"),
        same_root(facts, &cmdline, volume),
    ));
}

fn fits(cmdline: &CmdlineTxt, starts: &[&BootPath]) -> Outcome {
    let remedy =
        || "keep everything in the first line, and take out what is not needed".to_string();
    if cmdline.ignored_lines().next().is_some() {
        return Err(("there is text behind the first line, which is not read".into(), remedy()));
    }
    let is_32_bit = starts.iter().any(|path| {
        let name = path.kernel.rsplit('/').next().unwrap_or_default();
        matches!(name, "kernel.img" | "kernel7.img" | "kernel7l.img")
    });
    let most = CmdlineTxt::room(is_32_bit);
    let bytes = cmdline.kernel_bytes();
    if bytes <= most {
        Ok(format!("{bytes} bytes of {most} that fit beside the firmware's own words"))
    } else {
        Err((format!("{bytes} bytes; {most} fit beside the firmware's own words"), remedy()))
    }
}

fn grows_nothing(cmdline: &CmdlineTxt) -> Outcome {
    let words = cmdline.first_start_words();
    let written: Vec<&str> = words.iter().map(|word| word.written).collect();
    if written.is_empty() {
        Ok("no word for it".into())
    } else {
        Err((
            format!("it says {}", written.join(" ")),
            "take the word out: the root has its final size".into(),
        ))
    }
}

fn root_volume<'a>(
    facts: &Facts<'a>,
    cmdline: &CmdlineTxt,
) -> Result<&'a NamedVolume, (String, String)> {
    let remedy = || "name the root by its PARTUUID (blkid shows it)".to_string();
    let Some(root) = cmdline.get("root") else {
        return Err(("there is no root=".into(), remedy()));
    };
    let name = Name::parse(root);
    if !name.is_volume() {
        return Err((format!("root={} is no volume", Name::shown(root)), remedy()));
    }
    let found = name.resolve(facts.volumes);
    match found.as_slice() {
        [one] => Ok(one),
        [] => Err((format!("no volume is {name}"), remedy())),
        several => {
            let paths: Vec<&str> = several.iter().map(|volume| volume.path.as_str()).collect();
            Err((
                format!("{name} may be any of {}", paths.join(", ")),
                "two disks with one identifier: take the other one off, or give it a new identifier (sfdisk --disk-id)"
                    .into(),
            ))
        }
    }
}

fn filesystem(cmdline: &CmdlineTxt, volume: &NamedVolume) -> Outcome {
    let remedy = |kind: &str| format!("write rootfstype={kind}");
    let Some(holds) = volume.filesystem.as_deref() else {
        return Err((
            format!("nothing is recognised on {}", volume.path),
            "look with blkid -p what is on it".into(),
        ));
    };
    match cmdline.get("rootfstype") {
        Some(wanted) if is_same_filesystem(wanted, holds) => {
            Ok(format!("rootfstype={wanted}, and {} holds {holds}", volume.path))
        }
        Some(wanted) => {
            Err((format!("rootfstype={wanted}, but {} holds {holds}", volume.path), remedy(holds)))
        }
        None => {
            Err((format!("there is no rootfstype=; {} holds {holds}", volume.path), remedy(holds)))
        }
    }
}

fn same_root(facts: &Facts<'_>, cmdline: &CmdlineTxt, volume: &NamedVolume) -> Outcome {
    let remedy = || "write the same volume and the same subvol= into both".to_string();
    let Some(entry) = Fstab::parse(facts.fstab).at("/") else {
        return Err(("fstab has no line for /".into(), "add one for the new root".into()));
    };
    let found = Name::of(&entry).resolve(facts.volumes);
    let is_same = matches!(found.as_slice(), [one] if one.path == volume.path);
    if !is_same {
        return Err((
            format!("fstab says {} for /, the command line means {}", entry.source, volume.path),
            remedy(),
        ));
    }
    let flags = cmdline.get("rootflags").unwrap_or_default();
    let flag = |name: &str| {
        let options = flags.split(',').rev();
        options.into_iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    };
    let bare = |subvolume: Option<&str>| subvolume.unwrap_or("/").trim_matches('/').to_string();
    let (started, mounted) = (bare(flag("subvol")), bare(entry.option("subvol")));
    let shown = |name: &str| match name {
        "" => "no subvolume".to_string(),
        name => format!("the subvolume {name}"),
    };
    if started == mounted || entry.option("subvolid").is_some() {
        Ok(format!("both mean {}, {}", volume.path, shown(&started)))
    } else {
        Err((
            format!(
                "the command line starts {}, fstab mounts {}",
                shown(&started),
                shown(&mounted)
            ),
            remedy(),
        ))
    }
}
