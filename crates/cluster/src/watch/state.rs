//! The state of a cluster, from what `ceph status`, `ceph osd tree` and `ceph log last` print as JSON.
//!
//! The fields are those of Ceph 18 to 20.

use rubus_vocabulary::cluster_facts::{ClusterTrouble, Noticed};
use serde_json::Value;

/// Health checks under which nothing may be written any more, or soon.
const FULL: [&str; 7] = [
    "OSD_FULL",
    "OSD_BACKFILLFULL",
    "OSD_NEARFULL",
    "POOL_FULL",
    "POOL_BACKFILLFULL",
    "POOL_NEARFULL",
    "MON_DISK_CRIT",
];

/// A cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// OSDs that there are.
    pub osds: u32,
    /// Of these, up.
    pub osds_up: u32,
    /// Some placement groups are not active.
    pub is_inactive: bool,
    /// Some have fewer copies than they should.
    pub is_degraded: bool,
    /// Data are copied to where they belong.
    pub is_recovering: bool,
    /// Messages of the checks that say that room is short.
    pub full: Vec<String>,
}

impl State {
    /// Reads what `ceph status --format json` prints.
    ///
    /// # Errors
    /// In words, when it is something else.
    pub fn parse(printed: &str) -> Result<State, String> {
        let found: Value = serde_json::from_str(printed.trim())
            .map_err(|error| format!("`ceph status` printed no JSON: {error}"))?;
        let count = |name: &str| {
            let number = found["osdmap"][name].as_u64();
            number.and_then(|number| u32::try_from(number).ok())
        };
        let (Some(osds), Some(osds_up)) = (count("num_osds"), count("num_up_osds")) else {
            return Err("`ceph status` says nothing about OSDs".into());
        };
        let mut state = State { osds, osds_up, ..State::default() };
        let groups = found["pgmap"]["pgs_by_state"].as_array();
        for group in groups.into_iter().flatten() {
            state.add_groups(group["state_name"].as_str().unwrap_or_default());
        }
        for name in FULL {
            let check = &found["health"]["checks"][name];
            if !check.is_null() {
                let message = check["summary"]["message"].as_str();
                state.full.push(message.unwrap_or(name).to_owned());
            }
        }
        Ok(state)
    }

    /// Takes in placement groups of this state, such as `active+undersized+degraded`.
    fn add_groups(&mut self, name: &str) {
        let words: Vec<&str> = name.split('+').collect();
        let any = |of: &[&str]| words.iter().any(|word| of.contains(word));
        self.is_inactive |= !any(&["active"]);
        self.is_degraded |= any(&["degraded", "undersized"]);
        self.is_recovering |= any(&["recovering", "backfilling"]);
    }

    /// What is wrong, beside OSDs that are down.
    pub fn troubles(&self) -> impl Iterator<Item = ClusterTrouble> {
        [
            (self.is_inactive, ClusterTrouble::Inactive),
            (self.is_degraded, ClusterTrouble::Degraded),
            (self.is_recovering, ClusterTrouble::Recovering),
        ]
        .into_iter()
        .filter_map(|(is_so, trouble)| is_so.then_some(trouble))
    }
}

/// Numbers of the OSDs that are down, from `ceph osd tree down --format json`.
///
/// # Errors
/// In words, when it is something else.
pub fn osds_down(printed: &str) -> Result<Vec<u32>, String> {
    let found: Value = serde_json::from_str(printed.trim())
        .map_err(|error| format!("`ceph osd tree` printed no JSON: {error}"))?;
    let nodes = ["nodes", "stray"].map(|name| found[name].as_array());
    Ok(nodes
        .into_iter()
        .flatten()
        .flatten()
        .filter(|node| node["type"] == "osd" && node["status"] == "down")
        .filter_map(|osd| osd["id"].as_u64())
        .filter_map(|number| u32::try_from(number).ok())
        .collect())
}

/// How this OSD was last noticed to be down, from `ceph log last N debug cluster --format json`: the monitors write
/// `osd.2 reported immediately failed by osd.0` where connections were refused, and `osd.2 reported failed by osd.0` after
/// it was silent for the grace (20 s).
pub fn noticed(printed: &str, osd: u32) -> Option<Noticed> {
    let found: Value = serde_json::from_str(printed.trim()).ok()?;
    let lines = found.as_array()?.iter().rev();
    let [refused, silent] = ["reported immediately failed by", "reported failed by"]
        .map(|how| format!("osd.{osd} {how}"));
    let mut words = lines.filter_map(|line| line["message"].as_str());
    words.find_map(|line| match line {
        _ if line.contains(&refused) => Some(Noticed::Refused),
        _ if line.contains(&silent) => Some(Noticed::Silence),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL: &str = r#"{"health":{"status":"HEALTH_OK","checks":{}},"osdmap":{"epoch":17,"num_osds":4,"num_up_osds":4,
        "num_in_osds":4},"pgmap":{"pgs_by_state":[{"state_name":"active+clean","count":33}],"num_pgs":33}}"#;

    #[test]
    fn a_cluster_that_is_well_has_no_trouble() {
        let state = State::parse(WELL).expect("it is a status");
        assert_eq!((state.osds, state.osds_up), (4, 4));
        assert_eq!(state.troubles().count(), 0);
        assert!(state.full.is_empty());
    }

    #[test]
    fn groups_and_checks_become_troubles() {
        let status = r#"{"health":{"checks":{"OSD_NEARFULL":{"severity":"HEALTH_WARN","summary":{"message":"1 nearfull osd(s)","count":1}}}},
            "osdmap":{"num_osds":4,"num_up_osds":3},"pgmap":{"pgs_by_state":[{"state_name":"active+clean","count":3},
            {"state_name":"active+undersized+degraded","count":1},{"state_name":"active+recovering+degraded","count":1}]}}"#;
        let state = State::parse(status).expect("it is a status");
        let troubles: Vec<_> = state.troubles().collect();
        assert_eq!(troubles, [ClusterTrouble::Degraded, ClusterTrouble::Recovering]);
        assert_eq!(state.full, ["1 nearfull osd(s)"]);
        let waits = WELL.replace("active+clean", "peering");
        assert!(State::parse(&waits).expect("a status").is_inactive);
    }

    #[test]
    fn what_is_no_status_is_said_to_be_none() {
        assert!(State::parse("Error").unwrap_err().contains("no JSON"));
        assert!(State::parse("{}").unwrap_err().contains("OSDs"));
    }

    #[test]
    fn the_log_tells_a_kill_from_a_hang() {
        let down = osds_down(
            r#"{"nodes":[{"id":-1,"type":"root"},{"id":2,"type":"osd","status":"down"}],"stray":[]}"#,
        );
        assert_eq!(down, Ok(vec![2]));
        let log = |how: &str| {
            format!(
                r#"[{{"message":"osd.2 {how} osd.0"}},{{"message":"osd.2 failed (root=default)"}}]"#
            )
        };
        assert_eq!(noticed(&log("reported immediately failed by"), 2), Some(Noticed::Refused));
        assert_eq!(noticed(&log("reported failed by"), 2), Some(Noticed::Silence));
        assert_eq!(noticed(&log("reported failed by"), 1), None);
    }
}
