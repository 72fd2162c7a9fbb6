//! What `rados bench` prints, line by line.

/// A row of the table: where it was at the end of a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Seconds since it began.
    pub second: u64,
    /// Operations in flight.
    pub in_flight: u64,
    /// Operations completed so far.
    pub finished: u64,
    /// Mean latency so far, in seconds; absent before the first operation has completed.
    pub mean_latency_s: Option<f64>,
}

impl Row {
    /// A row, if the line is one.
    pub fn parse(line: &str) -> Option<Row> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [second, in_flight, started, finished, _, _, last, mean] = words[..] else {
            return None;
        };
        let [second, in_flight, _, finished] =
            [second, in_flight, started, finished].map(|word| word.parse::<u64>().ok());
        let has_latency = last != "-";
        Some(Row {
            second: second?,
            in_flight: in_flight?,
            finished: finished?,
            mean_latency_s: mean.parse().ok().filter(|_| has_latency),
        })
    }
}

/// What it says at its end, as far as it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Standard deviation of the latencies, in seconds.
    pub latency_stddev_s: Option<f64>,
    /// The longest latency, in seconds.
    pub latency_max_s: Option<f64>,
    /// The shortest latency, in seconds.
    pub latency_min_s: Option<f64>,
}

impl Summary {
    /// Takes in a line of it.
    pub fn add(&mut self, line: &str) {
        let Some((name, value)) = line.split_once(':') else {
            return;
        };
        let value = value.trim().parse::<f64>().ok();
        match name.trim() {
            "Stddev Latency(s)" => self.latency_stddev_s = value,
            "Max latency(s)" => self.latency_max_s = value,
            "Min latency(s)" => self.latency_min_s = value,
            _ => {}
        }
    }
}
