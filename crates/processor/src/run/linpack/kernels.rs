//! The innermost loops of a product: from a tile of a matrix subtracts the product of two packed factors, all of it in registers.
//!
//! One loop for each kind of vectors; a tile is as large as its registers hold. Which of them this processor can run is asked
//! at run time.

/// From the tile at `tile`, whose columns are `stride` numbers apart, subtracts `left` · `right`: for each of `depth` steps, `left`
/// has a column of the kernel's rows and `right` a row of its columns.
///
/// # Safety
/// The processor has the kernel's instructions. `left` has `depth` × rows numbers, `right` `depth` × columns; the tile is
/// writable, and no other thread touches it.
type Subtract = unsafe fn(usize, *const f64, *const f64, *mut f64, usize);

/// A loop, and the tile that it computes.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Name of the instruction set it uses.
    pub name: &'static str,
    /// Rows of a tile.
    pub rows: usize,
    /// Columns of a tile.
    pub columns: usize,
    /// The function that computes a tile.
    pub subtract: Subtract,
}

/// Numbers in the largest tile.
pub const MAX_TILE: usize = 24 * 8;

/// Those that this processor can run, the fastest first. Never empty.
pub fn kernels() -> Vec<Kernel> {
    let mut kernels = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx512f") {
            kernels.push(Kernel { name: "AVX-512", rows: 24, columns: 8, subtract: x86::avx512 });
        }
        if has!("avx2") && has!("fma") {
            kernels.push(Kernel { name: "AVX2 and FMA", rows: 8, columns: 6, subtract: x86::fma });
        }
        if has!("avx") {
            kernels.push(Kernel { name: "AVX", rows: 8, columns: 4, subtract: x86::avx });
        }
        // Each x86-64 has it.
        kernels.push(Kernel { name: "SSE2", rows: 4, columns: 4, subtract: x86::sse2 });
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("neon") {
        kernels.push(Kernel { name: "NEON", rows: 8, columns: 6, subtract: arm::neon });
    }
    kernels.push(Kernel { name: "scalar arithmetic", rows: 2, columns: 4, subtract: scalar });
    kernels
}

