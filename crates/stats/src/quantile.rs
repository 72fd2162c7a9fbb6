//! Quantiles of the distributions that the intervals need: Student t, gamma, and from them the
//! exact Poisson bounds.
//!
//! Sources: the logarithm of the gamma function by Lanczos' approximation (g = 7, n = 9; Godfrey's
//! coefficients, about 15 digits); the incomplete beta and gamma functions by their continued
//! fractions and series (Abramowitz and Stegun 26.5.8, 6.5.29, 6.5.31) evaluated by Lentz' method;
//! the quantiles by bisection-guarded Newton steps on those.

/// Natural logarithm of the gamma function, for `x > 0`.
pub fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        // Reflection; only reached for shapes below one half.
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let mut sum = 0.999_999_999_999_809_9;
    for (i, c) in COEFFICIENTS.iter().enumerate() {
        sum += c / (x + i as f64 + 1.0);
    }
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// Evaluates a continued fraction `1/(1 + a1/(1 + a2/(1 + ...` by Lentz' method as modified by
/// Thompson and Barnett (1986); `term(m)` gives the m-th pair of numerator and denominator.
fn continued_fraction(first: f64, mut term: impl FnMut(u32) -> (f64, f64)) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |x: f64| if x.abs() < TINY { TINY } else { x };
    let mut f = guard(first);
    let (mut c, mut d) = (f, 0.0);
    for m in 1..=1000 {
        let (a, b) = term(m);
        d = 1.0 / guard(b + a * d);
        c = guard(b + a / c);
        let step = c * d;
        f *= step;
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    f
}

/// The regularised incomplete beta function I_x(a, b), for `0 <= x <= 1` and positive `a`, `b`.
pub fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let ln_front =
        ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p() - a.ln();
    let fraction = continued_fraction(1.0, |m| {
        let k = f64::from(m / 2);
        let numerator = if m % 2 == 0 {
            k * (b - k) * x / ((a + 2.0 * k - 1.0) * (a + 2.0 * k))
        } else {
            -(a + k) * (a + b + k) * x / ((a + 2.0 * k) * (a + 2.0 * k + 1.0))
        };
        (numerator, 1.0)
    });
    (ln_front.exp() / fraction).clamp(0.0, 1.0)
}

/// The regularised lower incomplete gamma function P(a, x), for `a > 0` and `x >= 0`.
pub fn incomplete_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let ln_front = a * x.ln() - x - ln_gamma(a);
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        for _ in 0..10_000 {
            n += 1.0;
            term *= x / n;
            sum += term;
            if term < sum * 1e-16 {
                break;
            }
        }
        return (sum * ln_front.exp()).clamp(0.0, 1.0);
    }
    let fraction = continued_fraction(x + 1.0 - a, |m| {
        let m = f64::from(m);
        (-m * (m - a), x + 2.0 * m + 1.0 - a)
    });
    (1.0 - ln_front.exp() / fraction).clamp(0.0, 1.0)
}

/// The probability that a Student t variable with `freedom` degrees of freedom is above `t >= 0`.
pub fn student_upper_tail(t: f64, freedom: f64) -> f64 {
    0.5 * incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// Logarithm of the density of Student's t.
fn student_ln_density(t: f64, freedom: f64) -> f64 {
    ln_gamma((freedom + 1.0) / 2.0)
        - ln_gamma(freedom / 2.0)
        - 0.5 * (freedom * std::f64::consts::PI).ln()
        - (freedom + 1.0) / 2.0 * (t * t / freedom).ln_1p()
}

/// The quantile `p` (strictly between 0 and 1) of Student's t with `freedom` degrees of freedom,
/// which may be a fraction but not below 0.5 (it is raised to that).
///
/// Relative error below 1e-9. Infinite or NaN degrees of freedom give the normal quantile's limit
/// at a million degrees.
pub fn student_t(p: f64, freedom: f64) -> f64 {
    let freedom = if freedom.is_finite() { freedom.clamp(0.5, 1e6) } else { 1e6 };
    if p < 0.5 {
        return -student_t(1.0 - p, freedom);
    }
    let tail = 1.0 - p;
    if tail >= 0.5 {
        return 0.0;
    }
    if tail <= 0.0 {
        return f64::INFINITY;
    }
    // Newton steps, kept within what is known about the root.
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut t = student_first_guess(tail, freedom);
    for _ in 0..200 {
        let excess = student_upper_tail(t, freedom) - tail;
        if excess > 0.0 {
            low = t;
        } else {
            high = t;
        }
        let newton = t + excess / student_ln_density(t, freedom).exp();
        let next = if newton > low && newton < high {
            newton
        } else if high.is_finite() {
            0.5 * (low + high)
        } else {
            2.0 * low
        };
        let done = (next - t).abs() <= 1e-11 * next.abs();
        t = next;
        if done {
            break;
        }
    }
    t
}

/// A first guess at the value that Student's t exceeds with the probability `tail`, above 0: the
/// normal value (Abramowitz and Stegun 26.2.23) with the first terms of its expansion in the
/// inverse degrees of freedom (26.7.5).
fn student_first_guess(tail: f64, freedom: f64) -> f64 {
    let u = (-2.0 * tail.ln()).sqrt();
    let z = u
        - (2.515_517 + 0.802_853 * u + 0.010_328 * u * u)
            / (1.0 + 1.432_788 * u + 0.189_269 * u * u + 0.001_308 * u * u * u);
    let first = (z.powi(3) + z) / (4.0 * freedom);
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom * freedom);
    (z + first + second).max(1e-3)
}

