//! What would be faster than what is advised, and why it is not advised.

use super::{Advice, Candidate};

impl Advice {
    /// The candidates whose likely time is shorter than that of the best one, the fastest first, each with the reason why it
    /// stands behind.
    pub fn passed_over(&self) -> Vec<(&Candidate, &'static str)> {
        let Some(best) = self.candidates.first() else {
            return Vec::new();
        };
        let is_faster = |other: &&Candidate| other.time_s.value < best.time_s.value;
        let mut faster: Vec<&Candidate> = self.candidates.iter().filter(is_faster).collect();
        faster.sort_by(|a, b| a.time_s.value.total_cmp(&b.time_s.value));
        faster.into_iter().map(|other| (other, self.reason(best, other))).collect()
    }

    /// Why one is advised although another is likely to be faster; the reasons of the order of candidates, in their order.
    fn reason(&self, best: &Candidate, other: &Candidate) -> &'static str {
        if best.is_now && best.is_enough(self.purpose) {
            return "what you have is enough";
        }
        let is_sure = other.tier < best.tier;
        let needs_another_machine = other.is_network() && !best.is_network();
        match (is_sure, needs_another_machine, other.euros.1 > best.euros.1) {
            (true, _, _) => "by too little to be worth a change",
            (false, true, _) => "not surely, and it needs another machine",
            (false, false, true) => "not surely, and it costs more",
            (false, false, false) if other.worst_risk > best.worst_risk => {
                "not surely, and it risks more"
            }
            (false, false, false) => "not surely",
        }
    }
}
