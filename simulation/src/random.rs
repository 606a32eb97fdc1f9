//! Random numbers from a seed.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A generator whose numbers follow from its seed.
#[derive(Debug, Clone)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Between 0 and 1.
    fn share(&mut self) -> f64 {
        // The upper 53 bits, as many as a number holds.
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from `low` to `high`, each as likely.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.share()
    }

    /// A whole number below `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        (self.share() * f64::from(end)) as u32
    }

    /// One of these.
    pub fn pick(&mut self, all: &[u32]) -> u32 {
        all[self.below(all.len() as u32) as usize]
    }

    /// A factor around 1 with this standard deviation, normally distributed, cut at four of them.
    pub fn factor(&mut self, deviation: f64) -> f64 {
        1.0 + deviation * self.normal().clamp(-4.0, 4.0)
    }

    /// Of the standard normal distribution (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.share().max(f64::MIN_POSITIVE), self.share());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Of Student's t with `freedom` degrees of freedom: values further out are more frequent than in the normal distribution.
    pub fn student(&mut self, freedom: u32) -> f64 {
        let squares: f64 = (0..freedom).map(|_| self.normal().powi(2)).sum();
        self.normal() / (squares / f64::from(freedom)).sqrt()
    }
}
