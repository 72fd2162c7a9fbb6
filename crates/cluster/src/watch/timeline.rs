//! Looks at a cluster, one after the other, as times during which something was wrong.

use rubus_vocabulary::cluster_facts::{ClusterChange, ClusterTrouble, Noticed};

/// What was wrong, from when to when.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    changes: Vec<ClusterChange>,
    last_s: Option<f64>,
}

impl Timeline {
    /// Takes in what was wrong at a moment, in seconds. What changed since the look before is put halfway between the two;
    /// what is wrong at the first look was so before, and begins at 0.
    pub fn look(&mut self, now_s: f64, troubles: &[ClusterTrouble]) {
        let between_s = self.last_s.map_or(0.0, |last_s| f64::midpoint(last_s, now_s));
        self.last_s = Some(now_s);
        for change in self.changes.iter_mut().filter(|c| c.ended_s.is_none()) {
            let goes_on = troubles.iter().any(|other| is_same(&change.trouble, other));
            if !goes_on {
                change.ended_s = Some(between_s);
            }
        }
        for trouble in troubles {
            let is_known = |c: &ClusterChange| c.ended_s.is_none() && is_same(&c.trouble, trouble);
            if !self.changes.iter().any(is_known) {
                self.changes.push(ClusterChange {
                    trouble: trouble.clone(),
                    started_s: between_s,
                    ended_s: None,
                });
            }
        }
    }

    /// OSDs of which it is not known yet how they were noticed to be down.
    pub fn unexplained(&self) -> Vec<u32> {
        let down = self.changes.iter().filter(|change| change.ended_s.is_none());
        down.filter_map(|change| match change.trouble {
            ClusterTrouble::OsdDown { osd, noticed: None } => Some(osd),
            _ => None,
        })
        .collect()
    }

    /// Says how an OSD that is down was noticed.
    pub fn explain(&mut self, number: u32, how: Noticed) {
        for change in self.changes.iter_mut().filter(|c| c.ended_s.is_none()) {
            if let ClusterTrouble::OsdDown { osd, noticed } = &mut change.trouble
                && *osd == number
            {
                *noticed = Some(how);
            }
        }
    }

    /// What was wrong at any time between these moments, as seconds from the first.
    pub fn between(&self, start_s: f64, end_s: f64) -> Vec<ClusterChange> {
        let within = self.changes.iter().filter(|c| c.is_within(start_s, end_s));
        within
            .map(|change| ClusterChange {
                trouble: change.trouble.clone(),
                started_s: (change.started_s - start_s).max(0.0),
                ended_s: change
                    .ended_s
                    .filter(|&ended_s| ended_s <= end_s)
                    .map(|ended_s| ended_s - start_s),
            })
            .collect()
    }
}

/// Whether two are the same trouble; how it was noticed may be known later.
fn is_same(one: &ClusterTrouble, other: &ClusterTrouble) -> bool {
    match (one, other) {
        (ClusterTrouble::OsdDown { osd, .. }, ClusterTrouble::OsdDown { osd: other, .. }) => {
            osd == other
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down(osd: u32) -> ClusterTrouble {
        ClusterTrouble::OsdDown { osd, noticed: None }
    }

    #[test]
    fn an_osd_that_goes_and_comes_back_is_one_time() {
        let mut timeline = Timeline::default();
        timeline.look(10.0, &[]);
        timeline.look(11.0, &[down(2)]);
        assert_eq!(timeline.unexplained(), [2]);
        timeline.explain(2, Noticed::Refused);
        timeline.look(12.0, &[down(2), ClusterTrouble::Degraded]);
        assert!(timeline.unexplained().is_empty());
        timeline.look(20.0, &[ClusterTrouble::Degraded]);
        let found = timeline.between(5.0, 30.0);
        let times: Vec<_> = found.iter().map(|c| (c.started_s, c.ended_s)).collect();
        assert_eq!(times, [(5.5, Some(11.0)), (6.5, None)]);
        assert_eq!(
            found[0].trouble,
            ClusterTrouble::OsdDown { osd: 2, noticed: Some(Noticed::Refused) }
        );
    }

    #[test]
    fn what_was_wrong_before_begins_at_nought_and_what_ended_before_is_left_out() {
        let mut timeline = Timeline::default();
        timeline.look(1.0, &[down(0)]);
        timeline.look(2.0, &[]);
        timeline.look(3.0, &[ClusterTrouble::Inactive]);
        assert_eq!(timeline.between(0.0, 10.0)[0].started_s, 0.0);
        let later = timeline.between(2.0, 10.0);
        assert_eq!(later.len(), 1);
        assert_eq!(later[0].trouble, ClusterTrouble::Inactive);
    }

    #[test]
    fn the_same_osd_twice_is_two_times() {
        let mut timeline = Timeline::default();
        for (at_s, troubles) in
            [(0.0, vec![]), (1.0, vec![down(1)]), (2.0, vec![]), (3.0, vec![down(1)])]
        {
            timeline.look(at_s, &troubles);
        }
        assert_eq!(timeline.between(0.0, 4.0).len(), 2);
    }
}
