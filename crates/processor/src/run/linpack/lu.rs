//! Eliminating and solving: a blocked LU with partial pivoting, whose block is the caller's to choose.
//!
//! The scheme is that of HPL on one process: the right side is one more column, a panel of columns is factored recursively,
//! and the panel after it is brought up to date and factored by one thread while the others still work on the columns behind
//! it (look-ahead of one). Which numbers are added in which order depends on the size and the block alone, never on which thread was
//! quicker, so that the same system gives the same bits each time.
//!
//! Sources: Golub and Van Loan, *Matrix Computations*, 4th edition, section 3.6 (blocked elimination); Toledo, "Locality of reference in LU
//! decomposition with partial pivoting", SIAM Journal on Matrix Analysis 18, 1997 (recursive panels).

use std::slice::ChunksMut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rubus_host::process::affinity::Pinned;
use rubus_stats::Rng;

use super::kernels::{Kernel, kernels};
use super::products::{Columns, Left, Multiplier, Update};
use crate::solving::Norms;

/// Columns that a thread takes at a time.
const STRIP: usize = 96;
/// So few columns are eliminated one by one.
const FEW: usize = 8;
/// A triangle of so few rows is solved row by row.
const SMALL: usize = 16;

/// A system of equations that can be made again from its seed.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// Number of unknowns.
    pub n: usize,
    /// What its numbers are drawn from.
    pub seed: u64,
}

impl System {
    /// Distance of columns in memory: whole vectors, and no multiple of what would map all columns to the same lines of a cache.
    fn stride(self) -> usize {
        let stride = self.n.next_multiple_of(8);
        if stride % 256 == 0 { stride + 8 } else { stride }
    }

    /// Column `number`; the one after the last is the right side. Uniform in [-0.5, 0.5), as HPL has them.
    fn column(self, number: usize, column: &mut [f64]) {
        let mut rng = Rng::stream(self.seed, number as u64);
        for value in &mut column[..self.n] {
            *value = rng.unit() - 0.5;
        }
    }
}

/// Threads that solve a system together.
#[derive(Clone, Debug)]
pub struct Team {
    threads: usize,
    /// Where each thread stays; those that have no place here are the kernel's to move.
    cpus: Vec<usize>,
}

impl Team {
    /// Threads that the kernel moves.
    pub fn floating(threads: usize) -> Team {
        Team { threads: threads.max(1), cpus: Vec::new() }
    }

    /// A thread pinned to each of these CPUs; panels are factored on the first. One that floats where there are none.
    pub fn pinned(cpus: &[usize]) -> Team {
        Team { threads: cpus.len().max(1), cpus: cpus.to_vec() }
    }

    /// Where its threads stay; empty when they float.
    #[cfg(test)]
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// Keeps the calling thread where thread `number` belongs. A CPU that was taken from the program meanwhile is no reason not to
    /// solve: the thread then floats.
    fn pin(&self, number: usize) -> Option<Pinned> {
        Pinned::to(*self.cpus.get(number)?).ok()
    }
}

/// A matrix with its right side, and where it is solved.
pub struct Matrix {
    system: System,
    stride: usize,
    kernel: Kernel,
    /// Column by column, the right side last.
    values: Vec<f64>,
}

impl Matrix {
    /// Memory for a system.
    ///
    /// # Errors
    /// When there is not that much.
    pub fn reserve(system: System) -> std::io::Result<Matrix> {
        let none = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let stride = system.stride();
        let length = stride.checked_mul(system.n + 1).ok_or_else(none)?;
        let mut values = Vec::new();
        values.try_reserve_exact(length).map_err(|_| none())?;
        values.resize(length, 0.0);
        Ok(Matrix { system, stride, kernel: kernels()[0], values })
    }

    /// Fills the matrix with the system again.
    pub fn fill(&mut self, threads: usize) {
        let (system, stride) = (self.system, self.stride);
        let columns = (system.n + 1).div_ceil(threads.max(1));
        std::thread::scope(|scope| {
            for (part, values) in self.values.chunks_mut(columns * stride).enumerate() {
                scope.spawn(move || {
                    for (i, column) in values.chunks_mut(stride).enumerate() {
                        system.column(part * columns + i, column);
                    }
                });
            }
        });
    }

    /// Eliminates and solves in place, with `block` columns at a time. `disturb` sees the matrix after each panel: tests
    /// play a broken machine with it. Nothing when it was cancelled.
    pub fn solve(
        &mut self,
        block: usize,
        team: &Team,
        disturb: &dyn Fn(usize, &mut [f64]),
        cancel: &AtomicBool,
    ) -> Option<Vec<f64>> {
        let shape = Shape { n: self.system.n, stride: self.stride };
        let _pinned = team.pin(0);
        let block = block.clamp(1, shape.n.max(1));
        self.eliminate(shape, block, team, disturb, cancel)?;
        Some(self.substitute(shape))
    }

