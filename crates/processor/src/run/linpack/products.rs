//! Products of matrices in double precision, C − A·B, in columns as the elimination has them.
//!
//! The scheme is that of GotoBLAS and BLIS: both factors are copied into the order in which the innermost loop reads them (packed), and
//! that loop keeps a tile of C in registers. A factor that serves many products is packed once. The order of the additions depends on
//! the shapes alone, so that the same product gives the same bits.
//!
//! Sources: Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", ACM Transactions on Mathematical Software
//! 34 (3), 2008; Van Zee and van de Geijn, "BLIS: a framework for rapidly instantiating BLAS functionality", the same 41 (3), 2015.

use std::ops::Range;

use super::kernels::{Kernel, MAX_TILE};

/// Columns of A at a time: a sliver of B that deep stays in the first-level cache.
const DEPTH: usize = 256;
/// Bytes of A that are used for all columns of C before the next: a part of the second cache, which cores of boards share.
const BLOCK_BYTES: usize = 128 << 10;
/// Vectors that cross no line of a cache are faster.
const LINE_BYTES: usize = 64;

/// Where columns are: each begins `stride` numbers after the one before.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// The numbers, from the first column on.
    pub values: &'a [f64],
    /// Distance of columns.
    pub stride: usize,
}

impl<'a> Columns<'a> {
    /// Some rows of a column.
    fn part(self, column: usize, rows: &Range<usize>) -> &'a [f64] {
        let start = column * self.stride;
        &self.values[start + rows.start..start + rows.end]
    }
}

/// Numbers that begin at a line of the cache.
#[derive(Debug, Default)]
struct Aligned {
    values: Vec<f64>,
    start: usize,
}

impl Aligned {
    /// Room for that many, with whatever was there before.
    fn room(&mut self, length: usize) -> &mut [f64] {
        let spare = LINE_BYTES / size_of::<f64>() - 1;
        if self.values.len() < length + spare {
            self.values.resize(length + spare, 0.0);
        }
        self.start = self.values.as_ptr().align_offset(LINE_BYTES).min(spare);
        &mut self.values[self.start..self.start + length]
    }

    fn from(&self, first: usize) -> &[f64] {
        &self.values[self.start + first..]
    }
}

/// A left factor as the kernel reads it: for each `DEPTH` of its columns, slivers of the kernel's rows, column after column.
/// Zeros fill the last sliver.
#[derive(Debug, Default)]
pub struct Left {
    values: Aligned,
    rows: usize,
    depth: usize,
}

impl Left {
    /// Packs some rows of the first `depth` columns.
    pub fn pack(&mut self, kernel: Kernel, from: Columns<'_>, rows: &Range<usize>, depth: usize) {
        (self.rows, self.depth) = (rows.len(), depth);
        let padded = self.rows.next_multiple_of(kernel.rows);
        let mut rest = self.values.room(padded * depth);
        for steps in chunks(depth) {
            for first in (rows.start..rows.end).step_by(kernel.rows) {
                let (sliver, others) = rest.split_at_mut(kernel.rows * steps.len());
                let own = first..rows.end.min(first + kernel.rows);
                for (step, place) in steps.clone().zip(sliver.chunks_exact_mut(kernel.rows)) {
                    let (filled, spare) = place.split_at_mut(own.len());
                    filled.copy_from_slice(from.part(step, &own));
                    spare.fill(0.0);
                }
                rest = others;
            }
        }
    }

    /// Where a sliver's steps begin.
    fn sliver(&self, kernel: Kernel, steps: &Range<usize>, number: usize) -> &[f64] {
        let padded = self.rows.next_multiple_of(kernel.rows);
        self.values.from(padded * steps.start + number * kernel.rows * steps.len())
    }
}

/// A right factor, in slivers of the kernel's columns, row after row.
#[derive(Debug, Default)]
struct Right {
    values: Aligned,
}

impl Right {
    /// Packs some rows of the first `columns` columns.
    fn pack(&mut self, kernel: Kernel, from: Columns<'_>, rows: &Range<usize>, columns: usize) {
        let padded = columns.next_multiple_of(kernel.columns);
        let room = self.values.room(padded * rows.len());
        let slivers = room.chunks_exact_mut(kernel.columns * rows.len());
        for (sliver, first) in slivers.zip((0..columns).step_by(kernel.columns)) {
            for number in 0..kernel.columns {
                let places = sliver[number..].iter_mut().step_by(kernel.columns);
                if first + number < columns {
                    let column = from.part(first + number, rows);
                    places.zip(column).for_each(|(place, value)| *place = *value);
                } else {
                    places.for_each(|place| *place = 0.0);
                }
            }
        }
    }
}

