//! The bend of a block-size sweep: t(b) = setup + b / rate.
//!
//! The line of start-up time and asymptotic rate that Hockney gave to messages and vectors (Parallel
//! Computing 20, 1994); the size at which half of the rate is reached is their product.

use crate::estimate::Estimate;
use crate::fit::{Family, Fitted, Point, interval};

/// Minimum number of sizes for a fit.
const MIN_SIZES: usize = 4;
/// The bend is searched for up to this factor beyond the smallest and the largest size.
const BEYOND: f64 = 64.0;
/// Steps of the bend's size, as a share.
const STEP: f64 = 0.04;

/// A block size with what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Bytes per operation.
    pub block_bytes: u32,
    /// Operations per second.
    pub iops: Estimate,
}

/// What the line says of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Seconds that an operation costs whatever its size.
    pub setup_s: Estimate,
    /// Bytes per second of very large operations.
    pub bytes_per_second: Estimate,
    /// Bytes at which the two take as long.
    pub block_bytes: Estimate,
    /// Largest distance of a point from the curve, as a share of it.
    pub misfit: f64,
}

/// Fits the line to a sweep of ascending sizes. Nothing when there are fewer than four usable sizes,
/// or when the curve does not bend within them: then only one of the two figures was seen.
pub fn fit(sweep: &[Size]) -> Option<Fit> {
    let usable: Vec<(f64, Point)> = sweep
        .iter()
        .filter(|size| size.block_bytes > 0)
        .filter_map(|size| Some((f64::from(size.block_bytes), Point::of(&size.iops)?)))
        .collect();
    if usable.len() < MIN_SIZES {
        return None;
    }
    let (sizes, points): (Vec<f64>, Vec<Point>) = usable.into_iter().unzip();
    let smallest = sizes.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = sizes.iter().copied().fold(0.0, f64::max);
    let least = smallest / BEYOND;
    let along = ((largest * BEYOND / least).ln() / STEP) as usize + 1;
    let bend_at = |place: f64| least * (place * STEP).exp();
    let shapes = (0..along).map(|place| {
        let row = sizes.iter().map(|&size| shape(size, bend_at(place as f64)));
        row.collect()
    });
    let family = Family { shapes: shapes.collect(), along };
    let best = family.fit(&points);
    let others = family.resampled(&points, &best, 0x6265_6e64);
    let figures =
        |of: &dyn Fn(&Fitted) -> f64| interval(of(&best), others.iter().map(of).collect());
    let setup_s = figures(&|fitted| (-fitted.ln_factor).exp());
    let block_bytes = figures(&|fitted| bend_at(fitted.place));
    if !(smallest..=largest).contains(&block_bytes.value) {
        return None;
    }
    let misfit = sizes.iter().zip(&points).map(|(&size, point)| {
        let curve = shape(size, bend_at(best.place)) + best.ln_factor;
        ((point.ln - curve).exp() - 1.0).abs()
    });
    Some(Fit {
        setup_s,
        bytes_per_second: figures(&|fitted| bend_at(fitted.place) * fitted.ln_factor.exp()),
        block_bytes,
        misfit: misfit.fold(0.0, f64::max),
    })
}

/// Logarithm of the operations per second times the set-up time.
fn shape(size: f64, bend: f64) -> f64 {
    -(size / bend).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(setup_s: f64, rate: f64, half_width: f64) -> Vec<Size> {
        let size = |power: u32| {
            let block_bytes = 1_u32 << power;
            let iops = 1.0 / (setup_s + f64::from(block_bytes) / rate);
            let iops = Estimate::new(iops, iops * (1.0 - half_width), iops * (1.0 + half_width));
            Size { block_bytes, iops }
        };
        (6..=24).step_by(2).map(size).collect()
    }

    #[test]
    fn set_up_and_rate_are_told_apart() {
        let fit = fit(&sweep(330e-6, 34e6, 0.03)).unwrap();
        assert!((fit.setup_s.value / 330e-6 - 1.0).abs() < 0.01, "{fit:?}");
        assert!((fit.bytes_per_second.value / 34e6 - 1.0).abs() < 0.01);
        assert!((fit.block_bytes.value / 11_220.0 - 1.0).abs() < 0.02);
        assert!(fit.misfit < 0.01);
        let share = fit.block_bytes.relative_half_width();
        assert!((0.005..0.05).contains(&share), "{fit:?}");
    }

    #[test]
    fn a_line_without_a_bend_is_no_finding() {
        assert_eq!(fit(&sweep(1e-9, 34e6, 0.03)), None);
        assert_eq!(fit(&sweep(100.0, 34e6, 0.03)), None);
        assert_eq!(fit(&sweep(330e-6, 34e6, 0.03)[..3]), None);
    }
}
