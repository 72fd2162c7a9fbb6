//! What HPL's program `xhpl` wants to be told, and what it prints.

use std::fmt::Write as _;

use rubus_vocabulary::processor::linpack::hpl::Outcome;

use crate::solving::THRESHOLD;

/// The file `HPL.dat` for one size with these blocks on one process, the rest as usual. The library below it takes the cores.
pub fn dat(n: u32, blocks: &[u32]) -> String {
    let names: Vec<String> = blocks.iter().map(u32::to_string).collect();
    let mut text = String::from("HPLinpack benchmark input file\nmade by rubus\n");
    let mut line = |value: &str, meaning: &str| {
        let _ = writeln!(text, "{value:<20} {meaning}");
    };
    line("HPL.out", "output file name (if any)");
    line("6", "device out (6=stdout,7=stderr,file)");
    line("1", "# of problems sizes (N)");
    line(&n.to_string(), "Ns");
    line(&blocks.len().to_string(), "# of NBs");
    line(&names.join(" "), "NBs");
    line("0", "PMAP process mapping (0=Row-,1=Column-major)");
    line("1", "# of process grids (P x Q)");
    line("1", "Ps");
    line("1", "Qs");
    line(&format!("{THRESHOLD:.1}"), "threshold");
    line("1", "# of panel fact");
    line("1", "PFACTs (0=left, 1=Crout, 2=Right)");
    line("1", "# of recursive stopping criterium");
    line("4", "NBMINs (>= 1)");
    line("1", "# of panels in recursion");
    line("2", "NDIVs");
    line("1", "# of recursive panel fact.");
    line("2", "RFACTs (0=left, 1=Crout, 2=Right)");
    line("1", "# of broadcast");
    line("0", "BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)");
    line("1", "# of lookahead depth");
    line("0", "DEPTHs (>=0)");
    line("2", "SWAP (0=bin-exch,1=long,2=mix)");
    line("8", "swapping threshold");
    line("0", "L1 in (0=transposed,1=no-transposed) form");
    line("0", "U  in (0=transposed,1=no-transposed) form");
    line("1", "Equilibration (0=no,1=yes)");
    line("8", "memory alignment in double (> 0)");
    text
}

/// What `xhpl` printed, system by system; such as have no residual are left out.
pub fn parse(output: &str) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut timed = None;
    for line in output.lines() {
        if line.starts_with("||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=") {
            outcomes.extend(timed.take().and_then(|timed| judged(timed, line)));
        } else if let Some(row) = row(line) {
            timed = Some(row);
        }
    }
    outcomes
}

/// "WR00L2L2       20000   208     1     1             326.28             1.6347e+01".
fn row(line: &str) -> Option<Outcome> {
    let mut words = line.split_whitespace();
    let variant = words.next()?;
    // Wall clock or processor time, and five letters and digits of how.
    if !(variant.starts_with("WR") || variant.starts_with("WC")) || variant.len() != 8 {
        return None;
    }
    let n = words.next()?.parse().ok()?;
    let block = words.next()?.parse().ok()?;
    let (rows, columns): (u32, u32) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let seconds = words.next()?.parse().ok()?;
    let gigaflops: f64 = words.next()?.parse().ok()?;
    Some(Outcome {
        n,
        block,
        processes: rows.checked_mul(columns)?,
        seconds,
        flops_per_second: gigaflops * 1e9,
        residual: f64::INFINITY,
        is_passed: false,
    })
}

/// "||Ax-b||…=        0.0023 ...... PASSED"; a residual that is no number is the worst there is.
fn judged(timed: Outcome, line: &str) -> Option<Outcome> {
    let (_, said) = line.split_once(")*N)=")?;
    let mut words = said.split_whitespace();
    let residual: f64 = words.next()?.parse().ok()?;
    Some(Outcome {
        residual: if residual.is_nan() { f64::INFINITY } else { residual },
        is_passed: words.next_back()? == "PASSED",
        ..timed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR01C2L8      102144   192     8     8             514.92              1.380e+03
HPL_pdgesv() start time Mon Nov  2 10:00:00 2026

--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0020152 ...... PASSED
================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR00L2L2       10000   176     1     1              99.53             6.6992e+00
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   2.1047913e+03 ...... FAILED
||Ax-b||_oo  . . . . . . . . . . . . . . . . . =   0.000000
WR00L2L2       10000   208     1     1              97.00             6.8739e+00
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=              nan ...... FAILED
Finished      3 tests with the following results:
WR00L2L2       10000   240     1     1
";

    #[test]
    fn what_hpl_prints_is_read() {
        let outcomes = parse(OUTPUT);
        assert_eq!(outcomes.len(), 3);
        let first = &outcomes[0];
        assert_eq!((first.n, first.block, first.processes), (102_144, 192, 64));
        assert_eq!(
            (first.flops_per_second, first.residual, first.is_passed),
            (1.38e12, 0.002_015_2, true)
        );
        assert_eq!((outcomes[1].residual, outcomes[1].is_passed), (2104.7913, false));
        assert_eq!((outcomes[2].residual, outcomes[2].is_passed), (f64::INFINITY, false));
        assert_eq!(parse(""), []);
        assert_eq!(parse("WR00L2L2 1 1 99999999 99999999 1 1\n"), []);
    }

    #[test]
    fn what_hpl_is_told_has_its_lines_in_its_order() {
        let text = dat(10_000, &[128, 176]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 31);
        assert!(
            lines[5].starts_with("10000 ")
                && lines[7].starts_with("128 176 ")
                && lines[12].starts_with("16.0 ")
        );
    }
}