/// The factor of a two-sided 95 % interval: the 97.5 % quantile of Student's t.
pub fn student_t_95(freedom: f64) -> f64 {
    student_t(0.975, freedom)
}

/// The quantile `p` of the gamma distribution with the given shape and scale 1; 0 for a shape
/// that is not positive.
pub fn gamma(p: f64, shape: f64) -> f64 {
    if shape.is_nan() || shape <= 0.0 || p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, shape.max(1.0));
    while incomplete_gamma(shape, high) < p {
        low = high;
        high *= 2.0;
    }
    let mut x = 0.5 * (low + high);
    for _ in 0..200 {
        let excess = incomplete_gamma(shape, x) - p;
        if excess < 0.0 {
            low = x;
        } else {
            high = x;
        }
        let density = ((shape - 1.0) * x.ln() - x - ln_gamma(shape)).exp();
        let newton = x - excess / density;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        let done = (next - x).abs() <= 1e-12 * next;
        x = next;
        if done {
            break;
        }
    }
    x
}

/// The exact 95 % bounds of the expected number of events when `events` independent ones were
/// seen (Garwood, Biometrika 28, 1936).
pub fn poisson_bounds(events: u64) -> (f64, f64) {
    let n = events as f64;
    (gamma(0.025, n), gamma(0.975, n + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 97.5 % quantiles of Student's t, computed with 30 digits.
    const T_975: [(f64, f64); 16] = [
        (1.0, 12.706_204_736_174_7),
        (2.0, 4.302_652_729_749_46),
        (3.0, 3.182_446_305_283_71),
        (4.0, 2.776_445_105_197_79),
        (5.0, 2.570_581_835_636_31),
        (6.0, 2.446_911_851_144_97),
        (7.0, 2.364_624_251_592_78),
        (8.0, 2.306_004_135_204_17),
        (9.0, 2.262_157_162_798_21),
        (10.0, 2.228_138_851_986_27),
        (15.0, 2.131_449_545_559_78),
        (20.0, 2.085_963_447_265_86),
        (30.0, 2.042_272_456_301_24),
        (60.0, 2.000_297_822_014_26),
        (120.0, 1.979_930_405_082_44),
        (1000.0, 1.962_339_080_826_41),
    ];

    #[test]
    fn student_t_agrees_with_the_tables() {
        for (freedom, expected) in T_975 {
            let got = student_t_95(freedom);
            assert!((got - expected).abs() < 1e-8, "{freedom}: {got}");
        }
    }

    #[test]
    fn student_t_agrees_with_its_closed_forms() {
        for p in [0.6, 0.75, 0.9, 0.95, 0.995, 0.9995] {
            let cauchy = (std::f64::consts::PI * (p - 0.5)).tan();
            assert!((student_t(p, 1.0) / cauchy - 1.0).abs() < 1e-9);
            let two = (2.0 * p - 1.0) / (2.0f64 * p * (1.0 - p)).sqrt();
            assert!((student_t(p, 2.0) / two - 1.0).abs() < 1e-9);
            assert_eq!(student_t(1.0 - p, 7.5), -student_t(1.0 - (1.0 - p), 7.5));
        }
    }

    #[test]
    fn fractional_degrees_of_freedom_lie_between_their_neighbours() {
        let mut last = f64::INFINITY;
        for tenth in 5..200 {
            let t = student_t_95(f64::from(tenth) / 10.0);
            assert!(t < last);
            last = t;
        }
        assert!((student_t_95(f64::INFINITY) - 1.95996).abs() < 1e-4);
        assert!(student_t_95(f64::NAN).is_finite());
    }

    #[test]
    fn poisson_bounds_agree_with_garwood() {
        // Garwood's published table, to its three or more digits.
        for (events, low, high) in [
            (0, 0.0, 3.6889),
            (1, 0.0253, 5.5716),
            (2, 0.2422, 7.2247),
            (5, 1.6235, 11.6683),
            (10, 4.7954, 18.3904),
            (30, 20.2409, 42.8269),
        ] {
            let (l, h) = poisson_bounds(events);
            assert!((l - low).abs() < 1e-4, "{events}: {l}");
            assert!((h - high).abs() < 1e-4, "{events}: {h}");
        }
    }

    #[test]
    fn gamma_quantile_inverts_the_distribution() {
        for shape in [0.3, 1.0, 2.5, 40.0, 900.0] {
            for p in [0.001, 0.025, 0.5, 0.975, 0.999] {
                let x = gamma(p, shape);
                assert!((incomplete_gamma(shape, x) - p).abs() < 1e-9, "{shape} {p}");
            }
        }
    }
}
