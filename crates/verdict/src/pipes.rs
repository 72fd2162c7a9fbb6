//! The pipe picture: the stages that the reference work passes, one behind the other, each as wide as what it lets through.
//!
//! The width of a stage is the inverse of its demand D_i = V_i · S_i (see [`crate::verdict`]): how often it would do its part of the
//! reference work in a minute. 1 is just enough. Widths of all stages have one measure, so they can be drawn to scale, and so can
//! two pictures beside one another. A bus is as wide as what is read in order goes through it: never narrower than what was measured
//! behind it, unless that came from a cache.

use serde::{Deserialize, Serialize};

use crate::verdict::{NARROW_ABOVE_S, Pipe, PipeKind, verdict};
use rubus_machine::ceiling;
use rubus_machine::purpose::What;
use rubus_machine::reference_work::amount_of_all;
use rubus_stats::estimate::Estimate;
use rubus_vocabulary::result::Run;

/// A picture of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Picture {
    /// From the application to the device: the buses, then what the device does.
    pub stages: Vec<Stage>,
}

/// A piece of the pipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stage {
    /// For people: "USB: USB 2.0 (480 Mbit/s)", "4 KiB random writes".
    pub name: String,
    /// Bus or operation.
    pub kind: PipeKind,
    /// How often it lets its part of the reference work through in a minute; above 0.
    pub width: f64,
    /// The capacity behind it, in bytes or operations per second.
    pub capacity: Estimate,
    /// Whether the capacity is in bytes per second; else in operations.
    pub is_in_bytes: bool,
    /// Whether the capacity was measured; else it is what such a bus usually carries.
    pub is_measured: bool,
    /// The narrowest of the picture.
    pub is_narrowest: bool,
}

impl Picture {
    /// The picture of a run; `None` where nothing was measured that applications do.
    pub fn of(run: &Run) -> Option<Picture> {
        let link = run.target.link.iter().map(|link| {
            let carries = ceiling::ethernet(link.bits_per_second).bytes_per_second;
            bus(&format!("network: {}", link.interface), carries)
        });
        let pipes = verdict(run).pipes;
        let stages: Vec<Stage> = link.chain(pipes.iter().filter_map(stage)).collect();
        let has_operation = stages.iter().any(|stage| stage.kind == PipeKind::Operation);
        has_operation.then_some(Picture { stages })
    }

    /// The width of its narrowest stage.
    pub fn narrowest(&self) -> f64 {
        let widths = self.stages.iter().map(|stage| stage.width);
        widths.fold(f64::INFINITY, f64::min)
    }
}

fn bus(name: &str, carries: f64) -> Stage {
    Stage {
        name: name.into(),
        kind: PipeKind::Bus,
        width: width(amount_of_all(What::SequentialRead) / carries),
        capacity: Estimate::exact(carries),
        is_in_bytes: true,
        is_measured: false,
        is_narrowest: false,
    }
}

fn width(demand_s: f64) -> f64 {
    NARROW_ABOVE_S / demand_s
}

fn stage(pipe: &Pipe) -> Option<Stage> {
    match (pipe.kind, pipe.bytes_per_second, pipe.operations_per_second) {
        (PipeKind::Bus, Some(carries), _) => {
            (carries.value > 0.0).then(|| bus(&pipe.name, carries.value))
        }
        (PipeKind::Operation, bytes, operations) => {
            let demand = pipe.demand_s.filter(|demand| *demand > 0.0)?;
            Some(Stage {
                name: pipe.name.clone(),
                kind: PipeKind::Operation,
                width: width(demand),
                capacity: bytes.or(operations)?,
                is_in_bytes: bytes.is_some(),
                is_measured: pipe.measured,
                is_narrowest: pipe.narrowest,
            })
        }
        (PipeKind::Bus, None, _) => None,
    }
}

/// One linear scale for pictures that stand beside one another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WidthScale {
    /// The width that fills the drawing.
    full: f64,
}

impl WidthScale {
    /// A stage this many times wider than just enough, or than the narrowest stage, is drawn cut off: it is wide
    /// enough, and the narrow ones would vanish beside it.
    const MAX: f64 = 4.0;

