//! A Ceph cluster that an image or a pool lies in, and what happened to it while that was measured.

use serde::{Deserialize, Serialize};

use crate::units::{percent, rate_si};

/// The cluster behind an RBD image or a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClusterFacts {
    /// Pool, namespace and image, as `rbd` names them ("rbd/disk"); the pool alone where its objects were measured.
    pub image: String,
    /// What the monitors call their release ("18.2.7 reef"); absent where they did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// How the pool that holds the data keeps them ("3 copies", "erasure code 2+1").
    pub layout: String,
    /// OSDs that there are.
    pub osds: u32,
    /// Of these, up when the run began.
    pub osds_up: u32,
    /// What was not as it should be during the run, in the order in which it began.
    pub changes: Vec<ClusterChange>,
    /// What the throughput of a job did while an OSD went down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dips: Vec<Dip>,
    /// What its machines spent during each job, where they were asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeLoad>,
    /// Why the cluster could not be watched, or not to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_watched: Option<String>,
}

/// What a machine of a cluster spent during a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeLoad {
    /// The machine, as the user names it.
    pub node: String,
    /// The job.
    pub job: String,
    /// Share of its processors' time in which they worked, 0 to 1.
    pub busy: f64,
    /// The link that carried the most; absent where none carried anything.
    pub link: Option<String>,
    /// Bytes per second that came over that link.
    pub received_bytes_per_second: f64,
    /// Bytes per second that went over it.
    pub sent_bytes_per_second: f64,
}

impl NodeLoad {
    /// "object-write: node2 worked 43 % of its processors' time; eth0 received 11.7 MB/s, sent 3.1 MB/s".
    pub fn words(&self) -> String {
        let link = self.link.as_ref().map_or(String::new(), |link| {
            format!(
                "; {link} received {}, sent {}",
                rate_si(self.received_bytes_per_second),
                rate_si(self.sent_bytes_per_second)
            )
        });
        format!(
            "{}: {} worked {} of its processors' time{link}",
            self.job,
            self.node,
            percent(self.busy)
        )
    }
}

/// A time during which something of the cluster was not as it should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClusterChange {
    /// What.
    #[serde(flatten)]
    pub trouble: ClusterTrouble,
    /// Seconds from the run's `started`, within one second; 0 where it was so before.
    pub started_s: f64,
    /// The same of its end; absent where it was still so when the run ended.
    pub ended_s: Option<f64>,
}

/// What can be wrong with a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "trouble", rename_all = "snake_case")]
pub enum ClusterTrouble {
    /// An OSD was marked down.
    OsdDown {
        /// Its number.
        osd: u32,
        /// How its peers noticed, where the cluster's log says it: connections were refused (its
        /// program ended), or it was silent (it hangs, or its machine or network is gone).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        noticed: Option<Noticed>,
    },
    /// Some placement groups were inactive: requests to them waited.
    Inactive,
    /// Some data had fewer copies than they should.
    Degraded,
    /// Data were copied to where they belong, beside what was measured.
    Recovering,
}

/// How an OSD that went down was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Noticed {
    /// Its machine refused connections at once: the program ended, the machine runs.
    Refused,
    /// It was silent until the others gave up: the program hangs, or the machine or its network is gone.
    Silence,
}

/// What a job's throughput did while an OSD went down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Dip {
    /// Name of the job.
    pub job: String,
    /// Seconds from the run's `started` at which it fell below half of what it was.
    pub started_s: f64,
    /// The same of when it was back at three quarters for good; absent where the job ended before.
    pub ended_s: Option<f64>,
    /// The lowest rate of a bin as a share of the rate before.
    pub lowest_share: f64,
}

impl ClusterTrouble {
    /// In words: "osd.2 was down (it refused connections at once)".
    pub fn words(&self) -> String {
        match self {
            ClusterTrouble::OsdDown { osd, noticed } => match noticed {
                Some(Noticed::Refused) => format!(
                    "osd.{osd} was down (its machine refused connections: the program ended)"
                ),
                Some(Noticed::Silence) => format!(
                    "osd.{osd} was down (it was silent: it hangs, or its machine or network is gone)"
                ),
                None => format!("osd.{osd} was down"),
            },
            ClusterTrouble::Inactive => "some placement groups were inactive".into(),
            ClusterTrouble::Degraded => "some data had too few copies".into(),
            ClusterTrouble::Recovering => "data were being recovered".into(),
        }
    }
}

impl ClusterChange {
    /// In words, with its time: "osd.2 was down from 12.3 s to 40.1 s".
    pub fn words(&self) -> String {
        let what = self.trouble.words();
        match self.ended_s {
            Some(end_s) => format!("{what} from {:.1} s to {end_s:.1} s", self.started_s),
            None => format!("{what} from {:.1} s to the end", self.started_s),
        }
    }

    /// Whether any of it was between these moments, in seconds from the run's start.
    pub fn is_within(&self, start_s: f64, end_s: f64) -> bool {
        self.started_s < end_s && self.ended_s.is_none_or(|own_s| own_s > start_s)
    }
}

impl Dip {
    /// In words: "throughput fell to 0 % of what it was at 12.0 s, and was back at 33.5 s".
    pub fn words(&self) -> String {
        let fell = format!(
            "throughput fell to {} of what it was at {:.1} s",
            percent(self.lowest_share),
            self.started_s
        );
        match self.ended_s {
            Some(end_s) => format!("{fell}, and was back at {end_s:.1} s"),
            None => format!("{fell}, and was not back when the job ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_says_what_when_and_how_it_was_noticed() {
        let change = |noticed, ended_s| ClusterChange {
            trouble: ClusterTrouble::OsdDown { osd: 2, noticed },
            started_s: 12.34,
            ended_s,
        };
        assert_eq!(
            change(Some(Noticed::Refused), Some(40.0)).words(),
            "osd.2 was down (its machine refused connections: the program ended) from 12.3 s to 40.0 s"
        );
        assert_eq!(change(None, None).words(), "osd.2 was down from 12.3 s to the end");
        let change = change(None, Some(20.0));
        assert!(change.is_within(0.0, 12.5) && change.is_within(19.0, 30.0));
        assert!(!change.is_within(20.0, 30.0) && !change.is_within(0.0, 12.3));
    }

    #[test]
    fn it_is_json_that_reads_back() {
        let change = ClusterChange {
            trouble: ClusterTrouble::OsdDown { osd: 0, noticed: Some(Noticed::Silence) },
            started_s: 1.0,
            ended_s: None,
        };
        let text = serde_json::to_string(&change).expect("it is JSON");
        assert_eq!(
            text,
            r#"{"trouble":"osd_down","osd":0,"noticed":"silence","started_s":1.0,"ended_s":null}"#
        );
        assert_eq!(serde_json::from_str::<ClusterChange>(&text).expect("back"), change);
    }
}
