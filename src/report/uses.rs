//! Uses of watched variables (`--watch`), a line each.

use std::fmt::Write;

use crate::base::text::one_line;
use crate::finding::{Finding, Touched, Use, Uses};

/// Most lines.
const MOST: usize = 200;

/// `write of total (4 bytes): 0 -> 1` and where.
fn line(touched: &Touched) -> String {
    let Touched { variable, size, does, old, new, place, .. } = touched;
    let bytes = if *size == 1 { "byte" } else { "bytes" };
    let values = match does {
        Use::Read | Use::Use if old == new => format!("{new}"),
        _ => format!("{old} -> {new}"),
    };
    format!("{} of {variable} ({size} {bytes}): {values}  at {place}", does.name())
}

/// Those of one execution, in their order.
pub(super) fn of_execution(found: &Finding) -> String {
    let mut out = String::new();
    for touched in found.touches.iter().take(MOST) {
        let _ = writeln!(out, "  after step {:<4} {}  {}", touched.step, touched.thread, one_line(&line(touched)));
    }
    let more = found.touches.len().saturating_sub(MOST) as u64 + found.touches_lost;
    if more > 0 {
        let _ = writeln!(out, "  and {more} more");
    }
    out
}

/// Those of all executions, those alike on one line, with the values of the first.
pub(super) fn of_all(all: &[Uses]) -> String {
    let mut out = String::new();
    for Uses { first, execution, times, .. } in all.iter().take(MOST) {
        let place = format!("execution {execution}, after step {}", first.step);
        let often = if *times > 1 { format!("; {times} times in all") } else { String::new() };
        let _ = writeln!(out, "  {place}: {}  {}{often}", first.thread, one_line(&line(first)));
    }
    if all.len() > MOST {
        let _ = writeln!(out, "  and {} more", all.len() - MOST);
    }
    out
}
