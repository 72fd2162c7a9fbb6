//! What the user asked for: flags, or a TOML file with the same names, made into a design.

use clap::Args;
use rubus_vocabulary::units::parse_size;
use serde::Deserialize;

use crate::boards;
use crate::design::{Design, Group};
use crate::disks::{Disk, Media};
use crate::layout::{FailureDomain, Layout};
use crate::measured::Measured;
use crate::objects::{self, ObjectShare};
use crate::prices::Prices;
use crate::release::{self, Release};

/// Boards, disks, layout, prices: flags, and the keys of `--file`.
#[derive(Clone, Debug, Default, PartialEq, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Wishes {
    /// Number of boards
    #[arg(long, value_name = "N")]
    pub nodes: Option<u32>,
    /// Kind of board: pi4-4gb, pi5-8gb, mini-pc and others (`rubus cluster boards`)
    #[arg(long, value_name = "KIND")]
    pub board: Option<String>,
    /// Take the disk from what Rubus measured, and the board unless --board
    /// names one: a run's number, label or JSON file, or `last`
    #[arg(long, value_name = "RUN")]
    pub node_from: Option<String>,
    /// Disks per board, each an OSD [default: 1]
    #[arg(long, value_name = "N")]
    pub disks: Option<u32>,
    /// Size of each disk, such as 1TB
    #[arg(long, value_name = "SIZE")]
    pub disk: Option<String>,
    /// Kind of disk [default: ssd]
    #[arg(long, value_name = "KIND")]
    pub disk_kind: Option<Media>,
    /// Rate of each board's network port, such as 1Gbit
    #[arg(long, value_name = "RATE")]
    pub link: Option<String>,
    /// Rate of the client's network port [default: that of the
    /// boards, 1Gbit at least]
    #[arg(long, value_name = "RATE")]
    pub client_link: Option<String>,
    /// Operations that clients have in flight, all together [default: 16]
    #[arg(long, value_name = "N")]
    pub in_flight: Option<u32>,
    /// Keep N copies of each object [default: 3]
    #[arg(long, value_name = "N", conflicts_with = "ec")]
    pub replica: Option<u32>,
    /// Use erasure coding with K data and M parity chunks
    #[arg(long, value_name = "K+M")]
    pub ec: Option<String>,
    /// Use Fast EC (allow_ec_optimizations), from 20.2.4 on; cannot be
    /// switched off again
    #[arg(long, requires = "ec")]
    pub fast_ec: bool,
    /// What fails as one: a board (host), or a single disk (osd) [default: host]
    #[arg(long, value_name = "DOMAIN")]
    pub failure_domain: Option<FailureDomain>,
    /// Release of Ceph, such as 20.2.5, squid, trixie [default: 20.2.5]
    #[arg(long, value_name = "RELEASE")]
    pub release: Option<String>,
    /// Sizes of the objects by their number, 4KiB:60%,64KiB:30%,4MiB:10%, or a
    /// directory whose files have them
    #[arg(long, value_name = "SIZES|DIR")]
    pub objects: Option<String>,
    /// How full the cluster is when something fails, in percent of what it
    /// holds safely [default: 100]
    #[arg(long, value_name = "PERCENT")]
    pub filled: Option<f64>,
    /// Price of a board, in euros
    #[arg(long, value_name = "PRICE")]
    pub node_price: Option<f64>,
    /// Price of a disk
    #[arg(long, value_name = "PRICE")]
    pub disk_price: Option<f64>,
    /// Price of the power supply for the whole cluster
    #[arg(long, value_name = "PRICE")]
    pub power_price: Option<f64>,
    /// Price of a kWh [default: 0.30]
    #[arg(long, value_name = "PRICE")]
    pub energy_price: Option<f64>,
    /// Years that the cost is for [default: 3]
    #[arg(long, value_name = "YEARS")]
    pub years: Option<f64>,
    /// Boards of several kinds; only in a file
    #[arg(skip)]
    pub group: Vec<GroupWishes>,
}

/// Boards of one kind among several: a `[[group]]` of the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct GroupWishes {
    /// Number of boards.
    pub nodes: u32,
    /// Kind of board.
    pub board: Option<String>,
    /// Disks per board.
    pub disks: Option<u32>,
    /// Size of each disk.
    pub disk: Option<String>,
    /// Kind of disk.
    pub disk_kind: Option<Media>,
    /// Rate of the network port.
    pub link: Option<String>,
}