/// Multiplies on one thread, in memory that is kept for the next product.
pub struct Multiplier {
    kernel: Kernel,
    left: Left,
    right: Right,
}

/// What is subtracted from where: in all columns of `target`, from the rows `rows`, a left factor of that many rows times the rows
/// `above`, which end at or before these.
pub struct Update<'a> {
    /// Whole columns, `stride` numbers each.
    pub target: &'a mut [f64],
    /// Distance of columns.
    pub stride: usize,
    /// The right factor's rows.
    pub above: Range<usize>,
    /// The rows that change.
    pub rows: Range<usize>,
}

impl Multiplier {
    /// One that has no memory yet.
    pub fn new(kernel: Kernel) -> Self {
        Multiplier { kernel, left: Left::default(), right: Right::default() }
    }

    /// Packs rows of a left factor, for products with many right ones.
    pub fn pack(&self, left: &mut Left, from: Columns<'_>, rows: &Range<usize>, depth: usize) {
        left.pack(self.kernel, from, rows, depth);
    }

    /// Subtracts a product whose left factor are the update's rows of the first columns of `from`.
    pub fn subtract(&mut self, from: Columns<'_>, update: Update<'_>) {
        let mut left = std::mem::take(&mut self.left);
        left.pack(self.kernel, from, &update.rows, update.above.len());
        self.subtract_packed(&left, update);
        self.left = left;
    }

    /// Subtracts a product whose left factor is packed already.
    pub fn subtract_packed(&mut self, left: &Left, update: Update<'_>) {
        let Update { target, stride, above, rows } = update;
        assert!(above.end <= rows.start && rows.end <= stride && target.len() % stride == 0);
        assert!(left.rows == rows.len() && left.depth == above.len());
        if rows.is_empty() {
            return;
        }
        let columns = target.len() / stride;
        for steps in chunks(left.depth) {
            let own = above.start + steps.start..above.start + steps.end;
            let source = Columns { values: &*target, stride };
            self.right.pack(self.kernel, source, &own, columns);
            let tiles = Tiles {
                kernel: self.kernel,
                left,
                right: &self.right,
                steps,
                stride,
                rows: rows.clone(),
                columns,
            };
            tiles.subtract(target);
        }
    }
}

/// The tiles of a target, for one stretch of steps.
struct Tiles<'a> {
    kernel: Kernel,
    left: &'a Left,
    right: &'a Right,
    steps: Range<usize>,
    stride: usize,
    rows: Range<usize>,
    columns: usize,
}

impl Tiles<'_> {
    /// A block of A after the other; in each, a sliver of B with all slivers of A.
    fn subtract(&self, target: &mut [f64]) {
        let kernel = self.kernel;
        let sliver_bytes = self.steps.len() * kernel.rows * size_of::<f64>();
        let slivers = self.rows.len().div_ceil(kernel.rows);
        let block = (BLOCK_BYTES / sliver_bytes).max(1);
        for first in (0..slivers).step_by(block) {
            for down in 0..self.columns.div_ceil(kernel.columns) {
                let from = down * kernel.columns * self.steps.len();
                let right = self.right.values.from(from);
                for across in first..slivers.min(first + block) {
                    let left = self.left.sliver(kernel, &self.steps, across);
                    self.tile(left, right, (across, down), target);
                }
            }
        }
    }

    /// One tile. At the edges of the target it is computed beside it.
    fn tile(&self, left: &[f64], right: &[f64], at: (usize, usize), target: &mut [f64]) {
        let (kernel, depth) = (self.kernel, self.steps.len());
        let (row, column) = (at.0 * kernel.rows, at.1 * kernel.columns);
        let rows = kernel.rows.min(self.rows.len() - row);
        let columns = kernel.columns.min(self.columns - column);
        let tile = &mut target[column * self.stride + self.rows.start + row..];
        assert!(left.len() >= depth * kernel.rows && right.len() >= depth * kernel.columns);
        if (rows, columns) == (kernel.rows, kernel.columns) {
            assert!(tile.len() >= (columns - 1) * self.stride + rows);
            // SAFETY: the kernel was chosen for this processor; the factors and the tile are that long.
            unsafe {
                (kernel.subtract)(
                    depth,
                    left.as_ptr(),
                    right.as_ptr(),
                    tile.as_mut_ptr(),
                    self.stride,
                );
            }
            return;
        }
        let mut whole = [0.0; MAX_TILE];
        assert!(whole.len() >= kernel.rows * kernel.columns);
        // SAFETY: the same, and the tile beside the target is a whole one.
        unsafe {
            (kernel.subtract)(
                depth,
                left.as_ptr(),
                right.as_ptr(),
                whole.as_mut_ptr(),
                kernel.rows,
            );
        }
        for (column, differences) in
            tile.chunks_mut(self.stride).zip(whole.chunks_exact(kernel.rows).take(columns))
        {
            for (value, difference) in column[..rows].iter_mut().zip(differences) {
                *value += difference;
            }
        }
    }
}