/// A kernel of `$vectors` registers of `$lanes` numbers by the columns with these numbers. They are written out: a loop over them would
/// only sometimes be unrolled, and its sums then would not be in registers. `$multiply_add` gives a·b + c of its arguments a, b and c.
macro_rules! kernel {
    (
        $(#[$attribute:meta])*
        $name:ident: $vectors:literal x $lanes:literal by [$($number:literal)*],
        $zero:expr, $load:path, $store:path, $splat:path, $multiply_add:path, $minus:path
    ) => {
        $(#[$attribute])*
        pub unsafe fn $name(
            depth: usize,
            left: *const f64,
            right: *const f64,
            tile: *mut f64,
            stride: usize,
        ) {
            const ROWS: usize = $vectors * $lanes;
            const COLUMNS: usize = [$($number),*].len();
            let mut sums = [[$zero; $vectors]; COLUMNS];
            // SAFETY: the caller has that many numbers in both factors and in the tile, and the instructions.
            unsafe {
                $(prefetch::<ROWS>(tile.add($number * stride).cast_const());)*
                for step in 0..depth {
                    let (left, right) = (left.add(step * ROWS), right.add(step * COLUMNS));
                    let mut column = [$zero; $vectors];
                    for (part, vector) in column.iter_mut().enumerate() {
                        *vector = $load(left.add(part * $lanes));
                    }
                    $(
                        let factor = $splat(*right.add($number));
                        for (sum, vector) in sums[$number].iter_mut().zip(column) {
                            *sum = $multiply_add(vector, factor, *sum);
                        }
                    )*
                }
                $(
                    for (part, sum) in sums[$number].iter().enumerate() {
                        let place = tile.add($number * stride + part * $lanes);
                        $store(place, $minus($load(place.cast_const()), *sum));
                    }
                )*
            }
        }
    };
}

/// Brings a column of a tile near while its sums are made: it is read last, and comes from afar. Only x86 has this in stable Rust.
#[inline(always)]
unsafe fn prefetch<const ROWS: usize>(column: *const f64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let mut row = 0;
        // The column need not begin at a line, so its last row may be in one more.
        while row < ROWS + 7 {
            // SAFETY: all of the column is in the tile.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(column.add(row.min(ROWS - 1)).cast()) };
            row += 8;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = column;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::prefetch;

    kernel!(
        #[target_feature(enable = "avx512f")]
        avx512: 3 x 8 by [0 1 2 3 4 5 6 7],
        _mm512_setzero_pd(), _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_fmadd_pd, _mm512_sub_pd
    );

    kernel!(
        #[target_feature(enable = "avx2,fma")]
        fma: 2 x 4 by [0 1 2 3 4 5],
        _mm256_setzero_pd(), _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_sub_pd
    );

    #[inline]
    #[target_feature(enable = "avx")]
    fn multiply_add_256(a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        _mm256_add_pd(_mm256_mul_pd(a, b), c)
    }

    kernel!(
        #[target_feature(enable = "avx")]
        avx: 2 x 4 by [0 1 2 3],
        _mm256_setzero_pd(), _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, multiply_add_256, _mm256_sub_pd
    );

    #[inline]
    #[target_feature(enable = "sse2")]
    fn multiply_add_128(a: __m128d, b: __m128d, c: __m128d) -> __m128d {
        _mm_add_pd(_mm_mul_pd(a, b), c)
    }

    kernel!(
        #[target_feature(enable = "sse2")]
        sse2: 2 x 2 by [0 1 2 3],
        _mm_setzero_pd(), _mm_loadu_pd, _mm_storeu_pd, _mm_set1_pd, multiply_add_128, _mm_sub_pd
    );
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;

    const ROWS: usize = 8;
    const VECTORS: usize = ROWS / 2;

    /// Not the other macro: a multiplication takes its factor from either half of a register, so two columns share a load.
    macro_rules! neon {
        ($($number:literal)*) => {
            #[target_feature(enable = "neon")]
            pub unsafe fn neon(
                depth: usize,
                left: *const f64,
                right: *const f64,
                tile: *mut f64,
                stride: usize,
            ) {
                const COLUMNS: usize = [$($number),*].len();
                let mut sums = [[vdupq_n_f64(0.0); VECTORS]; COLUMNS];
                // SAFETY: the caller has that many numbers in both factors and in the tile, and the instructions.
                unsafe {
                    for step in 0..depth {
                        let (left, right) = (left.add(step * ROWS), right.add(step * COLUMNS));
                        let mut column = [vdupq_n_f64(0.0); VECTORS];
                        for (part, vector) in column.iter_mut().enumerate() {
                            *vector = vld1q_f64(left.add(part * 2));
                        }
                        $(
                            let factors = vld1q_f64(right.add($number / 2 * 2));
                            for (sum, vector) in sums[$number].iter_mut().zip(column) {
                                *sum = vfmaq_laneq_f64::<{ $number % 2 }>(*sum, vector, factors);
                            }
                        )*
                    }
                    $(
                        for (part, sum) in sums[$number].iter().enumerate() {
                            let place = tile.add($number * stride + part * 2);
                            vst1q_f64(place, vsubq_f64(vld1q_f64(place.cast_const()), *sum));
                        }
                    )*
                }
            }
        };
    }

    neon!(0 1 2 3 4 5);
}

#[inline]
fn itself(number: f64) -> f64 {
    number
}

#[inline]
fn multiply_add(a: f64, b: f64, c: f64) -> f64 {
    a * b + c
}

#[inline]
fn minus(a: f64, b: f64) -> f64 {
    a - b
}

// So small that its sums fit the sixteen registers of a 32-bit ARM. Multiplies and adds apart: fused, most of these would
// call a function.
kernel!(
    scalar: 2 x 1 by [0 1 2 3],
    0.0, std::ptr::read, std::ptr::write, itself, multiply_add, minus
);