/// Most boards that are taken.
const MAX_BOARDS: u32 = 5000;
/// Most disks per board.
const MAX_DISKS: u32 = 100;

impl Wishes {
    /// Reads a file's text.
    ///
    /// # Errors
    /// What is wrong with it, and in which line.
    pub fn parse(text: &str) -> Result<Wishes, String> {
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_string())
    }

    /// These, and where one is absent the other's: flags over a file.
    pub fn or(self, file: Wishes) -> Wishes {
        let has_layout = self.replica.is_some() || self.ec.is_some();
        Wishes {
            nodes: self.nodes.or(file.nodes),
            board: self.board.or(file.board),
            node_from: self.node_from.or(file.node_from),
            disks: self.disks.or(file.disks),
            disk: self.disk.or(file.disk),
            disk_kind: self.disk_kind.or(file.disk_kind),
            link: self.link.or(file.link),
            client_link: self.client_link.or(file.client_link),
            in_flight: self.in_flight.or(file.in_flight),
            replica: if has_layout { self.replica } else { file.replica },
            fast_ec: self.fast_ec || (!has_layout && file.fast_ec),
            ec: if has_layout { self.ec } else { file.ec },
            failure_domain: self.failure_domain.or(file.failure_domain),
            release: self.release.or(file.release),
            objects: self.objects.or(file.objects),
            filled: self.filled.or(file.filled),
            node_price: self.node_price.or(file.node_price),
            disk_price: self.disk_price.or(file.disk_price),
            power_price: self.power_price.or(file.power_price),
            energy_price: self.energy_price.or(file.energy_price),
            years: self.years.or(file.years),
            group: file.group,
        }
    }

    /// The same with another layout: `3x`, `3+1` or `3+1 fast`.
    pub fn with_layout(mut self, layout: &str) -> Wishes {
        (self.replica, self.ec, self.fast_ec) = (None, None, false);
        match layout.strip_suffix('x') {
            Some(copies) => self.replica = copies.parse().ok(),
            None => {
                self.fast_ec = layout.ends_with(" fast");
                self.ec = Some(layout.trim_end_matches(" fast").to_string());
            }
        }
        self
    }

    /// The design that is meant, checked; what is not given is assumed and listed. Objects of a directory have to be put into
    /// `objects` as sizes before.
    ///
    /// # Errors
    /// What is missing, impossible or out of range, with a remedy.
    pub fn design(&self, measured: Option<&Measured>) -> Result<Design, String> {
        let design = self.unchecked(measured)?;
        design.check()?;
        Ok(design)
    }

    fn unchecked(&self, measured: Option<&Measured>) -> Result<Design, String> {
        let mut assumed = Vec::new();
        let layout = self.layout(&mut assumed)?;
        let release = match &self.release {
            Some(text) => Release::parse(text)?,
            None => {
                assumed.push(format!("release {}", release::DEFAULT));
                release::DEFAULT
            }
        };
        let groups = self.groups(measured, &mut assumed)?;
        let slowest = groups.iter().map(|group| group.board.link_bits).min().unwrap_or(0);
        let client_bits = match &self.client_link {
            Some(text) => link(text)?,
            None => {
                let bits = slowest.max(1_000_000_000);
                assumed.push(format!(
                    "one client at {}",
                    rubus_vocabulary::units::bit_rate(bits as f64)
                ));
                bits
            }
        };
        let objects: Vec<ObjectShare> = match self.objects.as_deref() {
            Some(text) => objects::parse(text)?,
            None => Vec::new(),
        };
        Ok(Design {
            groups,
            layout,
            domain: self.failure_domain.unwrap_or_default(),
            release,
            objects,
            client_bits,
            in_flight: self.in_flight()?,
            filled: within("filled", self.filled.unwrap_or(100.0), 1.0, 100.0)? / 100.0,
            prices: self.prices()?,
            assumed,
        })
    }

    fn in_flight(&self) -> Result<u32, String> {
        match self.in_flight.unwrap_or(16) {
            0 => Err("in-flight is 0: nothing would move; 1 is a lone operation".into()),
            many => Ok(many),
        }
    }

    fn layout(&self, assumed: &mut Vec<String>) -> Result<Layout, String> {
        match (&self.ec, self.replica) {
            (Some(_), Some(_)) => Err("give replica or ec, but not both".into()),
            (Some(text), None) => Layout::erasure(text, self.fast_ec),
            (None, _) if self.fast_ec => Err("fast-ec is for erasure coding: give ec too".into()),
            (None, Some(copies)) => Layout::replica(copies),
            (None, None) => {
                assumed.push("3 replicas".into());
                Layout::replica(3)
            }
        }
    }

    fn groups(
        &self,
        measured: Option<&Measured>,
        assumed: &mut Vec<String>,
    ) -> Result<Vec<Group>, String> {
        let common = GroupWishes {
            nodes: self.nodes.unwrap_or(0),
            board: self.board.clone(),
            disks: self.disks,
            disk: self.disk.clone(),
            disk_kind: self.disk_kind,
            link: self.link.clone(),
        };
        let wanted = match self.group.as_slice() {
            [] => vec![common],
            _ if self.nodes.is_some() => {
                return Err("give nodes, or groups with their own, but not both".into());
            }
            groups => groups
                .iter()
                .map(|group| GroupWishes {
                    nodes: group.nodes,
                    board: group.board.clone().or(common.board.clone()),
                    disks: group.disks.or(common.disks),
                    disk: group.disk.clone().or(common.disk.clone()),
                    disk_kind: group.disk_kind.or(common.disk_kind),
                    link: group.link.clone().or(common.link.clone()),
                })
                .collect(),
        };
        let groups = wanted.iter().map(|group| group.make(measured, assumed));
        let groups: Vec<Group> = groups.collect::<Result<_, _>>()?;
        let boards: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
        if boards > MAX_BOARDS.into() {
            return Err(format!(
                "{boards} boards are more than {MAX_BOARDS}, beyond which nothing was checked"
            ));
        }
        Ok(groups)
    }

    fn prices(&self) -> Result<Prices, String> {
        let price = |name: &str, given: Option<f64>| {
            given.map(|value| within(name, value, 0.0, 1e6)).transpose()
        };
        let usual = Prices::default();
        Ok(Prices {
            node: price("node-price", self.node_price)?,
            disk: price("disk-price", self.disk_price)?,
            power: price("power-price", self.power_price)?,
            years: within("years", self.years.unwrap_or(usual.years), 0.1, 30.0)?,
            energy: within("energy-price", self.energy_price.unwrap_or(usual.energy), 0.0, 100.0)?,
            is_energy_given: self.energy_price.is_some(),
        })
    }
}