    fn eliminate(
        &mut self,
        shape: Shape,
        block: usize,
        team: &Team,
        disturb: &dyn Fn(usize, &mut [f64]),
        cancel: &AtomicBool,
    ) -> Option<()> {
        let Shape { n, stride } = shape;
        let mut worker = Multiplier::new(self.kernel);
        let (mut left, mut next_left) = (Left::default(), Left::default());
        let mut top = 0;
        let mut pivots = vec![0; block.min(n)];
        let first = &mut self.values[..pivots.len() * stride];
        shape.prepare(first, 0, &mut pivots, &mut left, &mut worker);
        while top < n {
            if cancel.load(Ordering::Relaxed) {
                return None;
            }
            let width = pivots.len();
            let (done, rest) = self.values.split_at_mut((top + width) * stride);
            let step =
                Step { shape, panel: &done[top * stride..], left: &left, pivots: &pivots, top };
            let mut next_pivots = vec![0; block.min(n - top - width)];
            let (next, others) = rest.split_at_mut(next_pivots.len() * stride);
            let strips = Mutex::new(others.chunks_mut(STRIP * stride));
            let helpers = team.threads.min(others_strips(n - top - width, next_pivots.len()));
            let kernel = self.kernel;
            std::thread::scope(|scope| {
                for number in 1..helpers {
                    let (step, strips) = (&step, &strips);
                    scope.spawn(move || {
                        let _pinned = team.pin(number);
                        step.take(strips, &mut Multiplier::new(kernel));
                    });
                }
                if !next_pivots.is_empty() {
                    step.update(next, &mut worker);
                    let pivots = &mut next_pivots;
                    shape.prepare(next, top + width, pivots, &mut next_left, &mut worker);
                }
                step.take(&strips, &mut worker);
            });
            disturb(top + width, &mut self.values);
            top += width;
            pivots = next_pivots;
            std::mem::swap(&mut left, &mut next_left);
        }
        Some(())
    }

    /// Solves with the upper triangle, last unknown first.
    fn substitute(&self, shape: Shape) -> Vec<f64> {
        let Shape { n, stride } = shape;
        let mut x = self.values[n * stride..n * stride + n].to_vec();
        for j in (0..n).rev() {
            let column = &self.values[j * stride..j * stride + j + 1];
            let solved = x[j] / column[j];
            x[j] = solved;
            for (value, factor) in x[..j].iter_mut().zip(column) {
                *value -= solved * factor;
            }
        }
        x
    }
}

/// Threads that find something to do: those for strips, and the one for the next panel.
fn others_strips(columns: usize, next: usize) -> usize {
    (columns + 1 - next).div_ceil(STRIP) + 1
}

/// How well `x` solves a system, which is made again for this.
pub fn norms(system: System, x: &[f64]) -> Norms {
    let n = system.n;
    let mut column = vec![0.0; n];
    let (mut residual, mut sums) = (vec![0.0; n], vec![0.0; n]);
    system.column(n, &mut residual);
    let right_side = largest(&residual);
    for (j, factor) in x.iter().enumerate() {
        system.column(j, &mut column);
        for ((value, left), sum) in column.iter().zip(&mut residual).zip(&mut sums) {
            *left -= factor * value;
            *sum += value.abs();
        }
    }
    Norms { residual: largest(&residual), matrix: largest(&sums), solution: largest(x), right_side }
}

/// The largest magnitude; not a number if one of them is none.
fn largest(values: &[f64]) -> f64 {
    let larger = |most: f64, value: &f64| {
        if value.is_nan() || value.abs() > most { value.abs() } else { most }
    };
    values.iter().fold(0.0, larger)
}

/// The bits of a solution in short (FNV-1a).
pub fn fingerprint(x: &[f64]) -> u64 {
    let step =
        |hash: u64, value: &f64| (hash ^ value.to_bits()).wrapping_mul(0x0000_0100_0000_01b3);
    x.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// How a matrix lies in memory.
#[derive(Clone, Copy)]
struct Shape {
    /// Rows that count.
    n: usize,
    /// Distance of columns.
    stride: usize,
}

/// What is done to the columns behind a factored panel.
struct Step<'a> {
    shape: Shape,
    panel: &'a [f64],
    /// The panel's rows below its triangle, packed once for all strips.
    left: &'a Left,
    pivots: &'a [usize],
    /// The panel's first row.
    top: usize,
}

