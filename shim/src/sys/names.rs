//! Names of libc that lead elsewhere: to the shim's functions, and to what stands for those that use memory.
//!
//! NOTE [Names] The loader binds a module's calls to the first object that defines the name, which the shim comes before libc for. Who asks libc itself
//! does not come by it: dlsym and dlvsym with a handle of libc, RTLD_NEXT in an object behind the shim, a library that is opened with RTLD_DEEPBIND. So
//! libc's own table of symbols says of these names, in all their versions, where the shim's functions are. Calls within libc do not go by that table.

use super::elf::{find_map, is_named, own_base, Image, STT_FUNC, STT_GNU_IFUNC};
use super::{load, raw, store};

/// The shim's functions are found where libc's of the same name are asked for. What the shim wants of libc itself it has found by now.
/// Whatever stands in the way, they are found as before.
pub fn lead_here() {
    let Some(own) = own() else { return };
    lead(libc(), |libc| {
        own.each_symbol(|symbol| {
            let function = own.function_at(symbol);
            if function != 0 {
                lead_to(libc, own.name_of(symbol), function);
            }
        });
    });
}

/// The loaded libc.
pub fn libc() -> Option<Image> {
    find_map(|map| is_named(map, b"/libc.so.6")).map(Image::of_map)
}

/// The shim.
pub fn own() -> Option<Image> {
    find_map(|map| load::<u64>(map) == own_base()).map(Image::of_map)
}

/// Has `all` lead names of an image elsewhere, by [`lead_to`].
pub fn lead(image: Option<Image>, all: impl FnOnce(&Image)) {
    let Some(image) = image else { return };
    let (start, length, prot) = image.symbols_segment();
    if length == 0 || raw!(libc::SYS_mprotect, start, length, prot | libc::PROT_WRITE) < 0 {
        return;
    }
    all(&image);
    raw!(libc::SYS_mprotect, start, length, prot);
}

/// Each version of function `name` is at `function`.
pub fn lead_to(image: &Image, name: &[u8], function: u64) {
    image.each_named(name, |symbol, _| {
        lead_symbol(image, symbol, function);
        true
    });
}

/// The function of that symbol, if it is of one that is defined, is at `function`. The segment can be written meanwhile ([`lead`]).
pub fn lead_symbol(image: &Image, symbol: u64, function: u64) {
    let info: u8 = load(symbol + 4);
    if matches!(info & 15, STT_FUNC | STT_GNU_IFUNC) && image.address(symbol).is_some() {
        store(symbol + 4, info & !15 | STT_FUNC);
        store(symbol + 8, function.wrapping_sub(image.base()));
    }
}