    /// The scale for pictures.
    pub fn of(pictures: &[&Picture]) -> WidthScale {
        let stages = || pictures.iter().flat_map(|picture| &picture.stages);
        let widest = stages().map(|stage| stage.width).fold(1.0, f64::max);
        let narrowest = pictures.iter().map(|picture| picture.narrowest());
        let narrowest = narrowest.fold(f64::INFINITY, f64::min).max(1.0);
        WidthScale { full: widest.min(narrowest * Self::MAX) }
    }

    /// The share of the drawing that a width takes, 0 to 1.
    pub fn share(self, width: f64) -> f64 {
        (width / self.full).clamp(0.0, 1.0)
    }

    /// Whether a stage is wider than it can be drawn.
    pub fn cuts(self, width: f64) -> bool {
        width > self.full * 1.000_1
    }

    /// The share that is just enough.
    pub fn wanted(self) -> f64 {
        self.share(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rubus_fixtures::{network_run, slow_sd_card_run};
    use rubus_vocabulary::result::NetworkLink;

    #[test]
    fn the_narrowest_stage_is_the_verdicts_and_widths_are_inverse_demands() {
        let run = slow_sd_card_run();
        let picture = Picture::of(&run).expect("something was measured");
        let narrowest: Vec<&Stage> = picture.stages.iter().filter(|s| s.is_narrowest).collect();
        assert_eq!(narrowest.len(), 1);
        assert_eq!(narrowest[0].name, "commits");
        assert_eq!(picture.narrowest(), narrowest[0].width);
        let demands = verdict(&run).pipes.into_iter().filter_map(|pipe| pipe.demand_s);
        let operations = picture.stages.iter().filter(|s| s.kind == PipeKind::Operation);
        for (demand, stage) in demands.zip(operations) {
            assert!((stage.width * demand / NARROW_ABOVE_S - 1.0).abs() < 1e-9, "{stage:?}");
        }
    }

    #[test]
    fn a_bus_is_at_least_as_wide_as_what_came_through_it() {
        let picture = Picture::of(&slow_sd_card_run()).expect("something was measured");
        let (buses, operations): (Vec<&Stage>, Vec<&Stage>) =
            picture.stages.iter().partition(|s| s.kind == PipeKind::Bus);
        assert!(!buses.is_empty());
        let reads = operations.iter().find(|s| s.name == "sequential reads");
        let reads = reads.expect("it is measured");
        for bus in buses {
            assert!(bus.width >= reads.width * 0.99, "{bus:?} and {reads:?}");
        }
    }

    #[test]
    fn the_cable_of_a_network_disk_is_a_stage() {
        let mut run = network_run();
        run.target.link =
            Some(NetworkLink { interface: "eth0".into(), bits_per_second: 100_000_000 });
        let picture = Picture::of(&run).expect("something was measured");
        assert_eq!(picture.stages[0].name, "network: eth0");
        // 11.77 MB of the 12.5 that the cable carries a second.
        let times_a_minute = 11_768_531.0 * 60.0 / amount_of_all(What::SequentialRead);
        assert!((picture.stages[0].width - times_a_minute).abs() < 1e-9);
    }

    #[test]
    fn nothing_measured_is_no_picture() {
        let mut run = slow_sd_card_run();
        run.results.clear();
        assert_eq!(Picture::of(&run), None);
    }

    #[test]
    fn one_scale_for_before_and_after() {
        let before = Picture::of(&slow_sd_card_run()).expect("something was measured");
        let mut after = before.clone();
        for stage in &mut after.stages {
            stage.width *= 100.0;
        }
        let scale = WidthScale::of(&[&before, &after]);
        // What is wanted is always to be seen, and what is far wider is cut.
        assert!((scale.wanted() - 1.0 / WidthScale::MAX).abs() < 1e-9);
        assert!(scale.cuts(after.stages[0].width) && !scale.cuts(before.narrowest()));
        assert!(scale.share(before.narrowest()) > 0.0);
        // All of it far above what is wanted: the narrowest is still told from the others.
        let fast = WidthScale::of(&[&after]);
        assert!((fast.share(after.narrowest()) - 1.0 / WidthScale::MAX).abs() < 1e-9);
    }
}
