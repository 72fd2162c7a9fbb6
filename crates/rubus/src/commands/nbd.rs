//! The verbs of network disks with what they need of rooms above theirs: the guard, and names of other disks.

use std::ffi::OsStr;
use std::sync::Arc;

use rubus_bench::target_name::TargetName;
use rubus_cluster::watch::image::ImageName;
use rubus_nbd_tools::cli::{self, Disk, Outside, Place, Role, Verb};
use rubus_nbd_tools::guard::Guard;

use crate::args::General;
use crate::exit::Exit;
use crate::guarding::LiveGuard;

/// Does what was asked.
///
/// # Errors
/// Those of the verb.
pub fn run(general: &General, verb: &Verb) -> anyhow::Result<Exit> {
    cli::run(general, verb, &Here)
}

struct Here;

impl Outside for Here {
    fn guard(&self) -> Arc<dyn Guard + Send + Sync> {
        Arc::new(LiveGuard)
    }

    fn disk(&self, typed: &OsStr, role: Role) -> anyhow::Result<Disk> {
        let target = TargetName::parse(typed.into()).map_err(anyhow::Error::msg)?;
        Ok(Disk { name: target.to_string(), place: place(target, role) })
    }
}

/// Where a disk is; else why it can be neither read nor written here.
fn place(target: TargetName, role: Role) -> Result<Place, String> {
    match target {
        TargetName::Nbd(address) => Ok(Place::Export(address)),
        TargetName::Path(path) => Ok(Place::Path(path)),
        TargetName::Ram(_) => {
            let what = match role {
                Role::Source => "nothing to be copied",
                Role::Destination => "no place to copy to",
            };
            Err(format!("memory is {what}; put ./ before a file whose name begins with ram:"))
        }
        TargetName::Rbd(name) => Err(through_a_server(&name, role)),
        TargetName::Rados(name) => Err(format!(
            "{} is a pool and no disk; name an image in it, such as rbd:{name}/IMAGE",
            name.address()
        )),
    }
}

/// How an image of a Ceph cluster is copied.
fn through_a_server(name: &ImageName, role: Role) -> String {
    let way = match role {
        Role::Source => "from",
        Role::Destination => "to",
    };
    format!(
        "an image of a Ceph cluster is copied {way} a server of it: start `qemu-nbd --socket=/run/rbd.sock {}` \
         and copy {way} nbd+unix:///?socket=/run/rbd.sock (`rbd export` and `rbd import` do it too)",
        name.address()
    )
}
