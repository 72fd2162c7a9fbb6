//! Makes a system of equations and solves it on one thread, each as often as told: `linpack-solve UNKNOWNS BLOCK TIMES`. With 0 times it
//! is only made. `benches/linpack_instructions.py` counts the instructions of both; the difference is one solution.

use std::sync::atomic::AtomicBool;

use rubus_processor::run::linpack::{Matrix, System, Team};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: linpack-solve UNKNOWNS BLOCK TIMES";
    let numbers: Vec<usize> = std::env::args()
        .skip(1)
        .map(|word| word.parse().map_err(|_| usage))
        .collect::<Result<_, _>>()?;
    let [n, block, times] = numbers[..] else {
        return Err(usage.into());
    };
    let system = System { n, seed: 1 };
    let mut matrix = Matrix::reserve(system)?;
    matrix.fill(1);
    for time in 0..times {
        if time > 0 {
            matrix.fill(1);
        }
        let never = AtomicBool::new(false);
        let solved = matrix.solve(block, &Team::floating(1), &|_, _| {}, &never);
        println!("{:?}", solved.and_then(|x| x.first().copied()));
    }
    Ok(())
}
