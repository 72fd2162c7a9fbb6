//! The cluster that is sized.

use serde::Serialize;

use crate::boards::Board;
use crate::disks::Disk;
use crate::layout::{FailureDomain, Layout};
use crate::objects::ObjectShare;
use crate::prices::Prices;
use crate::release::Release;

/// Boards that are alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Group {
    /// How many.
    pub count: u32,
    /// What they are.
    pub board: Board,
    /// Disks per board; each becomes an OSD.
    pub disks: u32,
    /// The kind of disk, the same on all of them.
    pub disk: Disk,
}

/// A cluster that is to be built.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Design {
    /// Its boards.
    pub groups: Vec<Group>,
    /// How objects are spread.
    pub layout: Layout,
    /// What fails as one.
    pub domain: FailureDomain,
    /// Which Ceph.
    pub release: Release,
    /// Sizes of the objects; empty: large ones, as of RBD images.
    pub objects: Vec<ObjectShare>,
    /// Rate of the client's network port, bits per second.
    pub client_bits: u64,
    /// Operations that clients have in flight, all together.
    pub in_flight: u32,
    /// How full the cluster is when something fails, as a share of what it holds safely.
    pub filled: f64,
    /// Prices and years.
    pub prices: Prices,
    /// What was not given and so assumed, in words.
    pub assumed: Vec<String>,
}

impl Design {
    /// Whether it can be built at all: boards, disks, and enough failure domains for the layout and the release.
    ///
    /// # Errors
    /// Why not, with the remedy in a second line.
    pub fn check(&self) -> Result<(), String> {
        if self.boards() == 0 || self.osds() == 0 {
            return Err("a cluster needs boards with disks: give --nodes and --disk".into());
        }
        if self.layout.is_fast() && !self.release.has_fast_ec() {
            return Err(format!(
                "cannot use Fast EC on {}: OSDs crashed before 20.2.4 (tracker 74813), and it cannot be switched off \
                 again\nUse --release 20.2.4 or newer, or leave --fast-ec out",
                self.release
            ));
        }
        self.layout.must_fit(self.domains().len() as u32, self.domain)
    }

    /// Boards in total.
    pub fn boards(&self) -> u32 {
        self.groups.iter().map(|group| group.count).sum()
    }

    /// Disks in total.
    pub fn osds(&self) -> u32 {
        self.groups.iter().map(|group| group.count * group.disks).sum()
    }

    /// Raw bytes of each failure domain.
    pub fn domains(&self) -> Vec<u64> {
        let mut domains = Vec::new();
        for group in &self.groups {
            let (count, bytes) = match self.domain {
                FailureDomain::Host => {
                    (group.count, group.disk.bytes.saturating_mul(group.disks.into()))
                }
                FailureDomain::Osd => (group.count * group.disks, group.disk.bytes),
            };
            if bytes > 0 {
                domains.extend(std::iter::repeat_n(bytes, count as usize));
            }
        }
        domains
    }

    /// The group with the least of something, by which the whole cluster goes.
    pub fn weakest(&self, of: impl Fn(&Group) -> f64) -> Option<&Group> {
        self.groups.iter().min_by(|a, b| of(a).total_cmp(&of(b)))
    }

    /// Whether any board is an ARM one.
    pub fn has_arm(&self) -> bool {
        self.groups.iter().any(|group| group.board.is_arm)
    }
}
