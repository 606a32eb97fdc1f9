//! How probable differences are by chance: Student's t, and adjusting probabilities for their number.

/// The probability that Student's t with `freedom` degrees of freedom is further from 0 than `t`: the regularised incomplete beta function
/// (M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions", 26.5.27 and 26.5.8).
pub fn two_sided(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// The 0.975 quantile of Student's t, found by bisection.
pub fn t_quantile(freedom: f64) -> f64 {
    // With one degree of freedom it is 12.7, with half a degree some 150.
    let (mut low, mut high) = (0.0, 1e4);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if two_sided(middle, freedom) > 0.05 { low = middle } else { high = middle }
    }
    high
}

/// The probability that Student's t with `freedom` degrees of freedom is above `t`.
pub fn upper_tail(t: f64, freedom: f64) -> f64 {
    let half = two_sided(t, freedom) / 2.0;
    if t >= 0.0 { half } else { 1.0 - half }
}

/// The value that Student's t with `freedom` degrees of freedom exceeds with probability `p`, for `p` below one half.
pub fn upper_quantile(p: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e4);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if upper_tail(middle, freedom) > p { low = middle } else { high = middle }
    }
    high
}

/// Probabilities adjusted for their number (Y. Benjamini, Y. Hochberg, "Controlling the False Discovery Rate", Journal of the Royal
/// Statistical Society B 57, 1995). If nothing differs, the chance that any cell is called different is 5 %, too.
pub fn adjust(ps: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> = ps.iter().enumerate().filter_map(|(i, p)| Some((i, (*p)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (mut adjusted, mut least, n) = (vec![None; ps.len()], 1.0_f64, order.len() as f64);
    for (rank, (i, p)) in order.into_iter().enumerate().rev() {
        least = least.min(p * n / (rank + 1) as f64);
        adjusted[i] = Some(least);
    }
    adjusted
}

/// One probability for `tests` tests of one thing: the chance that their probabilities are as small as `smallest`, the smallest of them, if
/// nothing differs (R. J. Simes, "An improved Bonferroni procedure for multiple tests of significance", Biometrika 73, 1986).
pub fn simes(smallest: &mut [f64], tests: usize) -> f64 {
    smallest.sort_unstable_by(f64::total_cmp);
    let each = smallest.iter().zip(1..).map(|(p, rank)| p * tests as f64 / f64::from(rank));
    each.fold(1.0, f64::min)
}

/// I_x(a, b) by its continued fraction, which converges fast below its mean; above it, by symmetry.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (a * x.ln() + b * (1.0 - x).ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)).exp() / a;
    // Lentz's method.
    let away = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..300 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front * fraction
}

/// The logarithm of the gamma function for positive arguments (C. Lanczos, 1964, with g = 7 and nine terms; right to 1e-13).
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
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
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let sum = TERMS.iter().zip(1..).fold(0.999_999_999_999_809_9, |sum, (term, i)| sum + term / (x + f64::from(i)));
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t_is_that_of_the_tables() {
        // NIST's table of critical values.
        for (freedom, quantile) in [(1.0, 12.706), (2.0, 4.303), (4.0, 2.776), (8.0, 2.306), (30.0, 2.042), (1000.0, 1.962)] {
            assert!((t_quantile(freedom) - quantile).abs() < 1e-3, "{freedom}: {}", t_quantile(freedom));
        }
        assert!((two_sided(3.355, 8.0) - 0.01).abs() < 1e-4);
        assert!((two_sided(0.0, 8.0) - 1.0).abs() < 1e-12);
        assert!((upper_tail(1.860, 8.0) - 0.05).abs() < 1e-4 && (upper_tail(-1.860, 8.0) - 0.95).abs() < 1e-4);
        assert!((upper_quantile(0.05, 8.0) - 1.860).abs() < 1e-3);
        // The normal distribution, far out: 2.326e-4 and 9.866e-10.
        assert!((upper_tail(3.5, 1e7) / 2.326e-4 - 1.0).abs() < 1e-3 && (upper_tail(6.0, 1e7) / 9.866e-10 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn probabilities_are_adjusted_as_published() {
        // The example of Benjamini and Hochberg (1995), section 3: of 15 tests four are rejected at 5 %.
        let ps = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000];
        let adjusted = adjust(&ps.map(Some));
        assert_eq!(adjusted.iter().filter(|q| q.unwrap() <= 0.05).count(), 4);
        assert_eq!(adjust(&[None, Some(0.03)]), [None, Some(0.03)]);
    }

    #[test]
    fn several_tests_of_one_thing_are_as_good_as_their_best_rank() {
        assert_eq!(simes(&mut [0.02, 0.001], 10), 0.01);
        assert_eq!(simes(&mut [0.002, 0.001, 0.0015], 3), 0.002, "three of three");
        assert_eq!((simes(&mut [], 10), simes(&mut [0.9], 10)), (1.0, 1.0));
    }
}
