//! What is different since the first choice, where states are told apart: pages and their copies, places in files, where stacks are.

use vsrun_model::back::Span;

use super::back::{apart, copy_of, each_written, PAGE, SPARE};
use super::local;
use crate::sys::bare::bare;
use crate::sys::track::track;
use crate::sys::written;

/// The lowest address of the first thread's stack, if it has its stack pointer there.
pub fn first_stack(sp: u64) -> Option<u64> {
    let spans = &apart().spans[..apart().n_spans];
    let is_it = |span: &&Span| span.start <= sp && sp <= local().stack && local().stack < span.end;
    spans.iter().find(is_it).map(|span| span.start)
}

/// Where a stack ends that is no part of what is put back, and that nobody is on. `None`: the process does not go back.
pub fn spare_stack() -> Option<u64> {
    track().armed.then(|| &raw const apart().spare as u64 + SPARE as u64)
}

/// Descriptors of files with places in them that were open at the first choice.
pub fn places() -> impl Iterator<Item = u64> {
    (0..apart().n_places).map(|n| apart().places[n])
}

/// Shows each page that may have something else than at the first choice, or was not there then, and the copy of it that is kept. False: the kernel does not
/// know them all, or one cannot be read.
pub fn each_page(each: &mut dyn FnMut(u64, Option<u64>)) -> bool {
    let n_pages = apart().n_pages;
    for i in 0..n_pages {
        let page = apart().pages[i];
        if !track().has_gone(page) && !show(page, Some(copy_of(i)), each) {
            return false;
        }
    }
    let kept = |page: &u64| apart().pages[..n_pages].binary_search(page).is_ok();
    let shows = each_written(&mut |page| kept(&page) || track().has_gone(page) || show(page, None, each));
    if !shows {
        return false;
    }
    let heap = (track().heap().next_multiple_of(PAGE), (bare(libc::SYS_brk, [0; 6]) as u64).next_multiple_of(PAGE));
    let mut fresh = track().fresh().iter().copied().chain([heap]).filter(|(from, to)| from < to);
    fresh.all(|(from, to)| {
        written::there(from, to, &mut apart().told, &mut |from, to| {
            (from..to).step_by(PAGE as usize).all(|page| show(page, None, each))
        })
    })
}

/// Shows a page, where something stands in it. False: that cannot be read.
fn show(page: u64, copy: Option<u64>, each: &mut dyn FnMut(u64, Option<u64>)) -> bool {
    match track().is_readable(page) {
        Some(true) => each(page, copy),
        Some(false) => return false,
        None => {}
    }
    true
}