impl GroupWishes {
    fn make(
        &self,
        measured: Option<&Measured>,
        assumed: &mut Vec<String>,
    ) -> Result<Group, String> {
        if self.nodes == 0 {
            return Err("how many boards? Give --nodes N, at least 1".into());
        }
        let Some(size) = &self.disk else {
            return Err("how large are the disks? Give --disk SIZE, such as 1TB".into());
        };
        let bytes = parse_size(size)?;
        // Ceph refuses to make smaller OSDs than about this, and larger disks do not exist.
        if !(10_000_000_000..=1_000_000_000_000_000).contains(&bytes) {
            return Err(format!("--disk {size} is no size of an OSD; 10GB to 1000TB are"));
        }
        let disks = self.disks.unwrap_or(1);
        if !(1..=MAX_DISKS).contains(&disks) {
            return Err(format!("--disks {disks}: a board has 1 to {MAX_DISKS}"));
        }
        let kind = self.board.as_deref().or(measured.and_then(Measured::kind));
        let mut board = match kind {
            Some(kind) => boards::find(kind)?,
            None => {
                let board = boards::find("pi4-4gb")?;
                assumed.push(board.name.clone());
                board
            }
        };
        let media = self.disk_kind.unwrap_or_default();
        let mut disk = Disk::assumed(bytes, media);
        match measured {
            Some(measured) => {
                // A board that is named differs from the one that carried the disk.
                if self.board.is_none() {
                    board = measured.board(board);
                }
                disk = measured.disk(disk);
            }
            None => assumed.push(format!("the figures of the disks ({})", media.name())),
        }
        if let Some(text) = &self.link {
            board.link_bits = link(text)?;
            board.link_basis = rubus_vocabulary::basis::Basis::Published;
        }
        Ok(Group { count: self.nodes, board, disks, disk })
    }
}