/// The stretches in which a depth is worked on.
fn chunks(depth: usize) -> impl Iterator<Item = Range<usize>> {
    (0..depth).step_by(DEPTH).map(move |first| first..depth.min(first + DEPTH))
}

#[cfg(test)]
mod tests {
    use super::super::kernels::kernels;
    use super::*;
    use rubus_stats::Rng;

    /// Both factors and the target of a product, drawn from a seed: `rows` × `depth` and `depth` × `columns`.
    fn drawn(rows: usize, depth: usize, columns: usize) -> (Vec<f64>, Vec<f64>, usize) {
        let mut rng = Rng::from_seed((rows * 1_000_003 + depth * 1009 + columns) as u64);
        // The right factor lies above the target, with a row between them that belongs to neither.
        let stride = depth + 1 + rows + 3;
        let mut draw = |count: usize| (0..count).map(|_| rng.unit() - 0.5).collect();
        (draw(stride * depth), draw(stride * columns), stride)
    }

    fn naive(
        left: &[f64],
        target: &[f64],
        stride: usize,
        depth: usize,
        rows: Range<usize>,
    ) -> Vec<f64> {
        let mut expected = target.to_vec();
        for column in expected.chunks_mut(stride) {
            for row in rows.clone() {
                let sum: f64 = (0..depth).map(|k| left[k * stride + row] * column[k]).sum();
                column[row] -= sum;
            }
        }
        expected
    }

    #[test]
    fn each_kernel_gives_what_a_naive_product_gives() {
        let sizes = [1, 2, 3, 5, 8, 13, 23, 24, 25, 49];
        for kernel in kernels() {
            for (rows, columns) in sizes.iter().flat_map(|r| sizes.iter().map(move |c| (*r, *c))) {
                for depth in [1, 2, 7, DEPTH, DEPTH + 1, 2 * DEPTH + 3] {
                    let (left, mut target, stride) = drawn(rows, depth, columns);
                    let own = depth + 1..depth + 1 + rows;
                    let expected = naive(&left, &target, stride, depth, own.clone());
                    let from = Columns { values: &left, stride };
                    let update = Update { target: &mut target, stride, above: 0..depth, rows: own };
                    Multiplier::new(kernel).subtract(from, update);
                    for (at, (value, expected)) in target.iter().zip(&expected).enumerate() {
                        // Also what is beside the rows: there, nothing may change.
                        let limit = 1e-13 * depth as f64;
                        let (row, name) = (at % stride, kernel.name);
                        assert!(
                            (value - expected).abs() <= limit,
                            "{name}: {rows} × {depth} × {columns}, row {row}: {value} {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn memory_of_an_earlier_product_does_not_count() {
        for kernel in kernels() {
            let mut used = Multiplier::new(kernel);
            for (rows, depth, columns) in [(50, 300, 30), (7, 5, 3), (31, 40, 9)] {
                let (left, target, stride) = drawn(rows, depth, columns);
                let product = |multiplier: &mut Multiplier| {
                    let mut target = target.clone();
                    let from = Columns { values: &left, stride };
                    let update = Update {
                        target: &mut target,
                        stride,
                        above: 0..depth,
                        rows: depth + 1..depth + 1 + rows,
                    };
                    multiplier.subtract(from, update);
                    target
                };
                assert_eq!(product(&mut used), product(&mut Multiplier::new(kernel)));
            }
        }
    }

    #[test]
    fn what_is_no_number_in_a_factor_stays_in_its_row_and_column() {
        for kernel in kernels() {
            let (rows, depth, columns) = (kernel.rows + 1, 3, kernel.columns + 1);
            let (mut left, mut target, stride) = drawn(rows, depth, columns);
            // The last row of A and the last column of B: each in a tile of its own that is not whole.
            left[stride + depth + rows] = f64::INFINITY;
            target[(columns - 1) * stride + 1] = f64::NAN;
            let from = Columns { values: &left, stride };
            let own = depth + 1..depth + 1 + rows;
            let update = Update { target: &mut target, stride, above: 0..depth, rows: own.clone() };
            Multiplier::new(kernel).subtract(from, update);
            for (number, column) in target.chunks(stride).enumerate() {
                for row in own.clone() {
                    let is_hit = number == columns - 1 || row == depth + rows;
                    assert_eq!(column[row].is_finite(), !is_hit, "{}", kernel.name);
                }
            }
        }
    }
}