impl Step<'_> {
    /// Strips, until none is left.
    fn take(&self, strips: &Mutex<ChunksMut<'_, f64>>, worker: &mut Multiplier) {
        loop {
            let strip = strips.lock().unwrap_or_else(PoisonError::into_inner).next();
            match strip {
                Some(strip) => self.update(strip, worker),
                None => return,
            }
        }
    }

    /// Exchanges rows, solves with the panel's triangle, and subtracts what the panel explains.
    fn update(&self, strip: &mut [f64], worker: &mut Multiplier) {
        let Shape { n, stride } = self.shape;
        let width = self.pivots.len();
        exchange(strip, stride, self.top, self.pivots);
        self.shape.solve_triangle(self.panel, strip, self.top, width, worker);
        let update = Update {
            target: strip,
            stride,
            above: self.top..self.top + width,
            rows: self.top + width..n,
        };
        worker.subtract_packed(self.left, update);
    }
}

/// Exchanges row `top + i` with row `pivots[i]`, one after the other, in all columns.
fn exchange(columns: &mut [f64], stride: usize, top: usize, pivots: &[usize]) {
    for column in columns.chunks_mut(stride) {
        for (i, pivot) in pivots.iter().enumerate() {
            column.swap(top + i, *pivot);
        }
    }
}

impl Shape {
    /// Factors a panel, and packs what is below its triangle for the columns behind it.
    fn prepare(
        self,
        panel: &mut [f64],
        top: usize,
        pivots: &mut [usize],
        left: &mut Left,
        worker: &mut Multiplier,
    ) {
        self.factor(panel, top, pivots, worker);
        let from = Columns { values: panel, stride: self.stride };
        worker.pack(left, from, &(top + pivots.len()..self.n), pivots.len());
    }

    /// Factors a panel whose first diagonal element is in row `top`: below the diagonal the multipliers, the rest the upper
    /// triangle. `pivots[i]` is the row that row `top + i` was exchanged with.
    fn factor(self, panel: &mut [f64], top: usize, pivots: &mut [usize], worker: &mut Multiplier) {
        let width = pivots.len();
        if width <= FEW {
            self.factor_few(panel, top, pivots);
            return;
        }
        let half = (width / 2).next_multiple_of(FEW).min(width - 1);
        let (left, right) = panel.split_at_mut(half * self.stride);
        let (first, second) = pivots.split_at_mut(half);
        self.factor(left, top, first, worker);
        exchange(right, self.stride, top, first);
        self.solve_triangle(left, right, top, half, worker);
        self.subtract(left, right, top, half, top + half..self.n, worker);
        self.factor(right, top + half, second, worker);
        exchange(left, self.stride, top + half, second);
    }

    fn factor_few(self, panel: &mut [f64], top: usize, pivots: &mut [usize]) {
        for i in 0..pivots.len() {
            let diagonal = top + i;
            let column = &panel[i * self.stride..i * self.stride + self.n];
            let mut pivot = diagonal;
            for row in diagonal + 1..self.n {
                if column[row].abs() > column[pivot].abs() {
                    pivot = row;
                }
            }
            pivots[i] = pivot;
            exchange(panel, self.stride, diagonal, &[pivot]);
            let (left, right) = panel.split_at_mut((i + 1) * self.stride);
            let column = &mut left[i * self.stride..i * self.stride + self.n];
            let inverse = 1.0 / column[diagonal];
            for value in &mut column[diagonal + 1..] {
                *value *= inverse;
            }
            for other in right.chunks_mut(self.stride) {
                let factor = other[diagonal];
                for (value, multiplier) in
                    other[diagonal + 1..self.n].iter_mut().zip(&column[diagonal + 1..])
                {
                    *value -= factor * multiplier;
                }
            }
        }
    }

    /// Solves with the unit lower triangle in the `width` columns of `panel` from row `top` on, in all columns of `strip`.
    fn solve_triangle(
        self,
        panel: &[f64],
        strip: &mut [f64],
        top: usize,
        width: usize,
        worker: &mut Multiplier,
    ) {
        if width <= SMALL {
            for column in strip.chunks_mut(self.stride) {
                for i in 0..width {
                    let solved = column[top + i];
                    let multipliers = &panel[i * self.stride + top..i * self.stride + top + width];
                    for row in i + 1..width {
                        column[top + row] -= solved * multipliers[row];
                    }
                }
            }
            return;
        }
        let half = width / 2;
        self.solve_triangle(panel, strip, top, half, worker);
        self.subtract(panel, strip, top, half, top + half..top + width, worker);
        self.solve_triangle(&panel[half * self.stride..], strip, top + half, width - half, worker);
    }

