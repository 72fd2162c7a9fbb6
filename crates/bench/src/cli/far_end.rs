//! What a server or the machines of a cluster spend meanwhile, where the user lets them be asked.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use rubus_cluster::live as rbd;
use rubus_fleet::remote::Machines;
use rubus_host::net::ssh::Options;
use rubus_measure::FarEnd;
use rubus_nbd_tools::target::status::meter_at;

use super::bench_args::Bench;
use crate::target::OpenTarget;

/// Lets the server of those targets that are network disks be asked what it spends, if the user wants that.
///
/// # Errors
/// In words, when none of them is one, or the server does not say it there.
pub fn ask_server<'a>(
    bench: &Bench,
    targets: impl Iterator<Item = &'a mut OpenTarget>,
    cancel: &AtomicBool,
) -> anyhow::Result<()> {
    let Some(place) = &bench.server_status else {
        return Ok(());
    };
    let on_network = |target: &'a mut OpenTarget| Some((target.client_end()?, target));
    let network_disks: Vec<_> = targets.filter_map(on_network).collect();
    anyhow::ensure!(
        !network_disks.is_empty(),
        "--server-status is for network disks, and no target is one: measure without it"
    );
    let ssh = Options {
        config: bench.remote.ssh_config.clone(),
        settings: bench.remote.ssh_option.clone(),
    };
    let meter = meter_at(place, &ssh, cancel)?;
    for (client, target) in network_disks {
        target.identity.far_end = Some(FarEnd::new(Arc::clone(&meter), client));
    }
    Ok(())
}

/// Lets the machines of the cluster that a target lies in be asked what they spend, if the user names them.
///
/// # Errors
/// In words, when no target lies in a cluster, or a file of machines cannot be read.
pub fn ask_nodes<'a>(
    bench: &Bench,
    mut clusters: impl Iterator<Item = &'a rbd::Watcher>,
) -> anyhow::Result<()> {
    if bench.nodes.is_empty() {
        return Ok(());
    }
    let cluster = clusters.next().context(
        "--nodes is for an image or a pool of a Ceph cluster, and the target is neither: measure without it",
    )?;
    let machines = Machines::named(&bench.nodes, "--nodes")?;
    let nodes = machines.boards.into_iter().map(|board| rbd::Node {
        // None of them may ask for anything.
        options: bench.remote.options(&board, true),
        name: board.name,
        destination: board.destination,
    });
    cluster.ask(rbd::Nodes::start(nodes.collect()));
    Ok(())
}
