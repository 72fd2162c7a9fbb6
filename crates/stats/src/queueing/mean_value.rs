//! Mean value analysis of a closed path: what stations with queues of their own let through together when a fixed number of
//! operations is always under way.
//!
//! An operation that arrives at a station finds there what one operation less would have left waiting on average (the arrival
//! theorem; Reiser and Lavenberg, *Mean-Value Analysis of Closed Multichain Queueing Networks*, JACM 27(2), 1980). For stations
//! that serve one at a time and delays that all spend side by side this gives, from one operation upwards,
//!
//! ```text
//! R_k(n) = D_k (1 + Q_k(n-1)),    X(n) = n / (Z + Σ R_k(n)),    Q_k(n) = X(n) R_k(n)
//! ```
//!
//! Of a station that serves m at once the same recursion needs how many of its servers are idle, and loses its digits there: the
//! share of time in which all are is a small difference of large numbers. Such stations are added one at a time instead. All that
//! was before acts on a new one as a single station would whose rate with n present is X(n) (Chandy, Herzog and Woo, *Parametric
//! Analysis of Queuing Networks*, IBM Journal of Research and Development 19(1), 1975), and of two stations the shares of time with
//! j of the n at the second are a product of rates. That has no differences, and is exact as well.
//!
//! Exact means: for service times that are spread as chance spreads them (exponentially), or stations that share their time among
//! all that are there. Work that takes the same time every time waits less, never more than [`bounds`] say of any.

/// A place where operations queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// Seconds of work that an operation asks of it in all its visits, D.
    pub seconds: f64,
    /// Operations that are served at once, at least 1. Cores that together do 1.8 times what one does are 1.8.
    pub servers: f64,
}

/// Bounds on the seconds of an operation at a given number in flight. However its work is spread among the stations, no
/// closed path is faster than the lower one, and none of stations like these is slower than the upper one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// By the asymptotic bounds: nothing waits until the narrowest station is full.
    pub min_s: f64,
    /// By balanced jobs: what the path of as much work would take if all stations were as narrow as the narrowest.
    pub max_s: f64,
}

impl Station {
    /// A station that serves one at a time.
    pub fn one(seconds: f64) -> Station {
        Station { seconds, servers: 1.0 }
    }

    /// Seconds for which it is not free for another operation: 1 / this is what it lets through.
    pub fn min_s(&self) -> f64 {
        self.seconds / self.servers.max(1.0)
    }

    /// Operations per second with `present` operations at the station.
    fn rate(&self, present: usize) -> f64 {
        self.servers.max(1.0).min(present as f64) / self.seconds
    }
}

/// X(1), X(2), … X(`depth`): operations per second of a path at each number in flight; they spend `delay_s` side by
/// side and queue at `stations`. Empty when nothing takes time or something takes forever.
pub fn rates(delay_s: f64, stations: &[Station], depth: u32) -> Vec<f64> {
    let busy = stations.iter().copied();
    let busy = busy.filter(|station| station.seconds > 0.0);
    let (single, many): (Vec<Station>, Vec<Station>) =
        busy.partition(|station| station.servers <= 1.0);
    let all_s: f64 = delay_s + stations.iter().map(|station| station.seconds).sum::<f64>();
    if all_s <= 0.0 || !all_s.is_finite() {
        return Vec::new();
    }
    let mut many = many.iter();
    let first = if delay_s > 0.0 || !single.is_empty() {
        one_at_a_time(delay_s, &single, depth)
    } else {
        many.next()
            .map_or(Vec::new(), |station| (1..=depth as usize).map(|n| station.rate(n)).collect())
    };
    many.fold(first, |rates, station| with(&rates, station))
}

/// The arrival theorem, for stations that serve one at a time.
fn one_at_a_time(delay_s: f64, stations: &[Station], depth: u32) -> Vec<f64> {
    let mut waiting = vec![0.0; stations.len()];
    let rate = |n: u32| {
        let mut response_s = delay_s;
        for (station, queue) in stations.iter().zip(&mut waiting) {
            *queue = station.seconds * (1.0 + *queue);
            response_s += *queue;
        }
        let rate = f64::from(n) / response_s;
        waiting.iter_mut().for_each(|seconds| *seconds *= rate);
        rate
    };
    (1..=depth).map(rate).collect()
}

/// The rates of a path that gets one more station: with j of n at the station, the others go on at the rate that the path had with
/// n - j.
fn with(rates: &[f64], station: &Station) -> Vec<f64> {
    /// The shares are not yet divided by their sum; beyond this they are made smaller, since only their ratios count.
    const LARGE: f64 = 1e100;
    let of = |n: usize| {
        let (mut share, mut all, mut done) = (1.0, 1.0, 0.0);
        for j in 1..=n {
            let arrive = share * rates[n - j];
            share = arrive / station.rate(j);
            all += share;
            done += arrive;
            if all > LARGE {
                (share, all, done) = (share / LARGE, all / LARGE, done / LARGE);
            }
        }
        done / all
    };
    (1..=rates.len()).map(of).collect()
}

/// Between which response times a path lies, whatever its work is like (asymptotic bounds: Denning and Buzen, *The Operational
/// Analysis of Queueing Network Models*, ACM Computing Surveys 10(3), 1978) or as far as [`rates`] holds of it (balanced jobs:
/// Zahorjan, Sevcik, Eager and Galler, *Balanced Job Bound Analysis of Queueing Networks*, CACM 25(2), 1982; with a delay as in Lazowska
/// et al., *Quantitative System Performance*, 1984, chapter 5.4).
///
/// A station that serves m at once is taken as one that is m times as fast behind a delay of what is left of its time, which is
/// never faster (Seidmann, Schweitzer and Shalev-Oren, *Computerized Closed Queueing Network Models of Flexible Manufacturing
/// Systems*, Large Scale Systems 12, 1987).
pub fn bounds(delay_s: f64, stations: &[Station], depth: u32) -> Bounds {
    let depth = f64::from(depth.max(1));
    let work_s: f64 = stations.iter().map(Station::min_s).sum();
    let max_s = stations.iter().map(Station::min_s).fold(0.0, f64::max);
    let alone_s = delay_s + stations.iter().map(|one| one.seconds).sum::<f64>();
    let beside_s = alone_s - work_s;
    // Of those in flight, the ones in the delay are not in the way.
    let in_the_way =
        if work_s > 0.0 { (depth - 1.0) / (1.0 + beside_s / (depth * work_s)) } else { 0.0 };
    Bounds { min_s: alone_s.max(depth * max_s), max_s: alone_s + in_the_way * max_s }
}

#[cfg(test)]
mod tests;