    /// In all columns of `strip`: from `rows` subtracts those rows of the first `width` columns of `panel`, times the rows
    /// `top..top + width` of the strip, which lie above.
    fn subtract(
        self,
        panel: &[f64],
        strip: &mut [f64],
        top: usize,
        width: usize,
        rows: std::ops::Range<usize>,
        worker: &mut Multiplier,
    ) {
        let from = Columns { values: panel, stride: self.stride };
        let update = Update { target: strip, stride: self.stride, above: top..top + width, rows };
        worker.subtract(from, update);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static CALM: AtomicBool = AtomicBool::new(false);

    fn solved(
        n: usize,
        block: usize,
        threads: usize,
        disturb: &dyn Fn(usize, &mut [f64]),
    ) -> (f64, u64) {
        solved_by(kernels()[0], (n, block), &Team::floating(threads), disturb)
    }

    fn solved_by(
        kernel: Kernel,
        (n, block): (usize, usize),
        team: &Team,
        disturb: &dyn Fn(usize, &mut [f64]),
    ) -> (f64, u64) {
        let system = System { n, seed: 42 };
        let mut matrix = Matrix::reserve(system).expect("memory");
        matrix.kernel = kernel;
        matrix.fill(team.threads);
        let x = matrix.solve(block, team, disturb, &CALM).expect("nobody cancels");
        (norms(system, &x).scaled(n as u32), fingerprint(&x))
    }

    #[test]
    fn systems_of_all_shapes_are_solved() {
        for n in [1, 2, 7, 8, 9, 16, 33, 64, 100, 255, 256, 257, 300] {
            for block in [1, 3, 8, 32, 100, 256] {
                for threads in [1, 3] {
                    let (residual, _) = solved(n, block, threads, &|_, _| {});
                    assert!(residual < 16.0, "{n} {block} {threads}: {residual}");
                }
            }
        }
    }

    #[test]
    fn a_known_system_has_its_known_solution() {
        // 2x + y = 3, 4x + 3y = 7, which needs an exchange of rows.
        let system = System { n: 2, seed: 0 };
        let mut matrix = Matrix::reserve(system).expect("memory");
        for (at, value) in [(0, 2.0), (1, 4.0), (8, 1.0), (9, 3.0), (16, 3.0), (17, 7.0)] {
            matrix.values[at] = value;
        }
        let x = matrix.solve(1, &Team::floating(1), &|_, _| {}, &CALM).expect("nobody cancels");
        assert_eq!(x, [1.0, 1.0]);
    }

    #[test]
    fn the_same_system_gives_the_same_bits_however_many_threads_solve_it() {
        let first = solved(400, 32, 1, &|_, _| {});
        for threads in [1, 2, 3, 5] {
            assert_eq!(solved(400, 32, threads, &|_, _| {}), first);
        }
        assert_ne!(solved(400, 48, 2, &|_, _| {}).1, first.1);
    }

    #[test]
    fn each_kernel_solves_and_gives_the_same_bits_on_all_threads_pinned_or_not() {
        let cpus = rubus_host::process::affinity::allowed();
        for kernel in kernels() {
            let by = |team: &Team| solved_by(kernel, (333, 48), team, &|_, _| {});
            let first = by(&Team::floating(1));
            assert!(first.0 < 16.0, "{}: {}", kernel.name, first.0);
            for threads in 2..5 {
                assert_eq!(by(&Team::floating(threads)), first, "{}", kernel.name);
            }
            assert_eq!(by(&Team::pinned(&cpus)), first, "{}", kernel.name);
        }
    }

    #[test]
    fn a_flipped_bit_is_seen() {
        let right = solved(256, 32, 2, &|_, _| {});
        let flip = |bit: u32| {
            move |done: usize, values: &mut [f64]| {
                if done == 128 {
                    // In the part that is still to be worked on.
                    let at = &mut values[200 * System { n: 256, seed: 0 }.stride() + 210];
                    *at = f64::from_bits(at.to_bits() ^ (1 << bit));
                }
            }
        };
        // One of the exponent spoils the result.
        let (residual, fingerprint) = solved(256, 32, 2, &flip(55));
        assert!(residual >= 16.0, "{residual}");
        assert_ne!(fingerprint, right.1);
        // A low one of the fraction passes HPL's check; only the bits tell.
        let (residual, fingerprint) = solved(256, 32, 2, &flip(10));
        assert!(residual < 16.0, "{residual}");
        assert_ne!(fingerprint, right.1);
    }

    #[test]
    fn what_is_no_number_is_a_failure() {
        let spoil = |done: usize, values: &mut [f64]| {
            if done == 32 {
                values.fill(f64::NAN);
            }
        };
        assert_eq!(solved(64, 32, 1, &spoil).0, f64::INFINITY);
    }

    #[test]
    fn it_ends_when_it_is_cancelled() {
        let mut matrix = Matrix::reserve(System { n: 64, seed: 1 }).expect("memory");
        matrix.fill(1);
        let cancelled = AtomicBool::new(true);
        let team = Team::floating(1);
        assert_eq!(matrix.solve(8, &team, &|_, _| {}, &cancelled), None);
    }
}
