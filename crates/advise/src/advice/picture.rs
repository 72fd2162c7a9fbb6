//! The pipe picture of a candidate of an advice: the resources in its way, in the order in which its work passes them.

use super::{Candidate, Demand, Pipe, StageKind};
use rubus_verdict::pipes::{Picture, Stage};
use rubus_verdict::verdict::PipeKind;

/// Where a resource stands, from who asks on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// What others ask through, who have no disk here.
    Port,
    Processor,
    Bus,
    Link,
    Device,
    Server,
}

/// The picture of a candidate while it does what takes most of its time. Widths are in seconds of the purpose's work, as
/// those of a run. `None` where nothing is known to be in its way.
pub fn of_candidate(candidate: &Candidate) -> Option<Picture> {
    let largest = candidate.largest()?;
    let narrowest = candidate.pipes.first()?;
    let each = each_operation(largest, narrowest);
    // Operations in one second of the work.
    let work = largest.seconds.value * largest.per_second.value / each;
    if !(work.is_finite() && work > 0.0) {
        return None;
    }
    let mut pipes: Vec<(Place, &Pipe)> =
        candidate.pipes.iter().map(|pipe| (place(pipe, candidate), pipe)).collect();
    // Buses become narrower on the way to the device.
    let capacity = |pipe: &Pipe| pipe.capacity_iops.value;
    pipes.sort_by(|(a, one), (b, other)| a.cmp(b).then(capacity(other).total_cmp(&capacity(one))));
    let is_known = candidate.basis.of(largest.what, largest.in_flight).is_measured();
    let stages = pipes.into_iter().map(|(place, pipe)| Stage {
        name: name(place, pipe),
        kind: match place {
            Place::Port | Place::Bus | Place::Link => PipeKind::Bus,
            _ => PipeKind::Operation,
        },
        width: pipe.capacity_iops.value / work,
        capacity: pipe.capacity_iops.scaled(each),
        is_in_bytes: largest.what.is_in_order(),
        is_measured: is_known && place == Place::Device,
        is_narrowest: std::ptr::eq(pipe, narrowest),
    });
    Some(Picture { stages: stages.collect() })
}
/// What one of the model's operations is, in the unit of the demand's rate: bytes of those in order, else 1.
fn each_operation(demand: &Demand, narrowest: &Pipe) -> f64 {
    if demand.what.is_in_order() {
        demand.per_second.value / (narrowest.capacity_iops.value * narrowest.utilisation)
    } else {
        1.0
    }
}

fn place(pipe: &Pipe, candidate: &Candidate) -> Place {
    let is_server = |pipe: &Pipe| pipe.kind == StageKind::Server;
    let is_remote = candidate.pipes.iter().any(is_server);
    match pipe.kind {
        StageKind::Cipher
        | StageKind::Compression
        | StageKind::Filesystem
        | StageKind::Swap
        | StageKind::Processor => Place::Processor,
        StageKind::Bus => Place::Bus,
        StageKind::Network if is_remote => Place::Link,
        StageKind::Network => Place::Port,
        StageKind::Device => Place::Device,
        StageKind::Server => Place::Server,
    }
}

fn name(place: Place, pipe: &Pipe) -> String {
    let bare = pipe.name.strip_prefix("the ").unwrap_or(&pipe.name);
    match place {
        Place::Link => format!("network: {bare}"),
        _ => bare.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::advice;
    use rubus_verdict::pipes::WidthScale;

    fn picture(name: &str) -> Picture {
        let advice = advice();
        let mut candidates = advice.candidates.iter();
        let candidate = candidates.find(|candidate| candidate.name == name);
        of_candidate(candidate.expect("it is weighed")).expect("it has pipes")
    }

    fn names(picture: &Picture) -> Vec<&str> {
        let stages = picture.stages.iter();
        stages.map(|stage| stage.name.as_str()).collect()
    }

    #[test]
    fn stages_stand_in_the_order_in_which_work_passes_them() {
        assert_eq!(names(&picture("mmcblk0")), ["card slot mmc0", "mmcblk0"]);
        assert_eq!(names(&picture("sda")), ["USB 2 bus usb1", "sda"]);
        assert_eq!(names(&picture("nbd")), ["USB 2 bus usb1", "network: eth0", "server"]);
    }

    /// What a storage node gives goes out by its own link, which is no network disk's.
    #[test]
    fn the_port_of_a_storage_node_comes_first() {
        let mut candidate = advice().candidates.remove(0);
        candidate.pipes.push(Pipe {
            name: "the link eth0".into(),
            kind: StageKind::Network,
            ..candidate.pipes[0].clone()
        });
        let picture = of_candidate(&candidate).expect("it has pipes");
        assert_eq!(names(&picture), ["link eth0", "USB 2 bus usb1", "sda"]);
        assert_eq!(picture.stages[0].kind, PipeKind::Bus);
    }

    #[test]
    fn widths_are_shares_of_the_work_and_one_is_the_narrowest() {
        let card = picture("mmcblk0");
        let narrowest = card.stages.iter().filter(|stage| stage.is_narrowest);
        let narrowest: Vec<&Stage> = narrowest.collect();
        assert_eq!(narrowest.len(), 1);
        // 40 of the 350 commits of a second.
        let width = 40.0 / 350.0;
        assert!((narrowest[0].width - width).abs() < 1e-9, "{narrowest:?}");
        assert_eq!(card.narrowest(), narrowest[0].width);
        assert!(narrowest[0].is_measured && !card.stages[0].is_measured);
        let best = picture("sda");
        assert!((best.narrowest() - 300.0 / 350.0).abs() < 1e-9, "{best:?}");
        assert!(WidthScale::of(&[&card, &best]).wanted() > 0.0);
    }

    #[test]
    fn what_is_in_order_is_told_in_bytes() {
        let mut candidate = advice().candidates.remove(0);
        candidate.demands.retain(|demand| demand.what.is_in_order());
        let largest = *candidate.largest().expect("it reads and writes");
        // A device that is full: 30 MB/s in operations of 1 MiB.
        let full = largest.per_second.scaled(1.0 / f64::from(1 << 20));
        candidate.pipes.truncate(1);
        candidate.pipes[0].capacity_iops = full;
        candidate.pipes[0].utilisation = 1.0;
        let picture = of_candidate(&candidate).expect("it has a pipe");
        let stage = &picture.stages[0];
        assert!(stage.is_in_bytes);
        assert!((stage.capacity.value / largest.per_second.value - 1.0).abs() < 1e-9);
        assert!((stage.width * largest.seconds.value - 1.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_in_the_way_is_no_picture() {
        let mut candidate = advice().candidates.remove(0);
        candidate.pipes.clear();
        assert_eq!(of_candidate(&candidate), None);
    }
}