/// A rate such as `1Gbit`, `100Mbit/s`, `2.5Gbit`.
///
/// # Errors
/// If the text is no rate of a link.
pub fn link(text: &str) -> Result<u64, String> {
    let bad = || format!("'{text}' is not a rate of a link; write 100Mbit, 1Gbit or 2.5Gbit");
    let lower = text.trim().to_ascii_lowercase();
    let lower = lower.trim_end_matches("/s");
    let (number, factor) = match (lower.strip_suffix("gbit"), lower.strip_suffix("mbit")) {
        (Some(number), _) => (number, 1e9),
        (None, Some(number)) => (number, 1e6),
        (None, None) => return Err(bad()),
    };
    let bits = number.trim().parse::<f64>().map_err(|_| bad())? * factor;
    if !(1e6..=1e12).contains(&bits) {
        return Err(bad());
    }
    Ok(bits.round() as u64)
}

fn within(name: &str, value: f64, low: f64, high: f64) -> Result<f64, String> {
    match value {
        value if (low..=high).contains(&value) => Ok(value),
        value => Err(format!("--{name} {value} is not between {low} and {high}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_names_of_the_flags_and_flags_come_first() {
        let file =
            Wishes::parse("nodes = 4\ndisk = \"1TB\"\nec = \"3+1\"\nnode-price = 100\n").unwrap();
        assert_eq!(file.design(None).unwrap().layout.name(), "EC 3+1");
        let flags = Wishes { replica: Some(3), ..Wishes::default() };
        assert_eq!(flags.or(file).design(None).unwrap().layout.name(), "3 replicas");
        let error = Wishes::parse("nodes = 4\nnode_price = 100\n").unwrap_err();
        assert!(error.contains("node_price"), "{error}");
    }

    #[test]
    fn boards_of_several_kinds_come_from_groups() {
        let text = "disk = \"1TB\"\n[[group]]\nnodes = 3\nboard = \"pi4-8gb\"\n[[group]]\nnodes = 1\nboard = \"mini-pc\"\ndisks = 2\n";
        let design = Wishes::parse(text).unwrap().design(None).unwrap();
        assert_eq!((design.boards(), design.osds()), (4, 5));
        assert!(Wishes::parse(&format!("nodes = 2\n{text}")).unwrap().design(None).is_err());
    }

    #[test]
    fn bad_input_is_refused_in_words() {
        let base = || Wishes { nodes: Some(4), disk: Some("1TB".into()), ..Wishes::default() };
        type Change = fn(&mut Wishes);
        let bad: [(&str, Change); 12] = [
            ("boards", |w| w.nodes = None),
            ("boards", |w| w.nodes = Some(6000)),
            ("large", |w| w.disk = None),
            ("size", |w| w.disk = Some("1GB".into())),
            ("size", |w| w.disk = Some("one".into())),
            ("disks", |w| w.disks = Some(0)),
            ("board", |w| w.board = Some("pi9".into())),
            ("rate", |w| w.link = Some("fast".into())),
            ("20.2.4", |w| {
                (w.ec, w.fast_ec, w.release) = (Some("2+2".into()), true, Some("20.2.3".into()));
            }),
            ("filled", |w| w.filled = Some(f64::NAN)),
            ("node-price", |w| w.node_price = Some(-1.0)),
            ("cannot place", |w| w.ec = Some("4+2".into())),
        ];
        for (word, change) in bad {
            let mut wishes = base();
            change(&mut wishes);
            let error = wishes.design(None).unwrap_err();
            assert!(error.contains(word), "'{word}' in '{error}'");
        }
        assert!(base().design(None).is_ok());
    }

    #[test]
    fn links_are_read_with_their_unit() {
        assert_eq!(link("2.5Gbit"), Ok(2_500_000_000));
        assert_eq!(link("100 Mbit/s"), Ok(100_000_000));
        for bad in ["", "1", "1G", "Gbit", "0Gbit", "-1Gbit", "nanGbit"] {
            assert!(link(bad).is_err(), "{bad}");
        }
    }
}
